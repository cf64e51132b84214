use std::collections::BTreeMap;

use hyper::header::HeaderValue;

use super::*;
use crate::config::Server;
use crate::limits::Limits;

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);
const ORIGIN_HEADER: &str = "chrome-extension://allowedid";

/// A configuration with three servers, of which one is for a single origin.
pub(crate) fn config() -> Config {
    let server = |origins: Vec<Origin>| Server {
        command: "x".into(),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        directory: None,
        limits: Limits::default(),
        origins,
    };
    let servers = BTreeMap::from([
        ("files".to_owned(), server(Vec::new())),
        ("narrow".to_owned(), server(vec![Origin::parse("https://only.example").unwrap()])),
        ("other".to_owned(), server(Vec::new())),
    ]);
    Config { servers, remarks: Vec::new() }
}

fn grant(key: u8, origins: &[&str]) -> Grant {
    let origins = origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect();
    let token = Token::from_random([key; 9], [key; 32]);
    let exposes = (key == 3).then(Exposure::default);
    Grant { exposes, ..Grant::new(token, origins, vec!["files".into(), "narrow".into()], NOW) }
}

/// A handshake, good unless a test changes it.
struct Attempt {
    method: Method,
    target: String,
    host: &'static str,
    origin: Option<&'static str>,
    /// What the proof is made of; it follows the headers unless a test sets it apart.
    token: Token,
    proof_authority: Option<&'static str>,
    proof_server: &'static str,
    proof_origin: Option<&'static str>,
    proof_at: Millis,
    nonce: [u8; 16],
    extra: Vec<(HeaderName, &'static str)>,
}

impl Attempt {
    fn good() -> Self {
        Self {
            method: Method::GET,
            target: "/servers/files".into(),
            host: "127.0.0.1:6735",
            origin: Some(ORIGIN_HEADER),
            token: Token::from_random([1; 9], [1; 32]),
            proof_authority: None,
            proof_server: "files",
            proof_origin: None,
            proof_at: NOW,
            nonce: [7; 16],
            extra: Vec::new(),
        }
    }

