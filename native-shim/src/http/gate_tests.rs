use crablet::Millis;
use crablet::mcp::transport::shim::Token;
use hyper::header::{HOST, HeaderName, HeaderValue};

use super::*;
use crate::gate::tests::{NOW, config};

const PAGE: &str = "https://app.example";

fn token(key: u8) -> Token {
    Token::from_random([key; 9], [key; 32])
}

fn grant(key: u8, origins: &[&str]) -> HttpGrant {
    let origins = origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect();
    HttpGrant::new(&token(key), origins, vec!["files".into(), "narrow".into()], NOW)
}

/// A request of a program without an origin, good unless a test changes it.
struct Attempt {
    method: Method,
    target: &'static str,
    headers: Vec<(HeaderName, String)>,
    now: Millis,
    run_origins: Option<Vec<Origin>>,
}

impl Attempt {
    fn good() -> Self {
        let headers =
            vec![(HOST, "127.0.0.1:6735".to_owned()), (AUTHORIZATION, format!("Bearer {}", token(2).reveal()))];
        Self { method: Method::POST, target: "/mcp/files", headers, now: NOW, run_origins: None }
    }

    fn of_a_page() -> Self {
        let mut attempt = Self::good().with(ORIGIN, PAGE);
        attempt.headers[1].1 = format!("Bearer {}", token(1).reveal());
        attempt
    }

    fn with(mut self, name: HeaderName, value: &str) -> Self {
        match self.headers.iter_mut().find(|(present, _)| *present == name) {
            Some(header) => value.clone_into(&mut header.1),
            None => self.headers.push((name, value.to_owned())),
        }
        self
    }

    fn without(mut self, name: &HeaderName) -> Self {
        self.headers.retain(|(present, _)| present != name);
        self
    }

    fn check_with(&self, lockout: &mut Lockout) -> Result<Admitted, Refused> {
        let config = config();
        let grants = [grant(1, &[PAGE]), grant(2, &[])];
        let gate =
            Gate { config: &config, port: 6735, origins: self.run_origins.as_deref(), grants: &[], now: self.now };
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        HttpGate { gate, grants: &grants }.check(&self.method, self.target, &headers, lockout)
    }

    fn status(&self) -> u16 {
        let outcome = self.check_with(&mut Lockout::default());
        outcome.map_or_else(|refused| refused.refusal.status.as_u16(), |_| 200)
    }
}

#[test]
fn who_has_the_right_token_comes_in() {
    let admitted = Attempt::good().check_with(&mut Lockout::default()).unwrap();
    let key_id = Some(token(2).key_id().to_owned());
    assert_eq!(admitted, Admitted { server: "files".into(), origin: None, key_id });
    let admitted = Attempt::of_a_page().check_with(&mut Lockout::default()).unwrap();
    assert_eq!((admitted.origin.as_deref(), admitted.key_id.as_deref()), (Some(PAGE), Some(token(1).key_id())));
    assert_eq!(Attempt::good().with(AUTHORIZATION, &format!("bearer  {}", token(2).reveal())).status(), 200);
    assert_eq!(Attempt::good().with(HOST, "localhost:6735").status(), 200);
}

#[test]
fn everything_else_stays_out() {
    let at = |target| Attempt { target, ..Attempt::good() }.status();
    for target in ["/", "/mcp", "/mcp/", "/mcp/file", "/mcp/files/", "/mcp/files?a=b", "/mcp/%66iles", "/servers/files"]
    {
        assert_eq!(at(target), 404, "{target}");
    }
    assert_eq!(at("/mcp/other"), 403);
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:6735", "[::1]:6735", ""] {
        assert_eq!(Attempt::good().with(HOST, host).status(), 403, "{host}");
    }
    for origin in ["null", "https://evil.example", "https://app.example.evil.example", "http://app.example", ""] {
        assert_eq!(Attempt::of_a_page().with(ORIGIN, origin).status(), 403, "{origin}");
    }
    let wrong = [
        format!("Bearer {}", Token::from_random([2; 9], [9; 32]).reveal()),
        format!("Bearer {}", token(3).reveal()),
        format!("Basic {}", token(2).reveal()),
        token(2).reveal(),
        "Bearer ".to_owned(),
        String::new(),
    ];
    for header in wrong {
        assert_eq!(Attempt::good().with(AUTHORIZATION, &header).status(), 401, "{header}");
    }
    assert_eq!(Attempt::good().without(&AUTHORIZATION).status(), 401);
    // A page's token is no program's, and the other way round.
    assert_eq!(Attempt::of_a_page().without(&ORIGIN).status(), 403);
    assert_eq!(Attempt::good().with(ORIGIN, PAGE).status(), 403);
    assert_eq!(Attempt { target: "/mcp/narrow", ..Attempt::of_a_page() }.status(), 403);
    let others = Some(vec![Origin::parse("https://other.example").unwrap()]);
    assert_eq!(Attempt { run_origins: others, ..Attempt::of_a_page() }.status(), 403);
    let mut twice = Attempt::good();
    twice.headers.push((AUTHORIZATION, "Bearer x".to_owned()));
    assert_eq!(twice.status(), 403);
}

#[test]
fn the_checks_come_in_their_order() {
    let wrong = Attempt::good().with(AUTHORIZATION, "Bearer x").with(ORIGIN, "null").with(HOST, "evil.example");
    assert_eq!(Attempt { target: "/mcp/none", ..wrong }.status(), 404);
    let wrong = Attempt::good().with(AUTHORIZATION, "Bearer x").with(ORIGIN, "null");
    assert_eq!(wrong.status(), 403);
}

#[test]
fn only_an_allowed_origin_is_told_whether_it_may_ask() {
    let preflight = |origin| {
        let attempt = Attempt::good().without(&AUTHORIZATION).with(ORIGIN, origin);
        Attempt { method: Method::OPTIONS, ..attempt.with(ACCESS_CONTROL_REQUEST_METHOD, "POST") }
    };
    let admitted = preflight(PAGE).check_with(&mut Lockout::default()).unwrap();
    assert_eq!((admitted.origin.as_deref(), admitted.key_id), (Some(PAGE), None));
    assert_eq!(preflight("https://evil.example").status(), 403);
    assert_eq!(Attempt { target: "/mcp/other", ..preflight(PAGE) }.status(), 403);
    // What only looks like the question needs a token.
    assert_eq!(Attempt { method: Method::POST, ..preflight(PAGE) }.status(), 401);
    assert_eq!(preflight(PAGE).without(&ORIGIN).status(), 401);
}

#[test]
fn wrong_tokens_lock_out_and_missing_ones_do_not() {
    let mut lockout = Lockout::default();
    let mut status = |attempt: Attempt| {
        let outcome = attempt.check_with(&mut lockout);
        outcome.map_or_else(|refused| refused.refusal.status.as_u16(), |_| 200)
    };
    for _ in 0..50 {
        assert_eq!(status(Attempt::good().without(&AUTHORIZATION)), 401);
    }
    for _ in 0..10 {
        assert_eq!(status(Attempt::good().with(AUTHORIZATION, "Bearer x")), 401);
    }
    assert_eq!(status(Attempt::good()), 429);
    // Others are not meant.
    assert_eq!(status(Attempt::of_a_page()), 200);
    assert_eq!(status(Attempt { now: Millis(NOW.0 + 30_000), ..Attempt::good() }), 200);
}
