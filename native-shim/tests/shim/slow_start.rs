//! Case 152-slow-start: a server whose package is downloaded before its first byte.

use crate::support::{ECHO, Shim, scratch_directory, script};
use serde_json::json;

#[tokio::test]
async fn a_server_that_is_downloaded_first_is_waited_for() {
    // The download is over when this file is there.
    let downloaded =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("downloaded-{}", std::process::id()));
    let _ = std::fs::remove_file(&downloaded);
    let server = format!(
        r#"echo 'fetching package' >&2
        while [ ! -e '{}' ]; do sleep 0.05; done
        read -r first
        case "$first" in *server/discover*) exit 1 ;; esac
        echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25"}}}}'
        exec cat"#,
        downloaded.display()
    );
    let mut shim = Shim::start(json!({ "slow": script(&server) }), &[]).await;
    let mut client = shim.client("slow").await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" });
    client.send(initialize).await;
    let visible = async {
        shim.log_line("[slow] fetching package").await;
        std::fs::write(&downloaded, "").unwrap();
        shim
    };
    let (answer, _shim) = tokio::join!(client.message(), visible);
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    // Everything after the first line comes back: a second `initialize` would come first.
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert_eq!(client.message().await["method"], "ping");
    std::fs::remove_file(&downloaded).unwrap();
}

#[tokio::test]
async fn what_is_downloaded_first_is_not_downloaded_twice_at_once() {
    // As `npx` does before npm 11.5: two that install the same package at the same time break each other.
    let folder = scratch_directory();
    let server = format!(
        r#"cd '{}'
        mkdir installing || {{ touch collided; exit 9; }}
        echo 'fetching package' >&2
        while [ ! -e downloaded ]; do sleep 0.05; done
        rmdir installing
        {ECHO}"#,
        folder.display()
    );
    let mut shim = Shim::start(json!({ "slow": script(&server) }), &[]).await;
    let mut client = shim.client("slow").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await;
    let visible = async {
        shim.log_line("[slow] fetching package").await;
        std::fs::write(folder.join("downloaded"), "").unwrap();
        shim
    };
    let (echoed, _shim) = tokio::join!(client.message(), visible);
    assert_eq!(echoed["method"], "initialize");
    assert!(!folder.join("collided").exists());
}
