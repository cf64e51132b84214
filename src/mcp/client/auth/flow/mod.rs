//! One authorization, from the server's challenge to tokens: one piece of work after the other.

mod client;
mod consent;
mod discovery;
mod token;

use std::collections::VecDeque;

use super::Shared;
use super::challenge::Challenge;
use super::form::Form;
use super::io::{Effect, Outcome, Work};
use super::metadata::ServerMetadata;
use super::options::Secret;
use super::registration::Client;
use super::tokens::{Tokens, scopes};
use crate::error::Error;
use crate::json::{Object, RawJson};
use crate::model::{HttpRequest, ResponseHead};
use crate::time::Millis;

/// What comes after a step.
#[derive(Debug)]
pub(super) enum Next {
    /// Work whose outcome leads on.
    Work(Work),
    /// The end: tokens, or none where it only looked for kept ones.
    Done(Option<Tokens>),
}

/// What the outcome of the work under way is.
#[derive(Debug)]
enum Step {
    /// Nothing is under way.
    Idle,
    KeptServer,
    KeptTokens,
    ResourceMetadata,
    ServerMetadata,
    KeptClient,
    RedirectUri,
    Registration,
    Consent,
    Assertion,
    Exchange(Form),
    PublicKey,
    ClientAssertion {
        unsigned: String,
    },
    Proof {
        request: HttpRequest,
        unsigned: String,
    },
    Token,
}

/// An authorization under way.
#[derive(Debug)]
pub(super) struct Flow {
    /// Whether it only looks for tokens that were kept.
    pub(super) only_looks: bool,
    challenge: Challenge,
    /// The tokens that no longer do.
    held: Option<Tokens>,
    /// Whether the server wants more than the tokens were given for.
    is_step_up: bool,
    step: Step,
    /// Where the metadata that is looked for may be.
    candidates: VecDeque<String>,
    resource: Option<String>,
    scopes_supported: Vec<String>,
    /// Whether tokens must be bound to a key.
    wants_proof: bool,
    issuer: String,
    /// Whether the issuer was guessed from the server's address, as revision 2025-03-26 has it.
    is_guessed: bool,
    metadata: ServerMetadata,
    refresh: Option<Secret>,
    client: Option<Client>,
    redirect_uri: String,
    /// The scopes to ask for.
    asked: Vec<String>,
    state: Secret,
    verifier: Secret,
    /// The parameters of the token request, without those that prove the client.
    form: Form,
    is_refresh: bool,
    nonce_was_given: bool,
    was_registered_anew: bool,
    /// What is to be kept, or to be forgotten.
    saves: Vec<Effect>,
}

impl Flow {
    /// Looks for tokens that were kept.
    pub(super) fn look(shared: &Shared) -> (Self, Work) {
        let mut flow = Self::new(Challenge::default(), None, false);
        flow.only_looks = true;
        flow.step = Step::KeptServer;
        (flow, Work::Load(shared.server_key()))
    }

    /// Obtains tokens in place of those that are held.
    pub(super) fn authorize(
        shared: &Shared,
        challenge: Challenge,
        held: Option<Tokens>,
        is_step_up: bool,
    ) -> (Self, Result<Next, Error>) {
        let mut flow = Self::new(challenge, held, is_step_up);
        let next = flow.discover(shared);
        (flow, next)
    }

    fn new(challenge: Challenge, held: Option<Tokens>, is_step_up: bool) -> Self {
        Self {
            only_looks: false,
            challenge,
            held,
            is_step_up,
            step: Step::Idle,
            candidates: VecDeque::new(),
            resource: None,
            scopes_supported: Vec::new(),
            wants_proof: false,
            issuer: String::new(),
            is_guessed: false,
            metadata: ServerMetadata::default(),
            refresh: None,
            client: None,
            redirect_uri: String::new(),
            asked: Vec::new(),
            state: Secret::default(),
            verifier: Secret::default(),
            form: Form::default(),
            is_refresh: false,
            nonce_was_given: false,
            was_registered_anew: false,
            saves: Vec::new(),
        }
    }

