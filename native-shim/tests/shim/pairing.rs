//! Pairing: a code from the terminal becomes a token that never travelled.

use crablet::ErrorKind;
use crablet::host::mcp::{Paired, pair};
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::native::NativeHost;
use serde_json::{Value, json};

use crate::support::{Client, ECHO, Pairing, Shim, script};

async fn start() -> Shim {
    Shim::start(json!({ "files": script(ECHO), "other": script(ECHO) }), &[]).await
}

async fn use_code(shim: &Shim, code: &str) -> Result<Paired, crablet::Error> {
    pair(&NativeHost::new().unwrap(), &format!("ws://127.0.0.1:{}", shim.port), code, "").await
}

#[tokio::test]
async fn a_code_gives_a_token_for_the_servers_that_the_terminal_named() {
    let shim = start().await;
    let pairing = Pairing::start(&shim, &["--native", "--server", "files"]).await;
    let typed = pairing.code.to_lowercase().replace('-', " ");
    let Paired { token, servers } = use_code(&shim, &typed).await.unwrap();
    assert_eq!(servers, ["files"]);
    assert_eq!(pairing.end().await, (true, "Paired with a program without an origin, for: files.".to_owned()));

    let options = |server: &str| WebSocketOptions {
        url: format!("ws://127.0.0.1:{}", shim.port),
        server: server.into(),
        token: token.clone(),
        origin: String::new(),
        resume: None,
    };
    let mut client = Client::connect(options("files")).await;
    let message: Value = json!({ "jsonrpc": "2.0", "id": 1, "method": "x" });
    client.send(message.clone()).await;
    assert_eq!(client.message().await, message);
    let mut stranger = Client::connect(options("other")).await;
    assert!(format!("{:?}", stranger.next().await).contains("Closed"));
}

#[tokio::test]
async fn a_code_is_worth_nothing_after_its_use_or_five_wrong_ones() {
    let shim = start().await;
    let used = Pairing::start(&shim, &["--native", "--server", "files"]).await;
    let code = used.code.clone();
    use_code(&shim, &code).await.unwrap();
    assert!(used.end().await.0);
    assert_eq!(use_code(&shim, &code).await.unwrap_err().kind(), ErrorKind::Network);

    let guessed = Pairing::start(&shim, &["--native", "--server", "files"]).await;
    for _ in 0..5 {
        assert_eq!(use_code(&shim, "0000-0000-0000").await.unwrap_err().kind(), ErrorKind::Auth);
    }
    let code = guessed.code.clone();
    let (is_paired, told) = guessed.end().await;
    assert!(!is_paired && told.contains("wrong ones were tried too often"), "{told}");
    assert_eq!(use_code(&shim, &code).await.unwrap_err().kind(), ErrorKind::Network);
}

#[tokio::test]
async fn a_code_for_pages_is_not_for_programs() {
    let shim = start().await;
    let pairing = Pairing::start(&shim, &["--server", "files"]).await;
    assert_eq!(use_code(&shim, &pairing.code).await.unwrap_err().kind(), ErrorKind::Network);
}
