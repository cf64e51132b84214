//! The models of an agent: the first one and those that answer when it fails, each with credentials of its own.

use crablet::host::{BoxFuture, CredentialSource};
use crablet::model::{Access, Credentials, Model};
use crablet::{Error, ErrorKind};

use crate::functions::Functions;

/// The name that the model function of this number is registered with.
pub(crate) fn function_name(number: usize) -> String {
    format!("function-{number}")
}

/// A model and how its requests are authorized.
#[derive(Clone, Debug)]
pub(crate) struct KeyedModel {
    pub(crate) model: Model,
    /// A key that never changes.
    pub(crate) key: Option<String>,
    /// Whether the credentials are asked for at each request.
    pub(crate) asks_for_credentials: bool,
}

/// The credentials of the models. JavaScript knows each by its number.
#[derive(Debug)]
pub(crate) struct JsCredentials {
    pub(crate) functions: Functions,
    pub(crate) models: Vec<KeyedModel>,
}

impl CredentialSource for JsCredentials {
    fn credentials(&self, model: Model) -> BoxFuture<'static, Result<Credentials, Error>> {
        let number = self.models.iter().position(|keyed| is_same(&keyed.model, &model));
        let Some((number, keyed)) = number.and_then(|number| Some((number, self.models.get(number)?))) else {
            // A key never goes to a model that it was not given for.
            let message = format!("the model \"{}\" is none of the agent's", model.id);
            return Box::pin(async { Err(Error::new(ErrorKind::Internal, message)) });
        };
        if keyed.asks_for_credentials {
            return self.functions.supplied_credentials(number);
        }
        let credentials = keyed.key.clone().map_or(Credentials::None, Credentials::Key);
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
