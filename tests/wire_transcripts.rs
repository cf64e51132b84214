//! Histories of every kind, sent to every kind of provider. Named after the cases that describe them in words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use crablet::json::RawJson;
use crablet::model::openai_chat::{self, Profile};
use crablet::model::{EncodedCache, Message, Model, ModelRequest, Part, RequestOptions, anthropic, bedrock, gemini};
use proptest::prelude::*;
use serde_json::Value;
use wire::intent::{assistant, call, image, raw, result, results, text, tool, user};
use wire::replay::body;

fn request(model: &Model, messages: Vec<Arc<Message>>) -> ModelRequest {
    ModelRequest {
        model: model.clone(),
        instructions: None,
        messages,
        tools: vec![tool("t", "{}")].into(),
        options: RequestOptions::default().into(),
    }
}

fn claude() -> Model {
    anthropic::model("claude-sonnet-4-5")
}

fn chat(profile: Profile) -> Model {
    openai_chat::model(profile, "m")
}

/// The ids of calls and of results, in the order of the body.
fn ids(body: &Value) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    let owned = |value: &Value| value.as_str().unwrap().to_owned();
    for message in body["messages"].as_array().into_iter().flatten() {
        calls.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| owned(&call["id"])));
        answers.extend(message.get("tool_call_id").map(owned));
        for block in message["content"].as_array().into_iter().flatten() {
            calls.extend(block.get("id").map(owned));
            answers.extend(block.get("tool_use_id").map(owned));
        }
    }
    (calls, answers)
}

#[test]
fn case_090_schema_subset() {
    let schema = r##"{"type":"object","additionalProperties":false,"$defs":{"P":{"type":"object"}},"properties":{"p":{"$ref":"#/$defs/P"},"s":{"type":["string","null"]}}}"##;
    let mut request = request(&gemini::model("gemini-2.5-flash"), vec![user("1", vec![text("go")])]);
    request.tools = vec![tool("t", schema)].into();
    let sent = body(&request)["tools"][0]["functionDeclarations"][0].clone();
    assert_eq!(sent["parametersJsonSchema"], raw(schema).read::<Value>().unwrap(), "JSON Schema is sent unchanged");
    assert_eq!(sent.get("parameters"), None);
}

#[test]
fn case_162_duplicate_tool_ids() {
    let model = claude();
    let history = vec![
        user("1", vec![text("go")]),
        assistant("2", &model, vec![call("functions.t:0", "t", "{}")]),
        results("3", vec![result("functions.t:0", "t", vec![text("first")], false)]),
        assistant("4", &model, vec![call("functions.t:0", "t", "{}"), call("functions.t:0", "t", "{}")]),
        results(
            "5",
            vec![
                result("functions.t:0", "t", vec![text("second")], false),
                result("functions.t:0", "t", vec![text("third")], false),
            ],
        ),
    ];
    for model in [claude(), chat(Profile::OpenAi), chat(Profile::Mistral)] {
        let body = body(&request(&model, history.clone()));
        let (calls, answers) = ids(&body);
        assert_eq!(calls, answers);
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), 3);
        let text = body.to_string();
        let places: Vec<_> = ["first", "second", "third"].iter().map(|word| text.find(word).unwrap()).collect();
        assert!(places.is_sorted());
    }
}

#[test]
fn case_164_invalid_json_arguments() {
    let model = claude();
    for input in ["{\"a\":1", "[1]", "\"x\"", "null", "{\"a\":1}{\"a\":2}"] {
        let history = vec![user("1", vec![text("go")]), assistant("2", &model, vec![call("c", "t", input)])];
        let sent = body(&request(&model, history.clone()));
        assert!(sent["messages"][1]["content"][0]["input"].is_object(), "{input}");
        let sent = body(&request(&chat(Profile::OpenAi), history));
        let arguments = sent["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{input}");
    }
}

