//! The scanner of deltas and the walk over the same payloads come to the same events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{ResponseHead, anthropic};
use proptest::prelude::*;
use proptest::strategy::Union;
use wire::{replay, scanned};

/// A string as JSON writes it, and now and then one that is none.
fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => r#""([a-z {}é🦀]|\\["\\/bfnrt]|\\u00e9|\\ud83e\\udd80){0,6}""#,
        1 => r#""(a|\\ud83e|\\udd80|\\u0061){0,4}""#,
        1 => r#""(a|\\x|\\u12|\t)?"?"#,
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => string(),
        4 => prop_oneof!["null", "0", "1", "true", "\"\"", "\\[\\]", "\\{\\}"],
        1 => prop_oneof!["-1", "1\\.5", "01", "1e2", "nul", "18446744073709551616", "\\{\"a\":1\\}", "\\[\"u\"\\]", "\"error\""],
    ]
}

/// An object: the expected members, with some of the others, in any order, some of them twice.
fn object(
    expected: Vec<(&'static str, BoxedStrategy<String>)>,
    others: &'static [&'static str],
) -> BoxedStrategy<String> {
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        value.prop_map(move |value| format!("\"{name}\":{value}")).boxed()
    };
    let other = || prop::sample::select(others).prop_flat_map(move |name| member(name, value().boxed()));
    let expected: Vec<_> = expected.into_iter().map(|(name, value)| member(name, value)).collect();
    let again = Union::new(expected.clone().into_iter().chain([other().boxed()]));
    let others = prop_oneof![4 => Just(Vec::new()), 4 => prop::collection::vec(other().boxed(), 1..3), 1 => prop::collection::vec(again.boxed(), 1..3)];
    (expected, others)
        .prop_map(|(expected, others)| expected.into_iter().chain(others).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|members| format!("{{{}}}", members.join(",")))
        .boxed()
}

fn just(value: &'static str) -> BoxedStrategy<String> {
    Just(value.to_owned()).boxed()
}

fn anthropic_delta() -> BoxedStrategy<String> {
    const KINDS: &[(&str, &str)] =
        &[("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")];
    let delta = prop::sample::select(KINDS).prop_flat_map(|(kind, member)| {
        let kind = Just(format!("\"{kind}\"")).boxed();
        object(vec![("type", kind), (member, string().boxed())], &["text", "thinking", "partial_json", "type", "x"])
    });
    let index = prop_oneof![9 => "[0-4]", 1 => value()].boxed();
    object(
        vec![("type", just("\"content_block_delta\"")), ("index", index), ("delta", delta.boxed())],
        &["error", "type", "object", "usage", "delta", "x"],
    )
}

fn chat_chunk() -> BoxedStrategy<String> {
    let function = object(vec![("arguments", string().boxed())], &["name", "arguments", "x"]);
    let call = object(
        vec![("index", prop_oneof![9 => "[0-2]", 1 => value()].boxed()), ("function", function)],
        &["id", "type", "function", "extra_content"],
    );
    let said = prop_oneof![
        object(
            vec![("content", string().boxed())],
            &["role", "refusal", "reasoning", "tool_calls", "images", "content"]
        ),
        object(vec![("reasoning_content", string().boxed())], &["reasoning", "reasoning_details", "content"]),
        object(vec![("reasoning", string().boxed())], &["reasoning_content", "annotations", "function_call"]),
        object(vec![("tool_calls", call.prop_map(|call| format!("[{call}]")).boxed())], &["content", "reasoning"]),
    ];
    let choice = object(
        vec![("index", prop_oneof![9 => Just("0".to_owned()), 1 => value()].boxed()), ("delta", said.boxed())],
        &["finish_reason", "native_finish_reason", "logprobs", "error", "usage", "message", "object"],
    );
    object(
        vec![("choices", choice.prop_map(|choice| format!("[{choice}]")).boxed())],
        &["id", "model", "usage", "error", "citations", "search_results", "x_groq", "type", "object", "choices"],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn scanned_and_walked_answers_are_the_same(
        payloads in prop_oneof![
            prop::collection::vec(anthropic_delta(), 1..6),
            prop::collection::vec(chat_chunk(), 1..6),
        ],
    ) {
        let head = ResponseHead { status: 200, headers: Vec::new() };
        let payloads = || payloads.iter().map(String::as_str);
        let [as_is, changed] = scanned::streams(scanned::BEGINNING.iter().copied().chain(payloads()));
        for model in [anthropic::model("m"), openai_chat::model(Profile::Custom, "m")] {
            let as_is = replay::events(&model, &head, [as_is.as_bytes()]);
            let changed = replay::events(&model, &head, [changed.as_bytes()]);
            prop_assert!(scanned::is_same(&as_is, &changed), "scanned: {as_is:#?}\nwalked: {changed:#?}");
        }
    }
}
