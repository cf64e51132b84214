//! Runs whose last answer is an object.

use crablet::ErrorKind;
use crablet::agent::{
    Agent, Effect, EndReason, Event, EventKind, HookQuestion, HookReply, Input, InputError, OutputDefinition, Policy,
    ToolOutput,
};
use crablet::model::{ModelEvent, OutputSchema, StopReason};

use crate::harness::{Harness, agent, raw, stop, text, text_block, tool};

const SCHEMA: &str =
    r#"{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"number"}},"required":["city"]}"#;

fn asking(has_validator: bool) -> Agent {
    with_schema(SCHEMA, has_validator)
}

fn with_schema(schema: &str, has_validator: bool) -> Agent {
    let mut output = OutputDefinition::new(OutputSchema::new("weather", raw(schema)));
    output.has_validator = has_validator;
    Agent { output: Some(output), ..agent(vec![tool("t")]) }
}

fn ended(host: &Harness) -> Option<&str> {
    host.run_end().output.as_ref().map(|output| output.as_str())
}

fn asked(host: &Harness) -> usize {
    let is_question =
        |effect: &&Effect| matches!(effect, Effect::AskHook { question: HookQuestion::ValidateOutput { .. }, .. });
    host.effects.iter().filter(is_question).count()
}

#[test]
fn the_last_answer_is_read_after_the_tools_have_run() {
    let mut host = Harness::prompted(asking(false));
    assert_eq!(host.model_call().1.options.output.as_ref().unwrap().name, "weather");
    host.answer_calls(&[("1", "t", "{}")]);
    host.tool_ends("1", ToolOutput::text("cold"));
    host.answer(r#"{"city":"Oslo","degrees":"-4"}"#);
    assert_eq!(ended(&host), Some(r#"{"city":"Oslo","degrees":-4}"#), "repaired where models often slip");
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Stop));
    assert_eq!(host.run_end().text, r#"{"city":"Oslo","degrees":"-4"}"#);
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_once_more() {
    let mut host = Harness::prompted(asking(false));
    host.answer(r#"{"town":"Oslo"}"#);
    assert_eq!(host.model_calls(), 2);
    let transcript = host.transcript();
    assert!(transcript[2].contains("lacks the required member") && transcript[2].contains("city"), "{transcript:?}");
    host.answer("```json\n{\"city\":\"Oslo\"}\n```");
    assert_eq!(ended(&host), Some(r#"{"city":"Oslo"}"#));

    let mut host = Harness::prompted(asking(false));
    host.answer("It is cold.");
    host.answer("");
    let error = host.run_end().error.clone().unwrap();
    assert_eq!((error.kind(), host.model_calls()), (ErrorKind::Protocol, 2));
    assert!(error.message().contains("It is empty"), "{error}");
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Error));
}

#[test]
fn the_hosts_validator_has_the_last_word() {
    let mut host = Harness::prompted(asking(true));
    host.answer(r#"{"city":"Oslo"}"#);
    assert_eq!(asked(&host), 1);
    host.reply(Err("city: there is no such city".into()));
    assert!(host.transcript()[2].contains("there is no such city"));
    host.answer(r#"{"city":"Bergen"}"#);
    host.reply(Ok(HookReply::Continue));
    assert_eq!(ended(&host), Some(r#"{"city":"Bergen"}"#));
    let stale = host.hook();
    assert_eq!(
        host.try_give(Input::HookReplied { hook: stale, reply: Ok(HookReply::Continue) }),
        Err(InputError::Unexpected)
    );
}

#[test]
fn a_validator_may_not_take_for_ever() {
    let slow = Agent { policy: Policy { hook_timeout: Some(1_000), ..Policy::default() }, ..asking(true) };
    let mut host = Harness::prompted(slow);
    host.answer(r#"{"city":"Oslo"}"#);
    host.pass(1_000);
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Timeout);
}

#[test]
fn what_comes_while_the_validator_is_asked_is_answered_first() {
    for (input, origin) in
        [(Input::Steer(text("in Bergen")), "steered"), (Input::FollowUp(text("in Bergen")), "follow-up")]
    {
        let mut host = Harness::prompted(asking(true));
        host.answer(r#"{"city":"Oslo"}"#);
        host.give(input);
        host.reply(Ok(HookReply::Continue));
        assert_eq!(host.model_calls(), 2, "{origin}");
        host.answer(r#"{"city":"Bergen"}"#);
        host.reply(Ok(HookReply::Continue));
        assert_eq!(ended(&host), Some(r#"{"city":"Bergen"}"#), "{origin}");
    }
}

#[test]
fn the_object_is_part_of_the_run_and_survives_a_restore() {
    let mut host = Harness::prompted(asking(true));
    host.answer("no object");
    // The new agent asks for no object, but the run does.
    let mut host = host.restored(agent(vec![tool("t")]));
    assert_eq!(host.model_call().1.options.output.as_ref().unwrap().schema.as_str(), SCHEMA);
    host.answer("again no object");
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Protocol, "the one repair is spent");

    let mut host = Harness::prompted(asking(true));
    host.answer(r#"{"city":"Oslo"}"#);
    let mut host = host.restored(asking(true));
    assert_eq!(asked(&host), 1, "asked again");
    host.reply(Ok(HookReply::Continue));
    assert_eq!(ended(&host), Some(r#"{"city":"Oslo"}"#));
}

#[test]
fn a_run_that_cannot_give_its_object_says_why() {
    let half = [text_block(0, r#"{"city":"Os"#), stop(StopReason::Length)].concat();
    let mut host = Harness::prompted(asking(false));
    host.stream(half);
    host.end_stream();
    assert_eq!((host.run_end().error.as_ref().unwrap().kind(), host.model_calls()), (ErrorKind::Limit, 1));
    let whole: Vec<ModelEvent> = [text_block(0, r#"{"city":"Oslo"}"#), stop(StopReason::Length)].concat();
    let mut host = Harness::prompted(asking(false));
    host.stream(whole);
    host.end_stream();
    assert_eq!(ended(&host), Some(r#"{"city":"Oslo"}"#));
    let mut host = Harness::prompted(asking(false));
    host.stream([text_block(0, "no"), stop(StopReason::Refusal)].concat());
    host.end_stream();
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::ContentFilter);
    let short = Agent { policy: Policy { max_steps: 1, ..Policy::default() }, ..asking(false) };
    let mut host = Harness::prompted(short);
    host.answer("no object");
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Limit);
}

#[test]
fn a_schema_that_cannot_be_used_is_told_before_anything_is_sent() {
    for schema in [r#"{"type":"array"}"#, r##"{"type":"object","properties":{"a":{"$ref":"#/none"}}}"##] {
        let mut host = Harness::new(with_schema(schema, false));
        let refused = host.try_give(Input::Prompt(text("hello"))).unwrap_err();
        assert!(matches!(refused, InputError::InvalidOutput(_)) && refused.kind() == ErrorKind::InvalidInput);
        assert!(host.events.is_empty() && host.session.history().is_empty());
    }
}

#[test]
fn keywords_that_nobody_checks_are_reported() {
    let unchecked = |events: &[Event]| -> Vec<(Option<String>, Vec<String>)> {
        let kinds = events.iter().map(|event| event.kind.clone());
        let unchecked = kinds.filter_map(|kind| match kind {
            EventKind::SchemaUnchecked { tool_name, keywords } => Some((tool_name, keywords)),
            _ => None,
        });
        unchecked.collect()
    };
    let schema = r#"{"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"}}}"#;
    let pattern = vec!["/properties/city/pattern".to_owned()];
    assert_eq!(unchecked(&Harness::prompted(with_schema(schema, false)).events), [(None, pattern.clone())]);
    assert_eq!(unchecked(&Harness::prompted(with_schema(schema, true)).events), [], "the host's validator checks it");

    let mut lookup = tool("lookup");
    lookup.input_schema = raw(schema);
    let mut host = Harness::prompted(agent(vec![lookup]));
    host.answer_calls(&[("1", "lookup", "{}"), ("2", "lookup", "{}")]);
    assert_eq!(unchecked(&host.events), [(Some("lookup".to_owned()), pattern)], "once, when it is first used");
}

#[test]
fn an_answer_that_is_said_to_end_with_calls_and_has_none_is_the_last_one() {
    let mut host = Harness::prompted(asking(false));
    host.stream([text_block(0, r#"{"city":"Oslo"}"#), stop(StopReason::ToolUse)].concat());
    host.end_stream();
    let end = host.run_end();
    assert_eq!(end.reason, EndReason::Model(StopReason::Stop));
    assert!(end.output.is_some(), "{end:?}");
}
