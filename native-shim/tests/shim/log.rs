//! A log that nobody reads.

use serde_json::{Value, json};

use crate::support::{ECHO, Shim, in_time, script};

/// What the log shows of one process at most, in long lines: 200 KiB, which is three times what a pipe holds.
fn talkative() -> Value {
    let talk = "filler=$(printf '%01023d' 0); i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $filler >&2; done";
    script(&ECHO.replace("exec cat", &format!("{talk}\nexec cat")))
}

/// Enough connections that some lines are lost.
async fn talk(shim: &Shim) {
    let conversation = async {
        for _ in 0..6 {
            let mut client = shim.client("talkative").await;
            for id in 1..=3 {
                client.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
                assert_eq!(client.message().await["id"], id);
            }
        }
    };
    in_time("the answers of a shim whose log nobody reads", conversation).await;
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_up_no_client_and_says_what_it_lost() {
    let mut shim = Shim::start(json!({ "talkative": talkative() }), &[]).await;
    talk(&shim).await;
    shim.log_line("lines were lost: nobody read the log in time").await;
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_up_no_end() {
    let mut shim = Shim::start(json!({ "talkative": talkative() }), &[]).await;
    talk(&shim).await;
    in_time("the end of the shim", shim.end("-TERM")).await;
}