    /// Takes the outcome of the work under way.
    ///
    /// # Errors
    ///
    /// Why there will be no tokens.
    pub(super) fn advance(
        &mut self,
        now: Millis,
        shared: &mut Shared,
        outcome: Result<Outcome, Error>,
    ) -> Result<Next, Error> {
        match std::mem::replace(&mut self.step, Step::Idle) {
            Step::Idle => Ok(Next::Done(None)),
            Step::ResourceMetadata => self.take_resource_metadata(shared, outcome),
            Step::ServerMetadata => self.take_server_metadata(shared, outcome),
            // A store that fails is one in which nothing was kept.
            Step::KeptServer => Ok(self.take_kept_server(outcome.ok())),
            Step::KeptTokens => self.take_kept_tokens(now, shared, outcome.ok()),
            Step::KeptClient => self.take_kept_client(now, shared, outcome.ok()),
            Step::RedirectUri => self.take_redirect_uri(shared, outcome?),
            Step::Registration => self.take_registration(shared, outcome?),
            Step::Consent => self.take_callback(now, shared, outcome?),
            Step::Assertion => self.take_assertion(now, shared, outcome?),
            Step::Exchange(form) => self.take_exchange(now, shared, outcome?, &form),
            Step::PublicKey => {
                shared.public_key = text(outcome?).and_then(|key| RawJson::parse(key).ok());
                self.request_token(now, shared)
            }
            Step::ClientAssertion { unsigned } => self.take_client_assertion(now, shared, outcome?, &unsigned),
            Step::Proof { request, unsigned } => self.take_proof(outcome?, request, &unsigned),
            Step::Token => self.take_token(now, shared, outcome?),
        }
    }

    /// What is to be kept or forgotten since the last call.
    pub(super) fn take_saves(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.saves)
    }

    fn work(&mut self, step: Step, work: Work) -> Next {
        self.step = step;
        Next::Work(work)
    }

    fn save(&mut self, key: String, value: Option<Secret>) {
        self.saves.push(Effect::Save { key, value });
    }

    /// The tokens of which the server was last known to take some (look), by the note that names their issuer.
    fn take_kept_server(&mut self, outcome: Option<Outcome>) -> Next {
        let note = outcome.and_then(text);
        let note = note.as_deref().and_then(|note| Object::parse(note).ok());
        let Some(issuer) = note.as_ref().and_then(|note| note.string("issuer")) else { return Next::Done(None) };
        self.resource = note.and_then(|note| note.string("resource"));
        self.issuer = issuer;
        let key = self.tokens_key();
        self.work(Step::KeptTokens, Work::Load(key))
    }

    fn take_kept_tokens(&mut self, now: Millis, shared: &mut Shared, outcome: Option<Outcome>) -> Result<Next, Error> {
        let record = outcome.and_then(text);
        let kept = record.and_then(|record| Tokens::from_record(&record, self.issuer.clone(), self.resource.clone()));
        if self.only_looks {
            return Ok(Next::Done(kept));
        }
        let held = self.held.as_ref().filter(|held| held.issuer == self.issuer && held.resource == self.resource);
        // Somebody else who shares the store may have renewed them in the meantime.
        let wanted = scopes(self.challenge.scope.as_deref().unwrap_or_default());
        let is_news = |kept: &Tokens| {
            let is_other = held.is_none_or(|held| held.access != kept.access) && !kept.is_expired(now);
            is_other && (!self.is_step_up || wanted.iter().all(|scope| kept.asked.contains(scope)))
        };
        let held = held.cloned();
        if let Some(kept) = kept.as_ref().filter(|kept| !self.wants_proof && is_news(kept)) {
            let kept = kept.clone();
            self.save_server(shared);
            return Ok(Next::Done(Some(kept)));
        }
        self.choose_scopes(held.as_ref(), shared);
        // What another authorization server gave is of no use here.
        self.held = kept.filter(|kept| kept.refresh.is_some()).or(held);
        if !self.is_step_up {
            self.refresh = self.held.as_ref().and_then(|held| held.refresh.clone());
        }
        self.identify(now, shared)
    }

    /// Which scopes to ask for (revision 2026-07-28, "Scope Selection Strategy"): what the server wants now, else what it
    /// may want; and all that was asked for before when it wants more.
    fn choose_scopes(&mut self, before: Option<&Tokens>, shared: &Shared) {
        let challenged = scopes(self.challenge.scope.as_deref().unwrap_or_default());
        let options = &shared.options.scopes;
        let mut asked = match (challenged.is_empty(), options.is_empty()) {
            (false, _) => challenged,
            (true, false) => options.clone(),
            (true, true) => self.scopes_supported.clone(),
        };
        if self.is_step_up {
            asked.extend(before.map(|tokens| tokens.asked.clone()).unwrap_or_default());
        }
        let offline = "offline_access".to_owned();
        if shared.asks_person() && !asked.is_empty() && self.metadata.scopes_supported.contains(&offline) {
            asked.push(offline);
        }
        for scope in asked {
            if !self.asked.contains(&scope) {
                self.asked.push(scope);
            }
        }
    }

    /// Under which name the tokens are kept.
    fn tokens_key(&self) -> String {
        ["tokens ", &self.issuer, " ", self.resource.as_deref().unwrap_or_default()].concat()
    }
}

/// The text of an outcome.
fn text(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Text(text) => text,
        _ => None,
    }
}

/// The head and the body of an outcome; an empty one for what is none.
fn answer(outcome: Outcome) -> (ResponseHead, String) {
    match outcome {
        Outcome::Answer { head, body } => (head, String::from_utf8_lossy(&body).into_owned()),
        _ => Default::default(),
    }
}
