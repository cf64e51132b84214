//! Case 152-slow-start: a server whose package is downloaded before its first byte.

use crate::support::{Shim, script};
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
