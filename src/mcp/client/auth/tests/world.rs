//! An MCP server, its authorization server and a person, all in memory, around one machine.

use std::collections::{BTreeMap, BTreeSet};

use super::super::form::query_value;
use super::super::random::hash;
use super::super::*;
use crate::json::Object;

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://as.example";
pub(super) const REDIRECT: &str = "http://127.0.0.1:4321/callback";

/// What became of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    Accepted,
    Passed(u16),
    Failed(ErrorKind, String),
}

pub(super) struct World {
    pub(super) machine: Authorizer,
    pub(super) now: Millis,
    pub(super) kept: BTreeMap<String, String>,
    pub(super) endings: BTreeMap<Ticket, Ending>,
    /// Everything that was ever printed of effects.
    pub(super) printed: String,
    /// Every secret that was ever given out.
    pub(super) secrets: BTreeSet<String>,
    /// The addresses asked, in order.
    pub(super) asked: Vec<String>,
    /// The pages shown, in order.
    pub(super) pages: Vec<String>,
    pub(super) sent: usize,
    pub(super) server: Server,
    /// What another process keeps while this one asks for tokens, having been faster.
    pub(super) overtaken: Option<String>,
    next: u64,
}

/// What the servers know, and how they behave.
pub(super) struct Server {
    pub(super) issuer: String,
    /// Replaces a document, or `None` for 404.
    pub(super) documents: BTreeMap<String, Option<String>>,
    /// Changes what the person comes back with.
    pub(super) callback: fn(String) -> String,
    pub(super) expires_in: u64,
    pub(super) challenge: String,
    /// The scope without which requests are refused with 403.
    pub(super) wanted_scope: Option<String>,
    /// Whether it refuses every token.
    pub(super) takes_nothing: bool,
    /// Whether the token endpoint refuses, repeating what it was sent.
    pub(super) refuses_token: bool,
    /// Whether it registers no client that names scopes.
    pub(super) refuses_scopes: bool,
    /// The status with which tokens are given.
    pub(super) token_status: u16,
    /// With what refresh tokens are refused.
    pub(super) refresh_refusal: Option<(u16, &'static str)>,
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) refreshable: BTreeSet<String>,
    codes: BTreeMap<String, (String, String)>,
    pub(super) clients: BTreeSet<String>,
    /// Whether it no longer knows the clients that it registered.
    pub(super) forgot_clients: bool,
    made: u64,
}

impl World {
    pub(super) fn new(options: AuthOptions) -> Self {
        let server = Server {
            issuer: ISSUER.to_owned(),
            documents: BTreeMap::new(),
            callback: |url| url,
            expires_in: 3_600,
            challenge: "Bearer".to_owned(),
            wanted_scope: None,
            takes_nothing: false,
            refuses_token: false,
            refuses_scopes: false,
            token_status: 200,
            refresh_refusal: None,
            tokens: BTreeMap::new(),
            refreshable: BTreeSet::new(),
            codes: BTreeMap::new(),
            clients: BTreeSet::new(),
            forgot_clients: false,
            made: 0,
        };
        Self {
            machine: Authorizer::new(SERVER, options, [9; 32]).unwrap(),
            now: Millis(1_700_000_000_000),
            kept: BTreeMap::new(),
            endings: BTreeMap::new(),
            printed: String::new(),
            secrets: BTreeSet::new(),
            asked: Vec::new(),
            pages: Vec::new(),
            sent: 0,
            server,
            overtaken: None,
            next: 0,
        }
    }

    /// Another process with the same store and the same servers.
    pub(super) fn restart(&mut self, options: AuthOptions) {
        self.machine = Authorizer::new(SERVER, options, [10; 32]).unwrap();
    }

    pub(super) fn start(&mut self, method: &'static str) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        let request = HttpRequest { method, url: SERVER.to_owned(), headers: Vec::new(), body: Vec::new() };
        self.machine.handle(self.now, Input::Request { ticket, request });
        ticket
    }

