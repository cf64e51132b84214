//! Keys and tokens, planted wherever a caller can put one, against servers that repeat all they get: none is in an error, an
//! event, a snapshot, a span or debug output. The same for the npm package: `pkg-tests/facade/secrets.test.mjs`.
#![cfg(all(feature = "host", feature = "openai-chat", feature = "anthropic", feature = "bedrock"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

#[path = "support/mod.rs"]
mod support;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use crablet::Error;
use crablet::agent::Agent;
use crablet::host::Runner;
use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::model::{AwsKeys, Credentials, Model, anthropic, bedrock, openai_chat};
use serde_json::json;

use support::{Exchange, ScriptedHost};

/// With none of the shapes that keys are known by, and where they may with characters that are written in other ways elsewhere.
const PLANTED: [&str; 6] = [
    "planted-key-\"+%=-value",
    "planted-gateway-\"+%=-value",
    "planted-bearer-\"+%=-value",
    "planted-access-value",
    "planted-secret-/+=-value",
    "planted-session-/+=-value",
];

/// A secret as it is, in JSON, in an address, and in Base64 with padding and without.
fn forms(secret: &str) -> [String; 5] {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64 = String::new();
    for group in secret.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, place| bits << 8 | usize::from(*group.get(place).unwrap_or(&0)));
        base64.extend((0..=group.len()).map(|place| char::from(DIGITS[bits >> (18 - 6 * place) & 63])));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let json = json!(secret).to_string();
    let padded = format!("{base64}{}", &"=="[..(4 - base64.len() % 4) % 4]);
    let percent = secret.bytes().map(encoded).collect();
    [secret.to_owned(), json[1..json.len() - 1].to_owned(), percent, padded, base64.replace('+', "-").replace('/', "_")]
}

/// Everything that a careless server repeats.
fn repeated() -> String {
    let all: Vec<String> = PLANTED.iter().flat_map(|secret| forms(secret)).collect();
    format!("refused with {} here", all.join(" "))
}

fn aws() -> AwsKeys {
    AwsKeys {
        access_key_id: PLANTED[3].to_owned(),
        secret_access_key: PLANTED[4].to_owned(),
        session_token: Some(PLANTED[5].to_owned()),
        region: Some("us-east-1".to_owned()),
    }
}

/// Models that hold the gateway's key in a header and the bearer in another.
fn models() -> Vec<Model> {
    let url = "https://models.example/v1";
    let models = [
        openai_chat::compatible(url, "m"),
        anthropic::model("m").with_base_url(url),
        bedrock::model("us-east-1", "m").with_base_url(url),
    ];
    let planted = |model: Model| {
        model.with_header("X-Gateway-Key", PLANTED[1]).with_header("Authorization", format!("Bearer {}", PLANTED[2]))
    };
    models.into_iter().map(planted).collect()
}

/// What each kind of credentials lets show, of what the server repeats: nothing that was sent.
fn sent(credentials: &Credentials) -> Vec<&'static str> {
    let own: &[&'static str] = match credentials {
        Credentials::Key(_) => &PLANTED[..1],
        Credentials::Aws(_) => &PLANTED[3..],
        _ => &[],
    };
    own.iter().chain(&PLANTED[1..3]).copied().collect()
}

fn failures() -> Vec<Exchange> {
    let body = json!({"error": {"message": repeated(), "type": repeated(), "code": repeated()}}).to_string();
    let event = format!("event: error\ndata: {}\n\n", json!({"type": "error", "error": {"message": repeated()}}));
    let json = |status| Exchange::new(status, "application/json");
    // In two chunks, parted within each of the keys.
    let parted = |at: usize| {
        let (start, rest) = body.split_at(body.match_indices("planted-").nth(at * 3).unwrap().0 + 11);
        json(401).chunk(start.to_owned()).chunk(rest.to_owned())
    };
    // Shortened by the server, and by whoever shortens it here, in the middle of a key.
    let shortened = |secret: &str| json(403).chunk(json!({"message": format!("not {}", &secret[..14])}).to_string());
    let cut = json!({"error": {"message": format!("{}{}", "x".repeat(1_988), PLANTED.join(""))}}).to_string();
    let parts = (0..PLANTED.len()).map(parted);
    let mut failures: Vec<Exchange> = parts.chain(PLANTED.iter().map(|secret| shortened(secret))).collect();
    failures.extend([
        json(401).chunk(body.clone()),
        json(403).chunk(json!({"message": repeated()}).to_string()),
        json(403).chunk(cut),
        Exchange::new(502, "text/html").chunk(format!("<p>{}</p>", repeated())),
        Exchange::stream().chunk(event),
        Exchange::stream().chunk(format!("data: {{{}\n\n", repeated())),
        json(200).chunk(body),
        Exchange::stream().chunk("data: {").cut(),
        Exchange::unreachable(),
    ]);
    failures
}

/// Fails when one of these is in what a person can come to see.
fn shows_none(secrets: &[&str], place: &str, text: &str) {
    for secret in secrets {
        for form in forms(secret) {
            // Also not the beginning of one.
            let start = &form[..form.len().min(13)];
            assert!(!text.contains(start), "{place} shows {secret}: {text}");
        }
    }
}

fn printed(error: &Error) -> String {
    format!("{error} {error:?} {}", serde_json::to_string(error).unwrap())
}

