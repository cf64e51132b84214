//! The models of an agent: the first one and those that answer when it fails, each with credentials of its own.

use std::cell::RefCell;
use std::rc::Rc;

use crablet::host::{BoxFuture, CredentialSource};
use crablet::model::{Access, Credentials, Model};
use crablet::{Error, ErrorKind};

use crate::functions::Functions;

/// The name that the model function of this number is registered with.
pub(crate) fn function_name(number: usize) -> String {
    format!("function-{number}")
}

/// The number of the model function with this name.
pub(crate) fn number_of_function(name: &str) -> usize {
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A model and how its requests are authorized.
#[derive(Clone, Debug)]
pub(crate) struct KeyedModel {
    /// What JavaScript knows it by.
    pub(crate) number: usize,
    pub(crate) model: Model,
    /// A key that never changes.
    pub(crate) key: Option<String>,
    /// Whether the credentials are asked for at each request.
    pub(crate) asks_for_credentials: bool,
}

/// The models that are known: those of the definition, and those that hooks have chosen since.
#[derive(Clone, Debug)]
pub(crate) struct Models(Rc<RefCell<Vec<KeyedModel>>>);

impl Models {
    pub(crate) fn new(models: Vec<KeyedModel>) -> Self {
        Self(Rc::new(RefCell::new(models)))
    }

    /// Takes a model that a hook chose, and gives it in the form for a request.
    pub(crate) fn choose(&self, chosen: KeyedModel) -> Model {
        let model = chosen.model.clone();
        let mut models = self.0.borrow_mut();
        if !models.iter().any(|keyed| keyed.number == chosen.number) {
            models.push(chosen);
        }
        model
    }

    fn find(&self, model: &Model) -> Option<KeyedModel> {
        self.0.borrow().iter().find(|keyed| is_same(&keyed.model, model)).cloned()
    }
}

/// The credentials of the models. JavaScript knows each by its number.
#[derive(Debug)]
pub(crate) struct JsCredentials {
    pub(crate) functions: Functions,
    pub(crate) models: Models,
}

impl CredentialSource for JsCredentials {
    fn credentials(&self, model: Model) -> BoxFuture<'static, Result<Credentials, Error>> {
        let Some(keyed) = self.models.find(&model) else {
            // A key never goes to a model that it was not given for.
            let message = format!("the model \"{}\" is none of the agent's", model.id);
            return Box::pin(async { Err(Error::new(ErrorKind::Internal, message)) });
        };
        if keyed.asks_for_credentials {
            return self.functions.supplied_credentials(keyed.number);
        }
        let credentials = keyed.key.map_or(Credentials::None, Credentials::Key);
        Box::pin(async { Ok(credentials) })
    }
}

/// Whether both are the same model at the same address.
fn is_same(left: &Model, right: &Model) -> bool {
    let address = |model: &Model| match &model.access {
        Access::Http { base_url, .. } => base_url.clone(),
        _ => None,
    };
    left.reference() == right.reference() && address(left) == address(right)
}
