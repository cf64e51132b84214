//! Cases of the area agent-loop that are about the machine and stand nowhere else. The rest are beside the behaviour they
//! belong to (159, 160, 165, 174, 187) or with the wires (167 in `wire_streams`, 169, 170 and 177 in `wire_transcripts`).

use crablet::agent::{ToolDefinition, ToolOutput};
use crablet::model::{Body, CallId, Message, Part};

use crate::harness::{Harness, agent, content_in_short, raw, tool};

fn calls_of(message: &Message) -> Vec<CallId> {
    let Body::Assistant(assistant) = &message.body else { panic!("not an answer") };
    let calls = assistant.content.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.call_id.clone()),
        _ => None,
    });
    calls.collect()
}

fn results_of(message: &Message) -> Vec<CallId> {
    let Body::Tool(tool) = &message.body else { panic!("no results") };
    tool.results.iter().map(|result| result.call_id.clone()).collect()
}

#[test]
fn case_162_duplicate_tool_ids() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    for _ in 0..2 {
        host.answer_calls(&[("functions.t:0", "t", "{}")]);
        let latest = host.handed_out().last().unwrap().to_string();
        host.tool_ends(&latest, ToolOutput::text("ok"));
    }
    host.answer_calls(&[("x", "t", "{}"), ("x", "t", "{}"), ("", "t", "{}")]);
    let open: Vec<String> = host.handed_out()[2..].iter().map(|id| id.to_string()).collect();
    for call_id in &open {
        host.tool_ends(call_id, ToolOutput::text("ok"));
    }
    let history = host.session.history();
    let mut all = Vec::new();
    for pair in history[1..].chunks(2) {
        assert_eq!(calls_of(&pair[0]), results_of(&pair[1]), "each result belongs to the call right before it");
        all.extend(calls_of(&pair[0]));
    }
    assert_eq!(
        (all[0].as_str(), all[2].as_str()),
        ("functions.t:0", "x"),
        "the provider's id is kept while it is unused"
    );
    for fresh in [&all[1], &all[3], &all[4]] {
        let is_plain = fresh.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        assert!(is_plain && (1..=64).contains(&fresh.as_str().len()), "{fresh}");
    }
    let distinct: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), 5);
}

#[test]
fn case_164_invalid_json_arguments() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"number"}}}"#;
    let strict = ToolDefinition {
        input_schema: raw(r#"{"type":"object","properties":{"a":{}},"required":["a"]}"#),
        ..tool("strict")
    };
    let counts = ToolDefinition { input_schema: raw(schema), ..tool("counts") };
    let mut host = Harness::prompted(agent(vec![strict, counts]));
    host.answer_calls(&[
        ("1", "strict", r#"{"a":1"#),
        ("2", "strict", "[1]"),
        ("3", "strict", r#""x""#),
        ("4", "strict", "null"),
        ("5", "strict", r#"{"a":1}{"a":2}"#),
        ("6", "counts", r#"{"n":"not a number"}"#),
        ("7", "counts", "null"),
    ]);
    assert_eq!(host.handed_out(), ["7"], "null is no arguments where none are required");
    for result in host.results() {
        assert!(result.is_error);
        let text = content_in_short(&result.content);
        assert!(text.contains("was not run") && text.len() > 40, "it says what is wrong: {text}");
    }
    host.tool_ends("7", ToolOutput::text("ok"));
    let results = results_of(&host.session.history()[2]);
    assert_eq!(results.len(), 7);
}

#[test]
fn case_172_parallel_result_order() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.answer_calls(&[("t1", "t", "{}"), ("t2", "t", "{}")]);
    host.tool_ends("t2", ToolOutput::text("first to finish"));
    host.tool_ends("t1", ToolOutput::text("second to finish"));
    let shown: Vec<String> = host.results().iter().map(|result| result.call_id.to_string()).collect();
    assert_eq!(shown, ["t2", "t1"], "shown as they come");
    assert_eq!(host.transcript()[2], "tool(t1 ok; t2 ok)", "kept in call order, in one message");
}

#[test]
fn case_175_tool_throws() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.answer_calls(&[("1", "t", "{}")]);
    host.tool_ends("1", ToolOutput::error("x"));
    assert!(host.results()[0].is_error);
    assert_eq!(content_in_short(&host.results()[0].content), "x");
    host.answer("the tool failed, sorry");
    assert_eq!(host.run_end().text, "the tool failed, sorry");
}

/// The state that is on disk is valid at every point, and the interrupted step goes on.
#[test]
fn case_180_service_worker_death() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.stream(crate::harness::text_block(0, "two events"));
    let mut woken = host.restored(agent(vec![tool("t")]));
    assert_eq!(woken.transcript(), ["user(hello)"], "the interrupted step is not marked finished");
    woken.answer("all of it");
    assert_eq!(woken.transcript(), ["user(hello)", "assistant(all of it)"]);
}
