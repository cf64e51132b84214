//! The configuration file: its errors where the user looks, and its changes while clients are connected.

use std::process::Command;

use crate::support::{ECHO, Shim, script};
use serde_json::json;

#[tokio::test]
async fn a_change_counts_for_new_connections_and_leaves_old_ones_alone() {
    let mut shim = Shim::start(json!({ "old": script(ECHO) }), &[]).await;
    let mut old = shim.client("old").await;
    old.attached(1).await;
    shim.write_config(&json!({ "mcpServers": { "new": script(ECHO) } }).to_string());
    shim.log_line("it serves now: new").await;
    let mut new = shim.client("new").await;
    new.attached(1).await;
    old.send(json!({ "jsonrpc": "2.0", "id": 1 })).await;
    assert_eq!(old.message().await["id"], 1);

    shim.write_config("{ \"mcpServers\": { \"new\": { \"command\": 5 } } }");
    shim.log_line("has errors").await;
    assert!(shim.log_line("servers.json:1:").await.contains("\"command\" of the server \"new\""));
    new.drop_socket().await;
    new.attached(2).await;
}

#[test]
fn an_error_is_printed_with_its_place_and_ends_the_program() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{}.json", std::process::id()));
    std::fs::write(&file, "{\n  \"mcpServers\": { \"files\": { \"command\": [\"npx\"] } }\n}\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
        .args(["serve", "--port", "0", "--config"])
        .arg(&file)
        .env("CRABLET_STATE_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "{}:2:41: \"command\" of the server \"files\" must be the name or path of a program, as a text\n",
        file.display()
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn what_servers_say_of_themselves_changes_nothing_in_what_the_doctor_prints() {
    let answering = r#"read -r first; printf '%s\n' '{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"x\u001b[2Jgone\u202e","version":"1\u2028ok"}}}'; cat"#;
    let refusing = r#"read -r first; printf '%s\n' '{"jsonrpc":"2.0","id":"initialize","error":{"code":-1,"message":"no\u001b]0;title\u0007"}}'; cat"#;
    let dying = "printf 'last \\033[31mwords\\r\\n' >&2; exit 3";
    let servers = json!({ "a": script(answering), "b": script(refusing), "c": script(dying) });
    let shim = Shim::start(servers, &[]).await;
    let (_, report) = shim.doctor().await;
    for shown in ["x�[2Jgone� 1�ok", "(no�]0;title�)", "last "] {
        assert!(report.contains(shown), "{report}");
    }
    assert!(!report.contains(|character: char| character.is_control() && character != '\n'), "{report:?}");
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong() {
    let good = r#"read -r first; echo '{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"good","version":"1"}}}'; cat"#;
    let servers = json!({ "good": script(good), "bad": script("echo boom >&2; exit 3") });
    let shim = Shim::start(servers, &[]).await;
    shim.grant("", &["good", "missing"]).await;
    let (healthy, report) = shim.doctor().await;
    assert!(!healthy);
    for line in [
        "ok       the server \"good\" starts and answers: good 1, revision 2025-11-25\n",
        "problem  the server \"bad\" exited with code 3; its last words: boom\n",
        "is for the server \"missing\", which the configuration does not offer",
    ] {
        assert!(report.contains(line), "{report}");
    }
    shim.write_config(&json!({ "mcpServers": { "good": script(good), "missing": script(good) } }).to_string());
    let (healthy, report) = shim.doctor().await;
    assert!(healthy, "{report}");
}
