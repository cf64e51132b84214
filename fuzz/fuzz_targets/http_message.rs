//! Any body of a POST to an MCP server over HTTP, the shim's front among them: no panic, and what is taken has one meaning, which is
//! written as it was read.
#![no_main]

use crablet::jsonrpc::Params;
use crablet::mcp::server::http::{Answer, Asked, Headers, PostedMessage, PostedRequest, Rules};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    match read(body) {
        Ok(Asked::Request { request: PostedRequest { id, method, params, .. }, .. }) => {
            let again =
                Params::new().with("jsonrpc", "2.0").with("id", &id).with("method", &method).with("params", &params);
            let Ok(Asked::Request { request: again, .. }) = read(again.to_raw().as_str().as_bytes()) else {
                panic!("what was read is read again");
            };
            assert_eq!((again.id, again.method, again.params), (id, method, params));
        }
        Ok(Asked::Message {
            message: PostedMessage::Notification { raw, .. } | PostedMessage::Response { raw, .. },
            ..
        }) => assert!(read(raw.as_str().as_bytes()).is_ok()),
        Ok(other) => panic!("a POST is no {other:?}"),
        // A notification outside of a session is taken, and nobody has anything to say to it.
        Err(answer) => assert!([202, 400].contains(&answer.status)),
    }
});

fn read(body: &[u8]) -> Result<Asked, Answer> {
    let headers = [
        ("content-type", &b"application/json"[..]),
        ("accept", b"application/json, text/event-stream"),
        ("mcp-session-id", b"session"),
    ];
    Rules::default().read("POST", &Headers::from_iter(headers), body)
}