#[test]
fn case_169_tool_id_across_providers() {
    let long = "x".repeat(70);
    let given = [
        "functions.write:0".to_owned(),
        format!("call_abc|fc_{}", "0".repeat(120)),
        "a\nb".to_owned(),
        format!("{long}1"),
        format!("{long}2"),
    ];
    let fits_word = |id: &str| {
        id.len() <= 64 && id.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
    };
    type Fits<'a> = &'a dyn Fn(&str) -> bool;
    let targets: [(Model, Fits<'_>); 3] = [
        (claude(), &fits_word),
        (chat(Profile::OpenAi), &|id| id.chars().count() <= 64),
        (chat(Profile::Mistral), &|id| id.len() == 9 && id.chars().all(|character| character.is_ascii_alphanumeric())),
    ];
    for (model, fits) in targets {
        let content = given.iter().map(|id| call(id, "t", "{}")).collect();
        let answers = given.iter().map(|id| result(id, "t", vec![text("ok")], false)).collect();
        let history =
            vec![user("1", vec![text("go")]), assistant("2", &chat(Profile::Groq), content), results("3", answers)];
        let request = request(&model, history);
        let (calls, answers) = ids(&body(&request));
        assert_eq!(calls, answers);
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), given.len());
        assert!(calls.iter().all(|id| fits(id)), "{calls:?}");
        assert!(given.iter().zip(&calls).all(|(given, sent)| !fits(given) || given == sent), "what fits stays");
        assert_eq!(body(&request), body(&request));
    }
}

