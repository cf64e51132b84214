//! Lazy discovery: the model is told of one tool and finds the others.

use crablet::agent::{Agent, Discovery, Input, ToolDefinition, ToolOutput};

use crate::harness::{Harness, agent, content_in_short, tool};

fn described(name: &str, description: &str) -> ToolDefinition {
    ToolDefinition { description: description.into(), ..tool(name) }
}

fn many() -> Agent {
    let tools = vec![
        described("send_mail", "Sends a message to people."),
        described("read_file", "Reads a file from the folder."),
        described("write_file", "Writes a file."),
        described("list_folder", "Lists files."),
    ];
    Agent { discovery: Some(Discovery { page_size: 2, ..Discovery::default() }), ..agent(tools) }
}

fn told(host: &Harness) -> Vec<String> {
    host.model_call().1.tools.iter().map(|tool| tool.name.clone()).collect()
}

fn listed(host: &Harness) -> String {
    content_in_short(&host.results().last().unwrap().content)
}

#[test]
fn tools_that_were_found_can_be_called_from_the_next_step_on() {
    let mut host = Harness::prompted(many());
    assert_eq!(told(&host), ["listTools"]);
    host.answer_calls(&[("1", "listTools", r#"{"query":"Write file"}"#)]);
    assert!(listed(&host).starts_with(r#"{"tools":[{"name":"write_file""#), "best first: {}", listed(&host));
    assert_eq!(told(&host), ["listTools", "write_file", "read_file"]);
    host.answer_calls(&[("2", "write_file", "{}"), ("3", "send_mail", "{}")]);
    assert_eq!(host.handed_out(), ["2"], "what was not found is not there");
    host.tool_ends("2", ToolOutput::text("written"));
    host.answer("done");
    host.give(Input::Prompt(crate::harness::text("and again")));
    assert_eq!(told(&host).len(), 3, "found for the rest of the conversation");
}

#[test]
fn a_long_list_comes_in_pages() {
    let mut host = Harness::prompted(many());
    host.answer_calls(&[("1", "listTools", "{}")]);
    assert!(listed(&host).contains(r#""nextCursor":"2""#));
    host.answer_calls(&[("2", "listTools", r#"{"cursor":"2"}"#)]);
    assert!(!listed(&host).contains("nextCursor") && listed(&host).contains("list_folder"));
    host.answer_calls(&[("3", "listTools", r#"{"cursor":"two"}"#)]);
    assert!(host.results()[2].is_error && listed(&host).contains("two"));
    host.answer_calls(&[("4", "listTools", r#"{"query":"astronomy"}"#)]);
    assert_eq!(listed(&host), r#"{"tools":[]}"#);
}

#[test]
fn what_was_found_is_saved() {
    let mut host = Harness::prompted(many());
    host.answer_calls(&[("1", "listTools", r#"{"query":"mail"}"#)]);
    assert_eq!(told(&host.restored(many())), ["listTools", "send_mail"]);
}
