//! Histories of every kind, sent to every kind of provider. Named after the cases that describe them in words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    Body, CacheRetention, Effort, EncodedCache, Message, Model, ModelRequest, Part, Reasoning, RequestOptions,
    ToolChoice, anthropic, gemini,
};
use proptest::prelude::*;
use serde_json::Value;
use wire::history::{Step, apply, models, step};
use wire::intent::{assistant, call, raw, result, results, text, tool, user};
use wire::replay::body;
use wire::rules;

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

/// Options that change what is around the turns and, some of them, the turns at the ends.
fn options() -> impl Strategy<Value = RequestOptions> {
    let tools = prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec![raw(r#"{"type":"web_search_20250305","name":"web_search"}"#)]),
        1 => Just(vec![raw(r#"{"type":"bash_20250124","name":"t"}"#)]),
    ];
    let cache = prop::option::of(prop::sample::select(vec![CacheRetention::Short, CacheRetention::Long]));
    let reasoning = prop::option::of(prop::sample::select(vec![
        Reasoning::Off,
        Reasoning::Effort(Effort::High),
        Reasoning::Budget(2048),
    ]));
    let choice = prop::option::of(prop::sample::select(vec![ToolChoice::Auto, ToolChoice::Tool("t".into())]));
    let words = prop::option::of("[a-z]{1,4}");
    (tools, cache, reasoning, choice, words, any::<bool>()).prop_map(
        |(tools, cache, reasoning, choice, words, has_extra)| {
            let mut options = RequestOptions::default();
            options.provider_tools = tools.into();
            options.cache = cache;
            options.reasoning = reasoning;
            options.tool_choice = choice;
            options.user.clone_from(&words);
            options.cache_key = words;
            options.extra_body = has_extra.then(|| raw(r#"{"x":{"y":1},"generationConfig":{"topK":4}}"#));
            options
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_history_is_valid_for_every_wire(steps in prop::collection::vec(step(), 1..10)) {
        let models = models();
        let mut model = claude();
        let mut messages: Vec<Arc<Message>> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            apply(step, number, &models, &mut model, &mut messages);
        }
        for model in &models {
            let request = request(model, messages.clone());
            let wire = wire::replay::wire(model);
            match wire.encode(&request, &mut EncodedCache::default()) {
                Ok(http) => {
                    let body = serde_json::from_slice(&http.body).unwrap();
                    let broken = rules::broken(wire.name(), &model.provider, &model.id, &body);
                    prop_assert_eq!(broken, Vec::<String>::new(), "{}: {}", model.id, body);
                }
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    let is_prompt = messages.last().is_some_and(|last| matches!(last.body, Body::User(_)));
                    prop_assert!(is_prompt || error.message().contains("nothing to send"), "{}", error);
                }
            }
        }
    }

    #[test]
    fn the_cached_body_is_the_body_from_scratch(
        steps in prop::collection::vec((step(), options()), 1..24),
        first in any::<prop::sample::Index>(),
        stays in any::<bool>(),
    ) {
        let mut cache = EncodedCache::default();
        let models = models();
        let mut model = first.get(&models).clone();
        let mut messages: Vec<Arc<Message>> = Vec::new();
        let tools: Arc<[_]> = vec![tool("t", "{}")].into();
        for (number, (step, options)) in steps.into_iter().enumerate() {
            if stays && matches!(step, Step::Switch(_)) {
                continue;
            }
            apply(step, number, &models, &mut model, &mut messages);
            let request =
                ModelRequest { tools: tools.clone(), options: options.into(), ..request(&model, messages.clone()) };
            let wire = wire::replay::wire(&model);
            let cached = wire.encode(&request, &mut cache);
            let scratch = wire.encode(&request, &mut EncodedCache::default());
            let (Ok(cached), Ok(scratch)) = (&cached, &scratch) else {
                prop_assert_eq!(cached.is_err(), scratch.is_err());
                continue;
            };
            prop_assert_eq!(str::from_utf8(&cached.body).unwrap(), str::from_utf8(&scratch.body).unwrap());
            prop_assert!(RawJson::parse(str::from_utf8(&scratch.body).unwrap()).is_ok());
        }
    }
}
