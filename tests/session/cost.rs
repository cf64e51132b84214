//! What answers cost, and runs with a budget.

use crablet::agent::{Agent, EndReason, EventKind, Policy, ToolOutput};
use crablet::model::openai_chat::{self, Profile};
use crablet::model::{Dollars, ModelEvent, Prices, StopReason, Usage};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, call_block, stop, text_block, tool};

/// A dollar a token read, two a token written, so that the sums can be seen: the answers of the harness have 10 and 5.
fn priced(limit: Option<u64>) -> Agent {
    let prices = Prices {
        input: Dollars::from_cents(100_000_000),
        output: Dollars::from_cents(200_000_000),
        ..Prices::default()
    };
    let mut agent = agent(vec![tool("t")]);
    agent.model = agent.model.with_prices(prices);
    Agent {
        policy: Policy { max_cost: limit.map(|dollars| Dollars::from_cents(dollars * 100)), ..agent.policy.clone() },
        ..agent
    }
}

fn counted(input: u64, output: u64) -> Vec<ModelEvent> {
    vec![ModelEvent::Usage(Usage { input: Some(input), output: Some(output), ..Usage::default() })]
}

fn costs(host: &Harness) -> Vec<String> {
    let cost = |event: &crablet::agent::Event| match &event.kind {
        EventKind::StepEnd { usage, .. } => usage.cost.map(|cost| cost.to_string()),
        _ => None,
    };
    host.events.iter().filter_map(cost).collect()
}

fn one_call(host: &mut Harness, number: u64) {
    let id = format!("c{number}");
    let calls = call_block(0, &id, "t", &format!("{{\"n\":{number}}}"));
    host.stream([calls, stop(StopReason::ToolUse)].concat());
    host.end_stream();
    host.tool_ends(&id, ToolOutput::text("ok"));
}

#[test]
fn each_step_and_the_run_have_their_cost_failed_attempts_included() {
    let mut host = Harness::prompted(priced(None));
    host.stream(counted(3, 1));
    host.fail_stream(Error::new(ErrorKind::Overloaded, "busy"));
    host.pass(60_000);
    one_call(&mut host, 1);
    host.stream([text_block(0, "done"), stop(StopReason::Stop)].concat());
    host.end_stream();
    assert_eq!(costs(&host), ["25", "20"]);
    assert_eq!(host.run_end().usage.cost.unwrap().to_string(), "45");
}

#[test]
fn without_prices_there_is_no_cost_and_no_budget() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream([text_block(0, "done"), stop(StopReason::Stop)].concat());
    host.end_stream();
    assert_eq!(host.run_end().usage.cost, None);
    let mut unpriced = priced(Some(10));
    unpriced.model = openai_chat::model(Profile::Custom, "unpriced");
    let host = Harness::prompted(unpriced);
    let error = host.run_end().error.as_ref().unwrap();
    assert_eq!((host.model_calls(), error.kind()), (0, ErrorKind::InvalidInput));
    assert!(error.message().contains("unpriced"), "{error}");
}

#[test]
fn a_function_says_what_its_answers_cost() {
    let unpriced = || {
        let mut agent = priced(Some(30));
        agent.model.prices = None;
        agent
    };
    let step = |host: &mut Harness, number: u64, cost: Option<u64>| {
        let cost = cost.map(|dollars| Dollars::from_cents(dollars * 100));
        let (id, input) = (format!("c{number}"), format!("{{\"n\":{number}}}"));
        let end = vec![
            ModelEvent::Usage(Usage { cost, ..Usage::default() }),
            ModelEvent::Stop { reason: StopReason::ToolUse, raw: None },
        ];
        host.stream([call_block(0, &id, "t", &input), end].concat());
        host.end_stream();
        host.tool_ends(&id, ToolOutput::text("ok"));
    };
    let mut host = Harness::prompted(unpriced());
    step(&mut host, 1, Some(20));
    let mut host = host.restored(unpriced());
    step(&mut host, 2, Some(11));
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert_eq!(host.run_end().usage.cost.unwrap().to_string(), "31");

    let mut host = Harness::prompted(unpriced());
    step(&mut host, 1, None);
    let error = host.run_end().error.as_ref().unwrap();
    assert_eq!((host.model_calls(), error.kind()), (1, ErrorKind::InvalidInput), "a limit that nobody counts is none");
    assert!(error.message().contains("cost"), "{error}");
}

#[test]
fn a_budget_ends_the_run_between_steps_and_survives_a_snapshot() {
    let mut host = Harness::prompted(priced(Some(30)));
    one_call(&mut host, 1);
    let mut host = host.restored(priced(Some(30)));
    assert_eq!(host.model_calls(), 1, "20 of 30 dollars are spent");
    one_call(&mut host, 2);
    assert_eq!(host.names().iter().rev().take(2).collect::<Vec<_>>(), [&"run-end", &"limit-reached"]);
    assert!(host.events.iter().any(|event| event.kind == EventKind::LimitReached { limit: "cost" }));
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert_eq!(host.run_end().usage.cost.unwrap().to_string(), "40");
}
