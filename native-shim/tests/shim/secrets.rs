//! Tokens, codes, keys of servers and what passes through, planted wherever the shim gets to see them: none is in its log, in what
//! its commands print, in a refusal, or in what a client learns of a server that died.

use std::path::Path;

use crablet::host::mcp::pair;
use crablet::mcp::transport::Inbound;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::native::NativeHost;
use serde_json::{Value, json};

use crate::http_client::Request;
use crate::support::{Client, ECHO, Pairing, Shim, in_time, script};

/// Values of a server's environment in the configuration file, with characters that JSON writes otherwise.
const KEY: &str = "planted-key-\"+%=-value";
const DATABASE: &str = "postgres://user:planted-password@db/x";
const ARGUMENT: &str = "planted-argument-value";
/// What goes through the shim and is nobody's business.
const MESSAGE: &str = "planted-message-value";

/// A server that says all that it was given, between its messages too, and crashes when it is told to.
fn talkative() -> Value {
    let says =
        r#"env >&2; env; echo "cannot log in with $API_KEY" >&2; printf 'cannot use %s' "$DATABASE_URL" >&2; echo >&2"#;
    let mut server = script(&format!(
        "{says}\n{}",
        ECHO.replace("exec cat", r#"while read -r line; do case "$line" in *crash*) env >&2; exit 3 ;; *) printf '%s\n' "$line" ;; esac; done"#)
    ));
    server["env"] = json!({ "API_KEY": KEY, "DATABASE_URL": DATABASE });
    server["args"].as_array_mut().unwrap().push(json!(ARGUMENT));
    server
}

/// Everything that somebody can come to see, by where it was seen.
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, place: &str, text: impl Into<String>) {
        self.0.push((place.to_owned(), text.into()));
    }

    /// Fails when one of these shows, whole or more than its first part.
    fn shows_none(&self, secrets: &[(&str, String)]) {
        for (what, secret) in secrets {
            let escaped = json!(secret).to_string();
            for form in [secret.as_str(), escaped.trim_matches('"'), &secret[..secret.len() - 4]] {
                for (place, text) in &self.0 {
                    assert!(!text.contains(form), "{place} shows {what}: {text}");
                }
            }
        }
    }
}

fn options(shim: &Shim, token: &crablet::mcp::transport::shim::Token) -> WebSocketOptions {
    WebSocketOptions {
        url: format!("ws://127.0.0.1:{}", shim.port),
        server: "talkative".into(),
        token: token.clone(),
        origin: String::new(),
        resume: None,
    }
}

/// A connection over the WebSocket: messages, a crash, what is told of it, and what the options print.
async fn over_websocket(shim: &Shim, seen: &mut Seen) -> String {
    let token = shim.grant("", &["talkative"]).await;
    seen.add("the options of a client", format!("{:?}", options(shim, &token)));
    let mut client = Client::connect(options(shim, &token)).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "x", "params": { "text": MESSAGE } })).await;
    assert_eq!(client.message().await["params"]["text"], MESSAGE, "the server is there");
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "crash" })).await;
    loop {
        let inbound = in_time("the end of the server", client.next()).await;
        if let Inbound::Closed { reason, exit_code, stderr_tail } = inbound {
            assert_eq!(exit_code, Some(3));
            let tail = stderr_tail.unwrap();
            assert!(tail.contains("API_KEY=[redacted]"), "{tail}");
            assert!(tail.contains("cannot log in with [redacted]"), "{tail}");
            seen.add("the reason of the end", format!("{reason:?} {reason}"));
            seen.add("the last words of the server", tail);
            break;
        }
    }
    token.reveal()
}

