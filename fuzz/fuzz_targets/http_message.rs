//! Any body of a POST to the shim's HTTP front: no panic, and what is taken has one meaning, which is written as it was read.
#![no_main]

#[path = "../../native-shim/src/http/message.rs"]
mod message;

use crablet::jsonrpc::Params;
use message::{Posted, read_message};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    match read_message(body) {
        Ok(Posted::Request { id, method, params }) => {
            let again =
                Params::new().with("jsonrpc", "2.0").with("id", &id).with("method", &method).with("params", &params);
            let again = read_message(again.to_raw().as_str().as_bytes());
            assert_eq!(again, Ok(Posted::Request { id, method, params }));
        }
        Ok(Posted::Notification { raw, .. } | Posted::Response { raw, .. }) => {
            assert!(read_message(raw.as_str().as_bytes()).is_ok());
        }
        Err((_, error)) => assert!(error.code < 0),
    }
});
