//! OAuth 2.1 for MCP servers over HTTP, as a machine.
//!
//! [`Authorizer`] stands between a transport and the network: every request goes through it and comes out with a token,
//! and a refusal (401, or 403 for want of scopes) comes back in. It then finds the authorization server, makes itself
//! known, obtains tokens, and sends what was refused once more, with one authorization for all requests that wait.
//!
//! Sources: revision 2026-07-28, "Authorization" and its extensions for client credentials, enterprise-managed
//! authorization and DPoP; revision 2025-03-26 for servers without metadata; RFC 9728, RFC 8414, RFC 7591, RFC 7636,
//! RFC 8707, RFC 9207, RFC 7523, RFC 8693, RFC 9449.
//!
//! ```
//! use crablet::mcp::client::auth::{AuthOptions, Authorizer, Effect, Input, Ticket};
//! # use crablet::model::HttpRequest;
//! # use crablet::Millis;
//! let mut authorizer = Authorizer::new("https://mcp.example/mcp", AuthOptions::default(), [7; 32])?;
//! let request = HttpRequest { method: "POST", url: "https://mcp.example/mcp".into(), headers: vec![], body: vec![] };
//! authorizer.handle(Millis(0), Input::Request { ticket: Ticket(1), request });
//! // The first thing to do is to look for tokens that were kept.
//! assert!(matches!(authorizer.poll_effect(), Some(Effect::Perform { .. })));
//! # Ok::<(), crablet::Error>(())
//! ```

mod address;
mod challenge;
mod flow;
mod form;
mod io;
mod metadata;
mod options;
mod random;
mod registration;
mod signed;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::VecDeque;

pub use io::{AssertionRequest, DOCUMENT_LIMIT, Effect, Input, KeyName, Outcome, TaskId, Ticket, Work};
pub use options::{AuthOptions, Grant, IdentityProvider, PrivateKey, RegisteredClient, Secret, SigningAlgorithm};

use self::address::Address;
use self::challenge::Challenge;
use self::flow::{Flow, Next};
use self::random::Random;
use self::signed::{Proof, signed};
use self::tokens::Tokens;
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{HttpRequest, ResponseHead};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// How many authorizations may follow one another without a request that the server took. A person is not asked again and
/// again by a server that is never content.
const FRUITLESS_LIMIT: u32 = 3;

/// How long after the last of them the server gets another chance, in milliseconds.
const FRUITLESS_PAUSE: u64 = 60_000;

/// How often a request is sent again because there are newer tokens than those it was sent with.
const RESEND_LIMIT: u32 = 3;

/// The machine. Give it [`Input`]s, and after each take [`Effect`]s until there are none.
#[derive(Debug)]
pub struct Authorizer {
    shared: Shared,
    requests: OrderedMap<Ticket, Request>,
    tokens: Option<Box<Tokens>>,
    /// How many tokens there were so far.
    generation: u64,
    flow: Option<(TaskId, Box<Flow>)>,
    /// Whether tokens that were kept have been looked for.
    has_looked: bool,
    /// Proofs that are being signed, and what they are for.
    proofs: OrderedMap<TaskId, (Ticket, String)>,
    next_task: u64,
    /// Whether the server took any request so far.
    was_taken: bool,
    /// What the MCP server wants repeated in proofs.
    resource_nonce: Option<String>,
    fruitless: u32,
    last_flow: Millis,
    effects: VecDeque<Effect>,
}

/// What the authorizations of one server have in common.
#[derive(Debug)]
struct Shared {
    now: Millis,
    options: AuthOptions,
    /// The address of the server, as it was given.
    url: String,
    server: Address,
    random: Random,
    /// The public half of the key that tokens are bound to.
    public_key: Option<RawJson>,
    /// What the authorization server wants repeated in proofs.
    authorization_nonce: Option<String>,
}

impl Shared {
    fn asks_person(&self) -> bool {
        self.options.grant == Grant::AuthorizationCode
    }

    /// Under which name it is kept which tokens the server takes.
    fn server_key(&self) -> String {
        ["server ", &self.url].concat()
    }
}

#[derive(Debug)]
struct Request {
    request: HttpRequest,
    /// The generation of the tokens it was sent with; `None` while it waits.
    sent_with: Option<u64>,
    resent: u32,
    /// What was done about its refusals. Each helps once.
    was_authorized: bool,
    was_stepped_up: bool,
    had_nonce: bool,
}

