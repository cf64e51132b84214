//! Spans of a run, made of its events alone.

use std::sync::Arc;

use crablet::Millis;
use crablet::agent::{Attribute, Span, ToolDefinition, ToolOutput, Trace, TraceOptions};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, tool};

/// The spans of what the harness has shown, a millisecond an event.
fn spans(host: &Harness, options: TraceOptions) -> Vec<Span> {
    let mut trace = Trace::new(options);
    let events = host.events.iter().zip(0..);
    events.flat_map(|(event, millisecond)| trace.event(Millis(millisecond), event)).collect()
}

fn attribute<'span>(span: &'span Span, name: &str) -> Option<&'span Attribute> {
    span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn text(span: &Span, name: &str) -> String {
    match attribute(span, name) {
        Some(Attribute::Text(text)) => text.clone(),
        other => panic!("{name} of {} is {other:?}", span.name),
    }
}

/// A run with a failed attempt, a sub-agent and a tool that fails.
fn eventful() -> Harness {
    let helper = ToolDefinition::sub_agent("helper", "Helps.", Arc::new(agent(vec![])));
    let mut host = Harness::prompted(agent(vec![helper, tool("pay")]));
    host.fail_stream(Error::new(ErrorKind::Overloaded, "the secret reason"));
    host.pass(60_000);
    host.answer_calls(&[("h", "helper", r#"{"prompt":"the secret task"}"#), ("p", "pay", r#"{"card":"secret"}"#)]);
    host.tool_ends("p", ToolOutput::error("the secret failure"));
    host.answer("the secret finding");
    host.answer("the secret answer");
    host.run_end();
    host
}

#[test]
fn a_run_is_a_span_around_those_of_its_attempts_tools_and_sub_agents() {
    let named = TraceOptions { agent_name: Some("clerk".into()), conversation_id: Some("c-1".into()), content: false };
    let spans = spans(&eventful(), named);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "chat",
            "execute_tool pay",
            "chat scripted",
            "invoke_agent helper",
            "execute_tool helper",
            "chat scripted",
            "chat scripted",
            "invoke_agent clerk",
        ]
    );
    let [failed, pay, inner_chat, inner, helper, first, second, run] = &spans[..] else { panic!() };
    assert!(spans.iter().all(|span| span.trace_id == run.trace_id && span.trace_id.len() == 32));
    let ids: std::collections::HashSet<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
    assert!(ids.len() == spans.len() && ids.iter().all(|id| id.len() == 16));
    assert_eq!(run.parent_span_id, None);
    for span in [failed, pay, helper, first, second] {
        assert_eq!(span.parent_span_id.as_ref(), Some(&run.span_id), "{}", span.name);
        assert!(run.start <= span.start && span.start <= span.end && span.end <= run.end, "{}", span.name);
    }
    assert_eq!(inner.parent_span_id.as_ref(), Some(&helper.span_id));
    assert_eq!(inner_chat.parent_span_id.as_ref(), Some(&inner.span_id));
    assert!(first.is_client && !pay.is_client && !run.is_client);
    assert!(first.end < helper.end, "the model call is over before its tools are");

    assert_eq!(text(first, "gen_ai.operation.name"), "chat");
    assert_eq!(text(first, "gen_ai.provider.name"), "test");
    assert_eq!(text(first, "gen_ai.request.model"), "scripted");
    assert_eq!(attribute(first, "gen_ai.usage.input_tokens"), Some(&Attribute::Integer(10)));
    assert_eq!(attribute(run, "gen_ai.usage.output_tokens"), Some(&Attribute::Integer(15)));
    assert_eq!(attribute(run, "gen_ai.response.finish_reasons"), Some(&Attribute::Texts(vec!["stop".into()])));
    assert_eq!(text(run, "gen_ai.conversation.id"), "c-1");
    assert_eq!(text(inner, "gen_ai.agent.name"), "helper");
    assert_eq!(text(pay, "gen_ai.tool.call.id"), "p");
    assert_eq!((text(pay, "error.type"), text(failed, "error.type")), ("tool_error".into(), "overloaded".into()));
}

#[test]
fn nothing_that_was_said_is_in_a_span_unless_it_is_asked_for() {
    let host = eventful();
    assert!(!format!("{:?}", spans(&host, TraceOptions::default())).contains("secret"));
    let told = spans(&host, TraceOptions { content: true, ..TraceOptions::default() });
    let run = told.last().unwrap();
    assert_eq!(text(run, "gen_ai.input.messages"), r#"[{"role":"user","parts":[{"type":"text","content":"hello"}]}]"#);
    assert!(text(run, "gen_ai.output.messages").contains("the secret answer"));
    assert_eq!(text(&told[1], "gen_ai.tool.call.arguments"), r#"{"card":"secret"}"#);
    assert_eq!(text(&told[1], "gen_ai.tool.call.result"), "the secret failure");
    assert_eq!(told[0].error.as_deref(), Some("the secret reason"));
}

#[test]
fn a_run_that_is_resumed_elsewhere_goes_on_in_its_trace_with_other_spans() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.answer_calls(&[("1", "t", "{}")]);
    let mut restored = host.restored(agent(vec![tool("t")]));
    restored.answer("done");
    host.tool_ends("1", ToolOutput::text("ok"));
    host.answer("done");
    let before = spans(&host, TraceOptions::default());
    let mut trace = Trace::new(TraceOptions::default());
    let after: Vec<Span> = restored.events.iter().flat_map(|event| trace.event(Millis(9_000), event)).collect();
    assert_eq!(after.last().unwrap().trace_id, before.last().unwrap().trace_id);
    assert!(after.iter().all(|span| before.iter().all(|other| other.span_id != span.span_id)));
}

#[test]
fn an_abort_ends_what_is_open() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(crate::harness::text_block(0, "half"));
    host.give(crablet::agent::Input::Abort { reason: None });
    let spans = spans(&host, TraceOptions::default());
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["chat", "invoke_agent"]);
    assert_eq!(text(&spans[1], "error.type"), "aborted");
}