#[test]
fn nothing_of_a_models_credentials_shows_when_a_call_fails() {
    for credentials in [Credentials::Key(PLANTED[0].to_owned()), Credentials::Aws(aws()), Credentials::None] {
        let secrets = sent(&credentials);
        for model in models() {
            for failure in failures() {
                let mut agent = Agent::new(model.clone());
                agent.policy.max_attempts = 1;
                let host = ScriptedHost::new().then(failure);
                let spans = Arc::new(Mutex::new(Vec::new()));
                let told = spans.clone();
                let runner = Runner::new(host.clone(), agent)
                    .credentials(credentials.clone())
                    .trace(Default::default(), move |span| told.lock().unwrap().push(format!("{span:?}")));
                let conversation = runner.conversation().unwrap();
                let mut run = conversation.send("Hello?").unwrap();
                let mut events = String::new();
                host.block_on(async {
                    while let Some(batch) = run.next().await {
                        events.push_str(&format!("{batch:?} {}", serde_json::to_string(&batch).unwrap()));
                    }
                });
                let error = host.block_on(run.answer()).unwrap_err();
                for (place, text) in [
                    ("the error", printed(&error)),
                    ("an event", events),
                    ("a span", spans.lock().unwrap().join("\n")),
                    ("the snapshot", conversation.snapshot()),
                ] {
                    shows_none(&secrets, place, &text);
                }
                shows_none(&PLANTED, "a request's debug output", &format!("{:?}", host.requests()));
            }
        }
    }
}

#[test]
fn nothing_shows_in_debug_output() {
    fn debug(value: &dyn Debug) -> String {
        format!("{value:?} {value:#?}")
    }
    for model in models() {
        shows_none(&PLANTED, "a model", &debug(&model));
        shows_none(&PLANTED, "an agent", &debug(&Agent::new(model)));
    }
    let headers = vec![("authorization".to_owned(), PLANTED[2].to_owned())];
    shows_none(&PLANTED, "a server", &debug(&HttpServer::new("https://mcp.example").headers(headers.clone())));
    shows_none(&PLANTED, "headers", &debug(&Credentials::Headers(headers)));
    shows_none(&PLANTED, "a key", &debug(&Credentials::Key(PLANTED[0].to_owned())));
    // The id of a key is none itself.
    shows_none(&PLANTED[4..], "keys of AWS", &debug(&aws()));
}

#[test]
fn nothing_of_the_keys_in_an_address_shows_when_its_server_repeats_them() {
    let [.., user, password] = PLANTED;
    let encode = |secret: &str| forms(secret)[2].clone();
    let url = format!("https://{}:{}@models.example/v1", encode(user), encode(password));
    for failure in failures() {
        let mut agent = Agent::new(openai_chat::compatible(&url, "m"));
        agent.policy.max_attempts = 1;
        let host = ScriptedHost::new().then(failure);
        let conversation = Runner::new(host.clone(), agent).conversation().unwrap();
        let run = conversation.send("Hello?").unwrap();
        let error = host.block_on(run.answer()).unwrap_err();
        shows_none(&[user, password], "the error", &printed(&error));
        shows_none(&PLANTED, "a request's debug output", &format!("{:?}", host.requests()));
    }
}

/// What is wrong with how a model is reached is told before anything is sent, without what it is about.
#[test]
fn a_model_that_cannot_be_reached_as_it_is_set_up_is_told_so_without_its_key() {
    let encoded = &forms(PLANTED[0])[2];
    let reached = |url: &str| openai_chat::compatible(url, "m");
    let key = |key: &str| Credentials::Key(key.to_owned());
    for (model, credentials, kind, told) in [
        (reached(&format!("https://models.example/v1?key={encoded}")), Credentials::None, "invalid-input", "query"),
        (reached(&format!("https://models.example/v1#{encoded}")), Credentials::None, "invalid-input", "fragment"),
        (reached("https://models.example/v1"), key(""), "auth", "empty"),
        (reached("https://models.example/v1"), key(" \n"), "auth", "empty"),
        (reached("https://models.example/v1"), key(&format!("{} \u{e9}", PLANTED[0])), "auth", "non-ASCII"),
    ] {
        let host = ScriptedHost::new();
        let runner = Runner::new(host.clone(), Agent::new(model)).credentials(credentials);
        let error = host.block_on(runner.run("Hello?")).unwrap_err();
        assert_eq!(error.kind().as_str(), kind, "{error}");
        assert!(error.message().contains(told), "{error}");
        assert!(host.requests().is_empty(), "nothing was sent");
        shows_none(&PLANTED, "the error", &printed(&error));
    }
}

#[test]
fn nothing_of_the_headers_of_an_mcp_server_shows_when_it_fails() {
    let json = |status, body: String| Exchange::new(status, "application/json").chunk(body);
    let error =
        |id: u8| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": repeated()}}).to_string();
    let refused = |_| json(401, repeated());
    let told = |id| json(200, error(id));
    let refused_in_json = |id| json(400, error(id));
    let broken = |_| json(200, format!("{{{}", repeated()));
    let unreachable = |_| Exchange::unreachable();
    let failures: [&dyn Fn(u8) -> Exchange; 5] = [&refused, &told, &refused_in_json, &broken, &unreachable];
    for failure in failures {
        // The client asks again in the older era.
        let host = ScriptedHost::new().then(failure(1)).then(failure(2)).then(failure(3));
        let server = HttpServer::new("https://mcp.example/mcp").headers(vec![
            ("authorization".to_owned(), format!("Bearer {}", PLANTED[2])),
            ("x-gateway-key".to_owned(), PLANTED[1].to_owned()),
        ]);
        let connection = Connection::http(&host, "remote", server, ConnectOptions::default());
        let error = host
            .block_on(connection.call_tool("look", RawJson::parse("{}").unwrap(), CallOptions::default(), None))
            .unwrap_err();
        shows_none(&PLANTED[1..3], "the error", &printed(&error));
    }
}