    /// A POST from its start to its end.
    pub(super) fn post(&mut self) -> Ending {
        let ticket = self.start("POST");
        self.run();
        self.endings[&ticket].clone()
    }

    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let effects: Vec<_> = std::iter::from_fn(|| self.machine.poll_effect()).collect();
        self.printed.push_str(&format!("{effects:?}{:?}", self.machine));
        effects
    }

    pub(super) fn run(&mut self) {
        for _ in 0..1_000 {
            let effects = self.effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.perform(effect));
        }
        panic!("it does not end");
    }

    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { ticket, request } => {
                self.sent += 1;
                let head = self.server.answer(&request);
                if !matches!(head.status, 401 | 403) {
                    self.endings.insert(ticket, Ending::Accepted);
                } else {
                    self.endings.insert(ticket, Ending::Passed(head.status));
                }
                self.machine.handle(self.now, Input::Answered { ticket, head });
            }
            Effect::Pass { ticket } => assert!(matches!(self.endings[&ticket], Ending::Passed(_))),
            Effect::Fail { ticket, error } => {
                self.printed.push_str(&format!("{error:?}{error}"));
                self.endings.insert(ticket, Ending::Failed(error.kind(), error.to_string()));
            }
            Effect::Save { key, value } => match value {
                Some(value) => drop(self.kept.insert(key, value.expose().to_owned())),
                None => drop(self.kept.remove(&key)),
            },
            Effect::Perform { task, work } => {
                let outcome = self.work(work);
                self.machine.handle(self.now, Input::Done { task, outcome });
            }
        }
    }

    fn work(&mut self, work: Work) -> Result<Outcome, Error> {
        Ok(match work {
            Work::Fetch(request) => {
                self.asked.push(request.url.clone());
                if let Some(record) = self.overtaken.take_if(|_| request.url.ends_with("/token")) {
                    self.server.refreshable.clear();
                    self.kept.insert(format!("tokens {ISSUER} {SERVER}"), record);
                }
                let (status, body) = self.server.authorize(&request, &mut self.secrets);
                let head = ResponseHead { status, headers: Vec::new() };
                Outcome::Answer { head, body: body.into_bytes() }
            }
            Work::Load(key) => Outcome::Text(self.kept.get(&key).cloned()),
            Work::RedirectUri => Outcome::Text(Some(REDIRECT.to_owned())),
            Work::AskPerson(url) => {
                self.pages.push(url.clone());
                Outcome::Text(Some(self.server.consent(&url, &mut self.secrets)))
            }
            Work::Assertion(request) => {
                self.secrets.insert("planted-assertion".to_owned());
                assert_eq!(request.issuer, ISSUER);
                Outcome::Text(Some("planted-assertion".to_owned()))
            }
            Work::PublicKey => Outcome::Text(Some(r#"{"kty":"EC"}"#.to_owned())),
            Work::Sign { message, .. } => Outcome::Signature(hash(&message).into_bytes()),
        })
    }
}

impl Server {
    fn make(&mut self, kind: &str, secrets: &mut BTreeSet<String>) -> String {
        self.made += 1;
        let made = format!("planted-{kind}-{}", self.made);
        secrets.insert(made.clone());
        made
    }

    /// The MCP server.
    pub(super) fn answer(&self, request: &HttpRequest) -> ResponseHead {
        let token = request.header("authorization").and_then(|value| value.split_once(' ')).map(|(_, token)| token);
        let scope = token.and_then(|token| self.tokens.get(token)).filter(|_| !self.takes_nothing);
        let refusal = match (scope, &self.wanted_scope) {
            (None, _) => Some((401, self.challenge.clone())),
            (Some(scope), Some(wanted)) if !scope.split(' ').any(|scope| scope == wanted) => {
                Some((403, format!(r#"Bearer error="insufficient_scope", scope="{wanted}""#)))
            }
            _ => None,
        };
        match refusal {
            Some((status, challenge)) => {
                ResponseHead { status, headers: vec![("www-authenticate".to_owned(), challenge)] }
            }
            None => ResponseHead { status: 200, headers: Vec::new() },
        }
    }

    /// The page: the person says yes.
    fn consent(&mut self, url: &str, secrets: &mut BTreeSet<String>) -> String {
        let value = |name| query_value(url, name).unwrap_or_default();
        assert_eq!(value("code_challenge_method"), "S256");
        assert!(self.clients.contains(&value("client_id")) || value("client_id") == "registered");
        let code = self.make("code", secrets);
        secrets.insert(value("state"));
        self.codes.insert(code.clone(), (value("code_challenge"), value("scope")));
        let state = value("state");
        let issuer = crate::percent::encode(&self.issuer);
        (self.callback)(format!("{}?code={code}&state={state}&iss={issuer}", value("redirect_uri")))
    }

    /// Everything that is fetched.
    fn authorize(&mut self, request: &HttpRequest, secrets: &mut BTreeSet<String>) -> (u16, String) {
        if let Some(document) = self.documents.get(&request.url) {
            return document.clone().map_or((404, String::new()), |document| (200, document));
        }
        let issuer = self.issuer.clone();
        let body = format!("http://body/?{}", String::from_utf8_lossy(&request.body));
        let value = |name| query_value(&body, name).unwrap_or_default();
        match request.url.strip_prefix(&issuer).unwrap_or(&request.url) {
            "https://mcp.example/.well-known/oauth-protected-resource/mcp" => {
                (200, format!(r#"{{"resource":"{SERVER}","authorization_servers":["{issuer}"]}}"#))
            }
            "/.well-known/oauth-authorization-server" => (
                200,
                format!(
                    r#"{{"issuer":"{issuer}","authorization_endpoint":"{issuer}/authorize","token_endpoint":"{issuer}/token",
                    "registration_endpoint":"{issuer}/register","code_challenge_methods_supported":["S256"],
                    "authorization_response_iss_parameter_supported":true}}"#
                ),
            ),
            "/register" if self.refuses_scopes && body.contains("scope") => {
                (400, r#"{"error":"invalid_client_metadata","error_description":"unknown scope"}"#.to_owned())
            }
            "/register" => {
                let (id, secret) = (format!("client-of-{issuer}-{}", self.made), self.make("secret", secrets));
                self.clients.insert(id.clone());
                self.forgot_clients = false;
                (201, format!(r#"{{"client_id":"{id}","client_secret":"{secret}"}}"#))
            }
            "/token" if self.refuses_token => {
                let repeated = String::from_utf8_lossy(&request.body).replace('&', " ");
                (400, format!(r#"{{"error":"invalid_request","error_description":"no: {repeated}"}}"#))
            }
            "/token" if self.forgot_clients => (401, r#"{"error":"invalid_client"}"#.to_owned()),
            "/token" => {
                secrets.extend([value("code_verifier")].into_iter().filter(|verifier| !verifier.is_empty()));
                let scope = match value("grant_type").as_str() {
                    "authorization_code" => match self.codes.remove(&value("code")) {
                        Some((challenge, scope)) if challenge == hash(&value("code_verifier")) => scope,
                        _ => return (400, r#"{"error":"invalid_grant"}"#.to_owned()),
                    },
                    "refresh_token" if self.refresh_refusal.is_some() => {
                        let (status, body) = self.refresh_refusal.unwrap();
                        return (status, body.to_owned());
                    }
                    // Each refresh token works once.
                    "refresh_token" if self.refreshable.remove(&value("refresh_token")) => String::new(),
                    "client_credentials" => value("scope"),
                    _ => return (400, r#"{"error":"invalid_grant"}"#.to_owned()),
                };
                let (access, refresh) = (self.make("access", secrets), self.make("refresh", secrets));
                self.tokens.insert(access.clone(), scope);
                self.refreshable.insert(refresh.clone());
                let expires_in = self.expires_in;
                let text = format!(
                    r#"{{"access_token":"{access}","token_type":"bearer","expires_in":{expires_in},"refresh_token":"{refresh}"}}"#
                );
                (self.token_status, text)
            }
            _ => (404, String::new()),
        }
    }
}

/// The members of the part of a signed token.
pub(super) fn claims(token: &str, part: usize) -> String {
    let part = token.split('.').nth(part).and_then(crate::base64url::decode).unwrap();
    Object::parse(std::str::from_utf8(&part).unwrap()).unwrap();
    String::from_utf8(part).unwrap()
}
