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
use super::tokens::Tokens;
use crate::error::Error;
use crate::json::{Object, RawJson};
use crate::model::{HttpRequest, ResponseHead};

/// What comes after a step.
#[derive(Debug)]
pub(super) enum Next {
    /// Work whose outcome leads on.
    Work(Box<Work>),
    /// The end: tokens, or none where it only looked for kept ones.
    Done(Option<Box<Tokens>>),
}

/// What the outcome of the work under way is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Nothing is under way.
    Idle,
    KeptServer,
    KeptTokens,
    /// What is kept after a refresh token was refused.
    RenewedTokens,
    ResourceMetadata,
    ServerMetadata,
    KeptClient,
    RedirectUri,
    Registration,
    Consent,
    Assertion,
    Exchange,
    PublicKey,
    ClientAssertion,
    Proof,
    Token,
}

/// An authorization under way.
#[derive(Debug)]
pub(super) struct Flow {
    /// Whether it only looks for tokens that were kept.
    pub(super) only_looks: bool,
    challenge: Challenge,
    /// The tokens that no longer do.
    held: Option<Box<Tokens>>,
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
    /// The token request that waits for its proof.
    request: Option<HttpRequest>,
    /// What is being signed.
    unsigned: String,
    is_refresh: bool,
    nonce_was_given: bool,
    was_registered_anew: bool,
    /// Whether it registers without the scopes, having been refused with them.
    registers_plainly: bool,
    /// Whether somebody else who shares the store renewed the tokens meanwhile.
    was_overtaken: bool,
    /// What is to be kept, or to be forgotten.
    saves: Vec<Effect>,
}

impl Flow {
    /// Looks for tokens that were kept.
    pub(super) fn look(shared: &Shared) -> (Box<Self>, Work) {
        let mut flow = Box::new(Self::new(Challenge::default(), None, false));
        flow.only_looks = true;
        flow.step = Step::KeptServer;
        (flow, Work::Load(shared.server_key()))
    }

    /// Obtains tokens in place of those that are held.
    pub(super) fn authorize(
        shared: &Shared,
        challenge: Challenge,
        held: Option<Box<Tokens>>,
        is_step_up: bool,
    ) -> (Box<Self>, Result<Next, Error>) {
        let mut flow = Box::new(Self::new(challenge, held, is_step_up));
        let next = flow.discover(shared);
        (flow, next)
    }