#[test]
fn case_170_thinking_across_models() {
    let own = claude();
    let content = vec![
        Part::Reasoning { text: "signed".into(), replay: Some(raw(r#"{"signature":"S1"}"#)) },
        Part::Reasoning { text: String::new(), replay: Some(raw(r#"{"redacted":"R1"}"#)) },
        Part::Text { text: "hello".into(), replay: None },
        call("c", "t", "{}"),
    ];
    let history = vec![user("1", vec![text("go")]), assistant("2", &own, content)];
    let kept = body(&request(&own, history.clone()))["messages"][1]["content"].clone();
    assert_eq!(kept[0], serde_json::json!({"type": "thinking", "thinking": "signed", "signature": "S1"}));
    assert_eq!(kept[1], serde_json::json!({"type": "redacted_thinking", "data": "R1"}));
    for other in [anthropic::model("claude-opus-4-8"), chat(Profile::OpenAi), chat(Profile::OpenRouter)] {
        let sent = body(&request(&other, history.clone())).to_string();
        assert!(!sent.contains("S1") && !sent.contains("R1") && sent.contains("hello"), "{sent}");
    }
}

#[test]
fn case_172_parallel_result_order() {
    let model = claude();
    let history = vec![
        user("1", vec![text("go")]),
        assistant("2", &model, vec![call("t1", "t", "{}"), call("t2", "t", "{}")]),
        results("3", vec![result("t2", "t", vec![text("2")], false), result("t1", "t", vec![text("1")], false)]),
    ];
    let sent = body(&request(&model, history.clone()));
    assert_eq!(sent["messages"].as_array().unwrap().len(), 3, "both results in one message");
    assert_eq!(ids(&sent).1, ["t1", "t2"]);
    let sent = body(&request(&chat(Profile::OpenAi), history));
    let roles: Vec<_> = sent["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
    assert_eq!(ids(&sent).1, ["t1", "t2"]);
}

#[test]
fn case_177_lone_surrogate() {
    let stored = r#"{"id":"1","role":"user","content":[{"type":"text","text":"a\ud83db"}]}"#;
    let message = Arc::new(Message::parse(stored).unwrap());
    let request = request(&claude(), vec![message]);
    assert_eq!(body(&request)["messages"][0]["content"][0]["text"], "a\u{fffd}b");
    assert_eq!(body(&request), body(&request));
}

#[test]
fn empty_things_are_left_out() {
    let model = claude();
    let history = vec![
        user("1", vec![text(" \n")]),
        user("2", vec![text("go"), text("")]),
        assistant("3", &model, vec![Part::Text { text: String::new(), replay: None }]),
        results("4", vec![result("orphan", "t", vec![text("x")], false)]),
    ];
    for model in [claude(), chat(Profile::Custom)] {
        let sent = body(&request(&model, history.clone()));
        assert_eq!(sent["messages"].as_array().unwrap().len(), 1, "{sent}");
    }
}

/// What a random history is made of.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    Picture,
    Calls(Vec<u8>, bool),
    Answer(String),
    /// The last message is put in place of an earlier one, as a hook may do.
    Replace(prop::sample::Index),
    Drop(prop::sample::Index),
    Switch(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        "[a-zé\"\\\\ ]{0,8}".prop_map(Step::User),
        Just(Step::Picture),
        (prop::collection::vec(0u8..4, 0..4), any::<bool>()).prop_map(|(ids, answered)| Step::Calls(ids, answered)),
        ".{0,8}".prop_map(Step::Answer),
        any::<prop::sample::Index>().prop_map(Step::Replace),
        any::<prop::sample::Index>().prop_map(Step::Drop),
        (0u8..6).prop_map(Step::Switch),
    ]
}

fn model_of(number: u8) -> Model {
    match number {
        0 => claude(),
        1 => chat(Profile::OpenAi),
        2 => chat(Profile::Mistral),
        3 => gemini::model("gemini-3-pro"),
        4 => bedrock::model("us-east-1", "m"),
        _ => anthropic::model("claude-opus-4-8"),
    }
}

proptest! {
    #[test]
    fn the_cached_body_is_the_body_from_scratch(steps in prop::collection::vec(step(), 1..24)) {
        let mut cache = EncodedCache::default();
        let mut model = claude();
        let mut messages: Vec<Arc<Message>> = Vec::new();
        let tools: Arc<[_]> = vec![tool("t", "{}")].into();
        for (number, step) in steps.into_iter().enumerate() {
            let id = number.to_string();
            match step {
                Step::User(words) => messages.push(user(&id, vec![text(&words)])),
                Step::Picture => messages.push(user(&id, vec![image()])),
                Step::Answer(words) => messages.push(assistant(&id, &model, vec![
                    Part::Reasoning { text: "r".into(), replay: Some(raw(r#"{"signature":"s"}"#)) },
                    Part::Text { text: words, replay: None },
                ])),
                Step::Calls(ids, answered) => {
                    let name = |id: &u8| format!("call/{id}");
                    messages.push(assistant(&id, &model, ids.iter().map(|id| call(&name(id), "t", "{}")).collect()));
                    if answered {
                        let answers = ids.iter().rev().map(|id| result(&name(id), "t", vec![text("ok")], false));
                        messages.push(results(&format!("{id}r"), answers.collect()));
                    }
                }
                Step::Replace(at) => {
                    if let Some(last) = messages.pop() {
                        let place = at.index(messages.len() + 1);
                        if let Some(message) = messages.get_mut(place) { *message = last }
                    }
                }
                Step::Drop(at) if !messages.is_empty() => {
                    messages.remove(at.index(messages.len()));
                }
                Step::Drop(_) => {}
                Step::Switch(number) => model = model_of(number),
            }
            let request = ModelRequest { tools: tools.clone(), ..request(&model, messages.clone()) };
            let wire = wire::replay::wire(&model);
            let cached = wire.encode(&request, &mut cache);
            let scratch = wire.encode(&request, &mut EncodedCache::default());
            let (Ok(cached), Ok(scratch)) = (&cached, &scratch) else {
                prop_assert_eq!(cached.is_err(), scratch.is_err());
                continue;
            };
            prop_assert_eq!(str::from_utf8(&cached.body).unwrap(), str::from_utf8(&scratch.body).unwrap());
            let body: Value = serde_json::from_slice(&scratch.body).unwrap();
            let (calls, answers) = ids(&body);
            prop_assert_eq!(&calls, &answers, "every call has its result");
            prop_assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "ids are unique");
            prop_assert!(RawJson::parse(str::from_utf8(&scratch.body).unwrap()).is_ok());
        }
    }
}
