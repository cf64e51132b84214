//! Any text as what a peer sends: no panic, and a message that was read can be written and read again as the same.
#![no_main]

use crablet::jsonrpc::{Message, Params, RpcError, response};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for message in Message::parse(text).unwrap_or_default() {
        let written = written(&message);
        assert_eq!(Message::parse(&written), Ok(vec![message]), "{written}");
    }
});

fn written(message: &Message) -> String {
    let members = Params::new().with("jsonrpc", "2.0");
    let named = |members: Params, method: &str, params: &Option<_>| match params {
        Some(params) => members.with("method", method).with("params", params),
        None => members.with("method", method),
    };
    let members = match message {
        Message::Request { id, method, params } => named(members.with("id", id), method, params),
        Message::Notification { method, params } => named(members, method, params),
        Message::Response { id: Some(id), outcome: Ok(result) } => members.with("id", id).with("result", result),
        Message::Response { id: None, outcome: Ok(result) } => members.with("result", result),
        Message::Response { id, outcome: Err(RpcError { code, message, data }) } => {
            let id = crablet::json::RawJson::from_value(id).unwrap();
            let error = RpcError { data: data.clone(), ..RpcError::new(*code, message) };
            return response(&id, &Err(error)).as_str().to_owned();
        }
    };
    members.to_raw().as_str().to_owned()
}