    fn new(challenge: Challenge, held: Option<Box<Tokens>>, is_step_up: bool) -> Self {
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
            request: None,
            unsigned: String::new(),
            is_refresh: false,
            nonce_was_given: false,
            was_registered_anew: false,
            registers_plainly: false,
            was_overtaken: false,
            saves: Vec::new(),
        }
    }

    /// Takes the outcome of the work under way.
    ///
    /// # Errors
    ///
    /// Why there will be no tokens.
    pub(super) fn advance(&mut self, shared: &mut Shared, outcome: Result<Outcome, Error>) -> Result<Next, Error> {
        let step = std::mem::replace(&mut self.step, Step::Idle);
        let given = match (outcome, step) {
            (Ok(outcome), _) => Given::from(outcome),
            // A document that cannot be had is not there, and in a store that fails nothing was kept.
            (Err(_), Step::ResourceMetadata | Step::ServerMetadata) => Given::default(),
            (Err(_), Step::KeptServer | Step::KeptTokens | Step::KeptClient | Step::RenewedTokens) => Given::default(),
            (Err(error), _) => return Err(error),
        };
        match step {
            Step::Idle => Ok(Next::Done(None)),
            Step::ResourceMetadata => self.take_resource_metadata(shared, &given),
            Step::ServerMetadata => self.take_server_metadata(shared, &given),
            Step::KeptServer => Ok(self.take_kept_server(&given)),
            Step::KeptTokens => self.take_kept_tokens(shared, &given),
            Step::RenewedTokens => self.take_renewed_tokens(shared, &given),
            Step::KeptClient => self.take_kept_client(shared, &given),
            Step::RedirectUri => self.take_redirect_uri(shared, given),
            Step::Registration => self.take_registration(shared, &given),
            Step::Consent => self.take_callback(shared, &given),
            Step::Assertion => self.take_assertion(shared, given),
            Step::Exchange => self.take_exchange(shared, &given),
            Step::PublicKey => {
                shared.public_key = RawJson::parse(given.text).ok();
                self.request_token(shared)
            }
            Step::ClientAssertion => Ok(self.take_client_assertion(shared, &given)),
            Step::Proof => Ok(self.take_proof(&given)),
            Step::Token => self.take_token(shared, &given),
        }
    }

    /// What is to be kept or forgotten since the last call.
    pub(super) fn take_saves(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.saves)
    }

    fn work(&mut self, step: Step, work: Work) -> Next {
        self.step = step;
        Next::Work(Box::new(work))
    }

    fn save(&mut self, key: String, value: Option<Secret>) {
        self.saves.push(Effect::Save { key, value });
    }

    /// The tokens of which the server was last known to take some (look), by the note that names their issuer.
    fn take_kept_server(&mut self, given: &Given) -> Next {
        let note = given.object().unwrap_or_default();
        let Some(issuer) = note.string("issuer") else { return Next::Done(None) };
        self.resource = note.string("resource");
        self.issuer = issuer;
        let key = self.tokens_key();
        self.work(Step::KeptTokens, Work::Load(key))
    }

    fn take_kept_tokens(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        let kept = Tokens::from_record(&given.text, &self.issuer, self.resource.as_deref()).map(Box::new);
        if self.only_looks {
            return Ok(Next::Done(kept));
        }
        let held = self.held.as_ref().filter(|held| held.issuer == self.issuer && held.resource == self.resource);
        let held = held.cloned();
        // Somebody else who shares the store may have renewed them in the meantime.
        if let Some(kept) = &kept
            && !self.wants_proof
            && !kept.is_expired(shared.now)
            && held.as_ref().is_none_or(|held| held.access != kept.access)
            && (!self.is_step_up || kept.were_asked(&self.challenge.scopes()))
        {
            let kept = kept.clone();
            self.save_server(shared);
            return Ok(Next::Done(Some(kept)));
        }
        self.choose_scopes(held.as_deref(), shared);
        // What another authorization server gave is of no use here.
        self.held = kept.filter(|kept| kept.refresh.is_some()).or(held);
        if !self.is_step_up {
            self.refresh = self.held.as_ref().and_then(|held| held.refresh.clone());
        }
        self.identify(shared)
    }

    /// Which scopes to ask for (revision 2026-07-28, "Scope Selection Strategy"): what the server wants now, else what it
    /// may want; and all that was asked for before when it wants more.
    fn choose_scopes(&mut self, before: Option<&Tokens>, shared: &Shared) {
        let challenged = self.challenge.scopes();
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

/// What a piece of work gave.
#[derive(Default)]
struct Given {
    /// Of an answer; the status is 0 where there is none.
    head: ResponseHead,
    /// A text, or the body of an answer; empty where there is none.
    text: String,
    signature: Vec<u8>,
}

impl Given {
    /// The text as an object.
    fn object(&self) -> Option<Object<'_>> {
        Object::parse(&self.text).ok()
    }

    /// The document of an answer that has one.
    fn document(&self) -> Option<Object<'_>> {
        if (200..300).contains(&self.head.status) { self.object() } else { None }
    }
}

impl From<Outcome> for Given {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answer { head, body } => {
                Self { head, text: String::from_utf8_lossy(&body).into_owned(), ..Self::default() }
            }
            Outcome::Text(text) => Self { text: text.unwrap_or_default(), ..Self::default() },
            Outcome::Signature(signature) => Self { signature, ..Self::default() },
        }
    }
}