    fn headers(&self) -> HeaderMap {
        let context = ProofContext {
            authority: self.proof_authority.unwrap_or(self.host),
            origin: self.proof_origin.or(self.origin).unwrap_or_default(),
            server: self.proof_server,
        };
        let proof = ClientProof::new(&self.token, self.nonce, self.proof_at, context).to_subprotocol();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(self.host));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(&format!("{SUBPROTOCOL}, {proof}")).unwrap());
        if let Some(origin) = self.origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        for (name, value) in &self.extra {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    fn check_with(&self, now: Millis, run_origins: Option<&[Origin]>, memory: &mut Memory) -> Result<(), u16> {
        let config = config();
        let grants = [grant(1, &[ORIGIN_HEADER]), grant(2, &[]), grant(3, &[ORIGIN_HEADER])];
        let gate = Gate { config: &config, port: 6735, origins: run_origins, grants: &grants, now };
        let admission = gate.check(&self.method, &self.target, &self.headers(), memory);
        admission
            .map(|admission| assert_eq!(admission.server, self.proof_server))
            .map_err(|refusal| refusal.status.as_u16())
    }

    fn check(&self) -> Result<(), u16> {
        self.check_with(NOW, None, &mut Memory::default())
    }
}

#[test]
fn case_157_websocket_origin_token() {
    let bad_token = Token::from_random([1; 9], [9; 32]);
    let native = Token::from_random([2; 9], [2; 32]);
    let attempts = [
        (Attempt { origin: Some("https://evil.example"), ..Attempt::good() }, Err(403)),
        (Attempt { token: bad_token, ..Attempt::good() }, Err(401)),
        (Attempt { origin: None, ..Attempt::good() }, Err(403)),
        (Attempt::good(), Ok(())),
        (Attempt { origin: Some("null"), ..Attempt::good() }, Err(403)),
        (Attempt { origin: Some("http://localhost.evil.example"), ..Attempt::good() }, Err(403)),
        (
            Attempt { host: "rebind.example:7000", origin: Some("http://rebind.example:7000"), ..Attempt::good() },
            Err(403),
        ),
        (Attempt { origin: None, token: native, ..Attempt::good() }, Ok(())),
    ];
    for (index, (attempt, expected)) in attempts.iter().enumerate() {
        assert_eq!(attempt.check(), *expected, "attempt {index}");
    }
}

#[test]
fn the_checks_come_in_their_order() {
    // Everything is wrong: each repair shows the next check.
    let mut attempt = Attempt {
        target: "/".into(),
        host: "evil.example",
        origin: Some("https://evil.example"),
        token: Token::from_random([9; 9], [9; 32]),
        extra: vec![(UPGRADE, "h2c")],
        ..Attempt::good()
    };
    assert_eq!(attempt.check(), Err(404));
    attempt.target = "/servers/files".into();
    assert_eq!(attempt.check(), Err(403));
    attempt.host = "localhost:6735";
    assert_eq!(attempt.check(), Err(403));
    attempt.origin = Some(ORIGIN_HEADER);
    assert_eq!(attempt.check(), Err(401));
    attempt.token = Attempt::good().token;
    assert_eq!(attempt.check(), Ok(()));
}

#[test]
fn a_path_is_exact() {
    for target in
        ["/servers/files/", "/servers/files?x=1", "/servers/FILES", "/servers", "/servers/fil%65s", "//servers/files"]
    {
        assert_eq!(Attempt { target: target.into(), ..Attempt::good() }.check(), Err(404), "{target}");
    }
    assert_eq!(Attempt { method: Method::POST, ..Attempt::good() }.check(), Err(404));
}

#[test]
fn a_host_leaves_out_the_default_port() {
    let config = Config::default();
    let check = |port, host| {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        Gate { config: &config, port, origins: None, grants: &[], now: NOW }.check_host(&headers).is_ok()
    };
    for host in ["127.0.0.1", "localhost", "localhost:80"] {
        assert!(check(80, host), "{host}");
        assert!(!check(6735, host), "{host}");
    }
    for host in ["", "127.0.0.1:", "127.0.0.1:080", "evil.example", "evil.example:80", "localhost:6735", ":80"] {
        assert!(!check(80, host), "{host}");
    }
}

#[test]
fn a_host_is_this_shim() {
    for host in ["127.0.0.1", "127.0.0.1:6736", "localhost.evil.example:6735", "0.0.0.0:6735", "evil.example:6735", ""]
    {
        assert_eq!(Attempt { host, ..Attempt::good() }.check(), Err(403), "{host}");
    }
    assert_eq!(Attempt { extra: vec![(HOST, "127.0.0.1:6735")], ..Attempt::good() }.check(), Err(403));
    assert_eq!(Attempt { extra: vec![(ORIGIN, ORIGIN_HEADER)], ..Attempt::good() }.check(), Err(403));
}

#[test]
fn a_proof_for_elsewhere_is_refused() {
    for attempt in [
        Attempt { proof_authority: Some("127.0.0.1:9999"), ..Attempt::good() },
        Attempt { proof_authority: Some("localhost:6735"), ..Attempt::good() },
        Attempt { proof_server: "other", ..Attempt::good() },
        Attempt { proof_origin: Some("https://other.example"), ..Attempt::good() },
    ] {
        assert_eq!(attempt.check(), Err(401));
    }
}

#[test]
fn a_proof_is_fresh_and_used_once() {
    let mut used = Memory::default();
    let attempt = Attempt::good();
    assert_eq!(attempt.check_with(NOW.after(60_001), None, &mut used), Err(401));
    assert_eq!(attempt.check_with(NOW.after(60_000), None, &mut used), Ok(()));
    assert_eq!(attempt.check_with(NOW.after(60_000), None, &mut used), Err(401));
    // One that is ahead of the clock stays used for as long as it is fresh.
    let ahead = Attempt { proof_at: NOW.after(60_000), nonce: [8; 16], ..Attempt::good() };
    assert_eq!(ahead.check_with(NOW, None, &mut used), Ok(()));
    assert_eq!(ahead.check_with(NOW.after(120_000), None, &mut used), Err(401));
}

#[test]
fn two_proofs_or_none_are_refused() {
    assert_eq!(Attempt { extra: vec![(SEC_WEBSOCKET_PROTOCOL, "mcp")], ..Attempt::good() }.check(), Ok(()));
    let mut doubled = Attempt::good().headers();
    let again = Attempt { nonce: [8; 16], ..Attempt::good() }.headers();
    doubled.append(SEC_WEBSOCKET_PROTOCOL, again.get(SEC_WEBSOCKET_PROTOCOL).unwrap().clone());
    let mut bare = Attempt::good().headers();
    bare.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let config = config();
    let grants = [grant(1, &[ORIGIN_HEADER])];
    let gate = Gate { config: &config, port: 6735, origins: None, grants: &grants, now: NOW };
    for headers in [doubled, bare] {
        let refusal = gate.check(&Method::GET, "/servers/files", &headers, &mut Memory::default()).unwrap_err();
        assert_eq!(refusal.status, StatusCode::UNAUTHORIZED);
    }
}

#[test]
fn a_token_opens_only_its_servers_and_origins() {
    let elsewhere = |target: &str, server| Attempt { target: target.into(), proof_server: server, ..Attempt::good() };
    assert_eq!(elsewhere("/servers/other", "other").check(), Err(403));
    // The grant names the server, but the configuration lets only another origin use it.
    assert_eq!(elsewhere("/servers/narrow", "narrow").check(), Err(403));
    // The origins of this run narrow what tokens allow.
    let run = [Origin::parse("https://a.example").unwrap()];
    assert_eq!(Attempt::good().check_with(NOW, Some(&run), &mut Memory::default()), Err(403));
    let run = [Origin::parse(ORIGIN_HEADER).unwrap()];
    assert_eq!(Attempt::good().check_with(NOW, Some(&run), &mut Memory::default()), Ok(()));
}

#[test]
fn a_request_that_is_no_handshake_is_told_to_upgrade() {
    let gateless = |name: HeaderName| {
        let mut headers = Attempt::good().headers();
        headers.remove(name);
        let config = config();
        let grants = [grant(1, &[ORIGIN_HEADER])];
        let gate = Gate { config: &config, port: 6735, origins: None, grants: &grants, now: NOW };
        gate.check(&Method::GET, "/servers/files", &headers, &mut Memory::default()).unwrap_err().status.as_u16()
    };
    for name in [UPGRADE, CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION] {
        assert_eq!(gateless(name), 426);
    }
}

#[test]
fn a_reason_shows_no_proof_and_no_endless_text() {
    let origin: &'static str = Box::leak(format!("https://{}.example", "x".repeat(4000)).into_boxed_str());
    let headers = Attempt { origin: Some(origin), ..Attempt::good() }.headers();
    let config = config();
    let gate = Gate { config: &config, port: 6735, origins: None, grants: &[], now: NOW };
    let refusal = gate.check(&Method::GET, "/servers/files", &headers, &mut Memory::default()).unwrap_err();
    assert!(refusal.reason.len() < 300 && !refusal.reason.contains("crablet.proof"), "{}", refusal.reason);
}

#[test]
fn whoever_offers_wrong_proofs_has_to_wait_and_nobody_else() {
    let mut memory = Memory::default();
    let wrong = || Attempt { token: Token::from_random([1; 9], [9; 32]), ..Attempt::good() };
    for _ in 0..10 {
        assert_eq!(wrong().check_with(NOW, None, &mut memory), Err(401));
    }
    assert_eq!(Attempt::good().check_with(NOW, None, &mut memory), Err(429));
    let native = Attempt { origin: None, token: Token::from_random([2; 9], [2; 32]), ..Attempt::good() };
    assert_eq!(native.check_with(NOW, None, &mut memory), Ok(()));
    let foreign = Attempt { origin: Some("https://evil.example"), ..Attempt::good() };
    assert_eq!(foreign.check_with(NOW, None, &mut memory), Err(403));
    let later = Millis(NOW.0 + 30_000);
    let nonce = [8; 16];
    assert_eq!(Attempt { proof_at: later, nonce, ..Attempt::good() }.check_with(later, None, &mut memory), Ok(()));
}

#[test]
fn a_pairing_is_admitted_only_where_a_code_waits() {
    let config = Config::default();
    let check =
        |origins: Option<&[Origin]>, host: &'static str, origin: Option<&'static str>, protocol: &'static str| {
            let gate = Gate { config: &config, port: 6735, origins, grants: &[], now: NOW };
            let mut headers = Attempt { host, origin, ..Attempt::good() }.headers();
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
            let awaits = |client: Option<&str>| client.is_some();
            gate.check_pairing(&Method::GET, "/pair", &headers, awaits).map_err(|refusal| refusal.status.as_u16())
        };
    let (here, page) = ("127.0.0.1:6735", Some(ORIGIN_HEADER));
    let admitted = check(None, here, page, PAIRING_SUBPROTOCOL).unwrap();
    assert_eq!((admitted.origin.as_deref(), admitted.authority.as_str()), (page, here));
    assert_eq!(check(None, "rebind.example:6735", page, PAIRING_SUBPROTOCOL).unwrap_err(), 403);
    assert_eq!(check(None, here, Some("null"), PAIRING_SUBPROTOCOL).unwrap_err(), 404);
    assert_eq!(check(None, here, None, PAIRING_SUBPROTOCOL).unwrap_err(), 404);
    assert_eq!(check(None, here, page, SUBPROTOCOL).unwrap_err(), 401);
    let only = [Origin::parse("https://only.example").unwrap()];
    assert_eq!(check(Some(&only), here, page, PAIRING_SUBPROTOCOL).unwrap_err(), 404);
}

#[test]
fn tools_are_offered_with_a_token_for_that_and_a_proof_of_it() {
    let exposing = || Attempt {
        target: "/expose".into(),
        proof_server: EXPOSING,
        token: Token::from_random([3; 9], [3; 32]),
        ..Attempt::good()
    };
    let attempts = [
        (exposing(), Ok(())),
        (Attempt { token: Token::from_random([1; 9], [1; 32]), ..exposing() }, Err(403)),
        (Attempt { proof_server: "files", ..exposing() }, Err(401)),
        (Attempt { target: "/servers/".into(), ..exposing() }, Err(404)),
        (Attempt { origin: Some("https://evil.example"), ..exposing() }, Err(403)),
        (Attempt { origin: Some("null"), ..exposing() }, Err(403)),
        (Attempt { host: "evil.example:6735", ..exposing() }, Err(403)),
        (Attempt { method: Method::POST, ..exposing() }, Err(404)),
        (Attempt { proof_at: Millis(NOW.0 - 61_000), ..exposing() }, Err(401)),
    ];
    for (index, (attempt, expected)) in attempts.into_iter().enumerate() {
        assert_eq!(attempt.check(), expected, "attempt {index}");
    }
}
