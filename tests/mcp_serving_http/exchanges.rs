//! The exchanges that this server and the one in TypeScript both have to have (`pkg-tests/fixtures/mcp-server`).

use crablet::host::mcp::HttpOptions;
use crablet::mcp::server::http::{Gate, Hosts, Origin};
use serde_json::{Value, json};

use super::{Client, events, fixture, read};

#[tokio::test]
async fn every_exchange_goes_as_it_is_written() {
    let file: Value = serde_json::from_str(include_str!("../../pkg-tests/fixtures/mcp-server/http.json")).unwrap();
    let exchanges = file["exchanges"].as_array().unwrap();
    for exchange in exchanges {
        let name = exchange["name"].as_str().unwrap();
        let mut client = Client::new(&fixture(), options(&exchange["options"]));
        let (mut session, mut sent) = (String::new(), Vec::new());
        for step in exchange["steps"].as_array().unwrap() {
            client.caller = step["caller"].as_str().map(str::to_owned);
            let method = step["method"].as_str().unwrap_or("POST");
            let fill = |value: &Value| match value.as_str() {
                Some("$session") => session.clone(),
                Some(text) => match text.strip_prefix("$event").and_then(|number| number.parse::<usize>().ok()) {
                    Some(number) => String::clone(&sent[number]),
                    None => text.to_owned(),
                },
                None => String::new(),
            };
            let given = step["headers"].as_object();
            let headers: Vec<_> =
                given.into_iter().flatten().map(|(name, value)| (name.as_str(), fill(value))).collect();
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let body = match &step["body"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                body => body.to_string(),
            };
            let got = read(client.send(method, &headers, body.as_bytes()).await).await;
            let told = format!("{name}: {method} {headers:?} {body:.500}\nanswered {got:?}");
            let expect = &step["expect"];
            assert_eq!(json!(got.status), expect["status"], "{told}");
            if let Some(opened) = got.header("mcp-session-id") {
                session = opened.to_owned();
            }
            for (name, value) in expect["headers"].as_object().into_iter().flatten() {
                let is_met = match value.as_str() {
                    Some("*") => got.header(name).is_some(),
                    wanted => got.header(name) == wanted,
                };
                assert!(is_met, "{name}\n{told}");
            }
            if !expect["message"].is_null() {
                assert!(holds(&expect["message"], &got.message()), "{told}");
            }
            if let Some(expected) = expect["events"].as_array() {
                let (ids, messages): (Vec<_>, Vec<_>) = events(&got.text).into_iter().unzip();
                if let Some(ids) = ids.into_iter().collect::<Option<Vec<String>>>() {
                    sent = ids;
                }
                assert!(holds(&json!(expected), &json!(messages)), "{told}");
            }
        }
    }
    assert!(exchanges.len() > 10, "the file was read");
}

fn options(given: &Value) -> HttpOptions {
    let mut options = HttpOptions::default();
    let texts = |name: &str| -> Vec<String> { serde_json::from_value(given[name].clone()).unwrap_or_default() };
    let hosts = match &given["hosts"] {
        Value::Null => Hosts::Loopback,
        Value::Array(_) => Hosts::Named(texts("hosts")),
        _ => Hosts::Any,
    };
    options.gate =
        Gate { hosts, origins: texts("origins").iter().map(|origin| Origin::parse(origin).unwrap()).collect() };
    options.sessions = given["sessions"].as_bool().unwrap_or(true);
    let number = |name: &str| given[name].as_u64().map(|number| usize::try_from(number).unwrap());
    options.max_body_bytes = number("maxBodyBytes").unwrap_or(options.max_body_bytes);
    options.max_sessions = number("maxSessions").unwrap_or(options.max_sessions);
    options
}

/// Whether everything expected is there.
fn holds(expected: &Value, sent: &Value) -> bool {
    match expected {
        Value::Object(members) => {
            members.iter().all(|(name, value)| sent.get(name).is_some_and(|sent| holds(value, sent)))
        }
        Value::Array(items) => sent.as_array().is_some_and(|sent| {
            items.len() == sent.len() && items.iter().zip(sent).all(|(expected, sent)| holds(expected, sent))
        }),
        _ => expected == sent,
    }
}