impl Authorizer {
    /// A machine for the server at this address. The seed is what the secrets of each authorization are made of: it must be
    /// unpredictable and new.
    ///
    /// # Errors
    ///
    /// `invalid-input` for an address that tokens must not be sent to: only `https`, and `http` on this machine.
    pub fn new(url: &str, options: AuthOptions, seed: [u8; 32]) -> Result<Self, Error> {
        let shared = Shared {
            now: Millis::default(),
            options,
            server: Address::of_server(url)?,
            url: url.split('#').next().unwrap_or_default().to_owned(),
            random: Random::new(seed),
            public_key: None,
            authorization_nonce: None,
        };
        Ok(Self {
            shared,
            requests: OrderedMap::new(),
            tokens: None,
            generation: 0,
            flow: None,
            has_looked: false,
            proofs: OrderedMap::new(),
            next_task: 0,
            was_taken: false,
            resource_nonce: None,
            fruitless: 0,
            last_flow: Millis::default(),
            effects: VecDeque::new(),
        })
    }

    /// Takes note of what happened. Never fails and never blocks.
    pub fn handle(&mut self, now: Millis, input: Input) {
        match input {
            Input::Request { ticket, request } => {
                let request = Request {
                    request,
                    sent_with: None,
                    resent: 0,
                    was_authorized: false,
                    was_stepped_up: false,
                    had_nonce: false,
                };
                self.requests.insert(ticket, request);
                self.dispatch(now, ticket);
            }
            Input::Answered { ticket, head } => self.take_answer(now, ticket, &head),
            Input::Dropped { ticket } => drop(self.requests.remove(&ticket)),
            Input::Done { task, outcome } => self.take_outcome(now, task, outcome),
        }
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Sends a request, unless it has to wait for tokens.
    fn dispatch(&mut self, now: Millis, ticket: Ticket) {
        if self.flow.is_some() {
            return;
        }
        if !std::mem::replace(&mut self.has_looked, true) {
            let (flow, work) = Flow::look(&self.shared);
            self.flow = Some((self.perform(work), flow));
            return;
        }
        let can_renew = |tokens: &Tokens| tokens.is_expired(now) && tokens.refresh.is_some();
        if self.tokens.as_deref().is_some_and(can_renew) && self.may_authorize(now) {
            return self.authorize(now, Challenge::default(), false);
        }
        self.send(now, ticket);
    }

    fn send(&mut self, now: Millis, ticket: Ticket) {
        let Some(waiting) = self.requests.get_mut(&ticket) else { return };
        waiting.sent_with = Some(self.generation);
        let mut request = waiting.request.clone();
        let Some(tokens) = &self.tokens else { return self.effects.push_back(Effect::Send { ticket, request }) };
        let token = tokens.access.expose();
        let Some(public_key) = self.shared.public_key.as_ref().filter(|_| tokens.is_bound) else {
            request.set_header("authorization", ["Bearer ", token].concat());
            return self.effects.push_back(Effect::Send { ticket, request });
        };
        let nonce = self.resource_nonce.as_deref();
        let proof = Proof { method: request.method, url: &request.url, token: Some(token), nonce };
        let unsigned = proof.unsigned(now, &mut self.shared.random, public_key);
        let task = self.perform(Work::Sign { key: KeyName::Proof, message: unsigned.clone() });
        self.proofs.insert(task, (ticket, unsigned));
    }

    fn take_proof(&mut self, ticket: Ticket, unsigned: &str, outcome: Result<Outcome, Error>) {
        let Some(waiting) = self.requests.get(&ticket) else { return };
        let error = match (outcome, &self.tokens) {
            (Ok(Outcome::Signature(signature)), Some(tokens)) => {
                let mut request = waiting.request.clone();
                request.set_header("authorization", ["DPoP ", tokens.access.expose()].concat());
                request.set_header("dpop", signed(unsigned, &signature));
                return self.effects.push_back(Effect::Send { ticket, request });
            }
            (Err(error), _) => error,
            _ => refused(&["the host gave no signature"]),
        };
        self.requests.remove(&ticket);
        self.effects.push_back(Effect::Fail { ticket, error });
    }

    fn take_answer(&mut self, now: Millis, ticket: Ticket, head: &ResponseHead) {
        if let Some(nonce) = head.header("dpop-nonce") {
            self.resource_nonce = Some(nonce.to_owned());
        }
        let is_refusal = matches!(head.status, 401 | 403);
        self.was_taken |= (200..300).contains(&head.status);
        if !is_refusal || !self.resolve(now, ticket, head) {
            let answered = self.requests.remove(&ticket);
            if is_refusal {
                self.effects.push_back(Effect::Pass { ticket });
            } else if answered.is_some_and(|request| request.sent_with.is_some_and(|generation| generation > 0)) {
                self.fruitless = 0;
            }
        }
    }

    /// Does something about a refusal; `false` when nothing helps.
    fn resolve(&mut self, now: Millis, ticket: Ticket, head: &ResponseHead) -> bool {
        let (challenge, may_authorize) = (Challenge::read(head), self.may_authorize(now));
        let Some(refused) = self.requests.get_mut(&ticket) else { return false };
        let is_current = refused.sent_with == Some(self.generation);
        // Some servers say so with 401.
        let is_about_scope = challenge.error.as_deref() == Some("insufficient_scope");
        if head.status == 403 && !is_about_scope {
            return false;
        }
        let is_bound = self.tokens.as_ref().is_some_and(|tokens| tokens.is_bound);
        if is_bound && challenge.error.as_deref() == Some("use_dpop_nonce") {
            let is_first = !std::mem::replace(&mut refused.had_nonce, true);
            if is_first {
                self.send(now, ticket);
            }
            return is_first;
        }
        if !is_current && refused.resent < RESEND_LIMIT {
            refused.resent += 1;
            refused.sent_with = None;
            self.dispatch(now, ticket);
            return true;
        }
        // Nobody waits for the answers of these, but for that of a GET which opens the connection (HTTP+SSE).
        let request = &refused.request;
        let is_listening = request.method == "GET" && request.header("last-event-id").is_none() && self.was_taken;
        if is_listening || request.method == "DELETE" {
            return false;
        }
        let is_step_up = is_about_scope && self.tokens.is_some();
        let had_help = if is_step_up { &mut refused.was_stepped_up } else { &mut refused.was_authorized };
        if std::mem::replace(had_help, true) {
            return false;
        }
        refused.sent_with = None;
        if self.flow.is_some() {
            return true;
        }
        // Asking once more for the same cannot help.
        let knows_no_more = self.tokens.as_ref().is_none_or(|tokens| tokens.were_asked(&challenge.scopes()));
        if !may_authorize || (is_step_up && knows_no_more) {
            return false;
        }
        self.authorize(now, challenge, is_step_up);
        true
    }

    fn may_authorize(&self, now: Millis) -> bool {
        self.fruitless < FRUITLESS_LIMIT || now.since(self.last_flow) > FRUITLESS_PAUSE
    }

    fn authorize(&mut self, now: Millis, challenge: Challenge, is_step_up: bool) {
        if now.since(self.last_flow) > FRUITLESS_PAUSE {
            self.fruitless = 0;
        }
        self.fruitless += 1;
        self.last_flow = now;
        let (flow, next) = Flow::authorize(&self.shared, challenge, self.tokens.clone(), is_step_up);
        self.go_on(now, flow, next);
    }

    fn take_outcome(&mut self, now: Millis, task: TaskId, outcome: Result<Outcome, Error>) {
        if let Some((ticket, unsigned)) = self.proofs.remove(&task) {
            return self.take_proof(ticket, &unsigned, outcome);
        }
        if let Some((_, mut flow)) = self.flow.take_if(|(awaited, _)| *awaited == task) {
            self.shared.now = now;
            let next = flow.advance(&mut self.shared, outcome);
            self.go_on(now, flow, next);
        }
    }

    fn go_on(&mut self, now: Millis, mut flow: Box<Flow>, next: Result<Next, Error>) {
        self.effects.extend(flow.take_saves());
        let error = match next {
            Ok(Next::Work(work)) => {
                self.flow = Some((self.perform(*work), flow));
                return;
            }
            Ok(Next::Done(tokens)) => {
                if tokens.is_some() {
                    self.tokens = tokens;
                    self.generation += 1;
                }
                None
            }
            Err(error) => Some(error),
        };
        let waiting = self.requests.iter().filter(|(_, request)| request.sent_with.is_none());
        for ticket in waiting.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            match &error {
                Some(error) => {
                    self.requests.remove(&ticket);
                    self.effects.push_back(Effect::Fail { ticket, error: Error::clone(error) });
                }
                // Kept tokens may have ended; new ones are used even when they end at once.
                None if flow.only_looks => self.dispatch(now, ticket),
                None => self.send(now, ticket),
            }
        }
    }

    fn perform(&mut self, work: Work) -> TaskId {
        let task = TaskId(self.next_task);
        self.next_task += 1;
        self.effects.push_back(Effect::Perform { task, work });
        task
    }
}

/// Why an authorization came to nothing: an error with these parts of a sentence.
fn refused(parts: &[&str]) -> Error {
    Error::new(ErrorKind::Auth, parts.concat())
}