/// Requests over HTTP with the right token and with tokens that are nearly right, in places where none belongs too.
async fn over_http(shim: &Shim, seen: &mut Seen) -> String {
    let token = shim.grant_http("", &["talkative"]).await;
    let wrong = format!("{}xxxx", &token[..token.len() - 4]);
    let ask = |token: &str| {
        Request::stateless(shim, "talkative", token, json!("1"), "tools/call", json!({ "name": MESSAGE }))
    };
    let right = ask(&token).send(shim).await;
    assert_ne!(right.status, 401, "the token is right");
    for request in [
        ask(&wrong),
        ask(&token).with("host", "other.example"),
        ask(&token).with("origin", "https://stranger.example"),
        ask(&token).with("authorization", &format!("Basic {token}")),
        ask(&token).with("content-type", &token),
        ask("").with("x-api-key", &token),
        Request { path: format!("/mcp/talkative?token={token}"), ..ask("") },
        Request { path: format!("/mcp/{token}"), ..ask(&token) },
    ] {
        let response = request.send(shim).await;
        assert!(response.status >= 400, "{}", response.head);
        seen.add("a refusal", format!("{}{}", response.head, response.text()));
    }
    token
}

/// A pairing with a wrong code and the right one.
async fn with_a_code(shim: &Shim, seen: &mut Seen) -> [String; 2] {
    let pairing = Pairing::start(shim, &["--native", "--server", "talkative"]).await;
    let host = NativeHost::new().unwrap();
    let url = format!("ws://127.0.0.1:{}", shim.port);
    let nearly = format!("{}0", &pairing.code[..pairing.code.len() - 1]);
    for code in [nearly.as_str(), "planted-code-value", ""] {
        let error = pair(&host, &url, code, "").await.err().unwrap();
        seen.add("the error of a pairing", format!("{error} {error:?}"));
    }
    let paired = pair(&host, &url, &pairing.code, "").await.unwrap();
    seen.add("what a pairing gives", format!("{paired:?}"));
    let code = pairing.code.clone();
    let (is_good, told) = pairing.end().await;
    assert!(is_good);
    seen.add("the end of a pairing", told);
    [code, paired.token.reveal()]
}

#[tokio::test]
async fn no_secret_is_in_a_log_a_refusal_or_the_last_words_of_a_server() {
    let mut shim = Shim::start(json!({ "talkative": talkative() }), &[]).await;
    let mut seen = Seen(Vec::new());
    let token = over_websocket(&shim, &mut seen).await;
    let http = over_http(&shim, &mut seen).await;
    let [code, paired] = with_a_code(&shim, &mut seen).await;
    let (_, told) = shim.doctor().await;
    seen.add("the doctor", told);
    for command in ["tokens", "consent"] {
        let (_, printed, told) = shim.run(&[command]).await;
        seen.add(command, printed + &told);
    }
    let log = in_time("the end of the shim", shim.end("-TERM")).await;
    assert!(log.contains("API_KEY=[redacted]"), "the log has what servers say, without their keys: {log}");
    seen.add("the log", log);

    let of_token = |token: &str| token.rsplit('.').next().unwrap().to_owned();
    seen.shows_none(&[
        ("a key of a server", KEY.to_owned()),
        ("a password of a server", DATABASE.to_owned()),
        ("an argument of a server", ARGUMENT.to_owned()),
        ("a message", MESSAGE.to_owned()),
        ("a code", code),
        ("the token of a socket", of_token(&token)),
        ("the token of a pairing", of_token(&paired)),
        ("the token of HTTP", of_token(&http)),
    ]);
    // The token of HTTP is kept as a digest.
    for file in files_in(&shim.state()) {
        assert!(!file.contains(&of_token(&http)), "{file}");
    }
}

fn files_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_told_without_its_keys() {
    let shim = Shim::start(json!({ "talkative": talkative() }), &[]).await;
    let mut seen = Seen(Vec::new());
    let good = json!({ "mcpServers": { "talkative": talkative() } }).to_string();
    for text in [
        good[..good.len() - 3].to_owned(),
        good.replace("\"/bin/sh\"", "7"),
        good.replace("\"/bin/sh\"", "\"/no/such/program\""),
        good.replace(&json!(DATABASE).to_string(), &format!("[{}]", json!(DATABASE))),
        json!({ "mcpServers": { "talkative": { "command": "/bin/sh", "env": KEY } } }).to_string(),
    ] {
        shim.write_config(&text);
        let (is_content, told) = shim.doctor().await;
        assert!(!is_content, "{told}");
        seen.add("the doctor", told);
    }
    seen.shows_none(&[
        ("a key of a server", KEY.to_owned()),
        ("a password of a server", DATABASE.to_owned()),
        ("an argument of a server", ARGUMENT.to_owned()),
    ]);
}
