//! Histories that have become too long for the model.

use crablet::agent::{Agent, Compaction, Effect, EventKind, Input, Status, Summarizer, ToolDefinition};
use crablet::model::{ModelEvent, StopReason, Usage};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, in_short, stop, text, text_block, tool};

fn overflow() -> Error {
    Error::new(ErrorKind::ContextOverflow, "prompt is too long")
}

/// A conversation of so many turns of some hundred tokens, with the next prompt given.
fn long(agent: Agent, turns: usize) -> Harness {
    let mut host = Harness::new(agent);
    for turn in 0..turns {
        host.give(Input::Prompt(text(&format!("question {turn} {}", "word ".repeat(100)))));
        host.answer(&format!("answer {turn} {}", "word ".repeat(100)));
    }
    host.forget();
    host.give(Input::Prompt(text("and now?")));
    host
}

fn sent(host: &Harness) -> Vec<String> {
    host.model_call().1.messages.iter().map(|message| in_short(message)).collect()
}

#[test]
fn a_call_that_is_too_long_is_made_again_once_with_less() {
    let mut host = long(agent(vec![]), 20);
    assert_eq!(sent(&host).len(), 41);
    host.fail_stream(overflow());
    assert_eq!(host.names()[3..], ["compaction-start", "compaction-end", "step-retry"]);
    let messages = sent(&host);
    assert!(messages.len() < 25, "about half stays: {}", messages.len());
    assert!(messages[0].starts_with("user(question 0"), "the beginning stays in the cache");
    assert!(messages[1].starts_with("user(Earlier in this conversation"));
    assert_eq!(messages.last().unwrap(), "user(and now?)");
    let EventKind::CompactionEnd { replaced, tokens_before, tokens_after, .. } = &host.events[4].kind else { panic!() };
    assert_eq!(messages.len(), 41 - replaced + 1);
    assert!(tokens_after < tokens_before);

    host.answer("done");
    assert_eq!(host.transcript().len(), 42, "the history is whole");
    host.forget();
    host.give(Input::Prompt(text("again")));
    assert_eq!(sent(&host)[..2], messages[..2], "the next step begins with the same messages");
}

#[test]
fn a_call_that_stays_too_long_fails() {
    let mut host = long(agent(vec![]), 20);
    host.fail_stream(overflow());
    host.fail_stream(overflow());
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::ContextOverflow);
    let mut short = Harness::prompted(agent(vec![]));
    short.fail_stream(overflow());
    assert_eq!(
        short.run_end().error.as_ref().unwrap().kind(),
        ErrorKind::ContextOverflow,
        "there is nothing to leave out"
    );
    assert_eq!(short.model_calls(), 1);
}

#[test]
fn a_threshold_shortens_before_the_provider_complains() {
    let mut agent = agent(vec![]);
    agent.policy.compaction = Some(Compaction { threshold: Some(2_000), keep: 500, ..Compaction::default() });
    let host = long(agent, 20);
    let messages = sent(&host);
    assert!(messages.len() < 20, "{}", messages.len());
    assert!(messages[1].contains("Earlier"));
}

#[test]
fn without_compaction_such_a_call_fails() {
    let mut agent = agent(vec![]);
    agent.policy.compaction = None;
    let mut host = long(agent, 20);
    host.fail_stream(overflow());
    assert_eq!(host.model_calls(), 1);
    host.run_end();
}

#[test]
fn a_restored_session_sends_the_same() {
    let mut host = long(agent(vec![]), 20);
    host.fail_stream(overflow());
    let restored = host.restored(agent(vec![]));
    assert_eq!(sent(&restored), sent(&host));
    assert_eq!(restored.model_call().1.messages, host.model_call().1.messages);
}

/// An agent whose own model says in short what is left out.
fn summarized(threshold: Option<u64>) -> Agent {
    let mut agent = agent(vec![]);
    agent.policy.compaction = Some(Compaction { threshold, keep: 500, summarizer: Summarizer::MODEL });
    agent
}

/// A long conversation whose next prompt makes a summary due.
fn due() -> Harness {
    let mut host = long(agent(vec![]), 20);
    host.give(Input::Abort { reason: None });
    let mut host = host.restored(summarized(Some(1_000)));
    host.give(Input::Prompt(text("and then?")));
    host
}

/// The one message that the latest model call sends.
fn question(host: &Harness) -> String {
    let (_, request) = host.model_call();
    assert_eq!(request.messages.len(), 1);
    in_short(&request.messages[0])
}

#[test]
fn a_model_says_in_short_what_is_left_out() {
    let mut host = due();
    assert_eq!(host.names().last(), Some(&"compaction-start"));
    assert!(question(&host).contains("User: question 3"), "{}", question(&host));
    assert!(!question(&host).contains("and then?"), "what stays is not summarized");
    host.stream([text_block(0, "They asked a lot."), stop(StopReason::Stop)].concat());
    assert_eq!(host.names().last(), Some(&"compaction-start"), "the summary is not shown");
    host.end_stream();
    assert_eq!(host.names().last(), Some(&"compaction-end"));
    let messages = sent(&host);
    assert!(messages[0].starts_with("user(question 0"));
    assert!(messages[1].contains("They asked a lot."), "{}", messages[1]);
    assert_eq!(messages.last().unwrap(), "user(and then?)");
    host.answer("done");
    let end = host.run_end();
    assert_eq!(end.usage.output, Some(10), "its tokens count");
    assert_eq!(host.transcript().len(), 43, "the history is whole");
}

#[test]
fn a_call_that_is_too_long_waits_for_the_summary() {
    let mut host = long(summarized(None), 20);
    host.fail_stream(overflow());
    assert_eq!(host.names().last(), Some(&"compaction-start"));
    let mut restored = host.restored(summarized(None));
    assert_eq!(question(&restored), question(&host), "asked again after a restore");
    for host in [&mut host, &mut restored] {
        host.answer("In short: much was asked.");
        assert_eq!(host.names().last(), Some(&"step-retry"));
        assert!(sent(host)[1].contains("In short: much was asked."));
        host.fail_stream(overflow());
        assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::ContextOverflow, "once is enough");
    }
}

#[test]
fn where_the_model_fails_the_lines_stand_in_its_place() {
    let fail: [fn(&mut Harness); 4] = [
        |host| host.fail_stream(Error::new(ErrorKind::Overloaded, "busy")),
        |host| host.answer(""),
        |host| {
            host.stream(text_block(0, "cut off"));
            host.end_stream();
        },
        |host| host.pass(120_000),
    ];
    for fail in fail {
        let mut host = due();
        let calls = host.model_calls();
        fail(&mut host);
        assert_eq!(host.model_calls(), calls + 1, "the step goes on");
        assert!(sent(&host)[1].contains("User: question 3"), "{}", sent(&host)[1]);
    }
}

#[test]
fn a_second_summary_builds_on_the_first() {
    let mut host = due();
    host.answer("The first summary.");
    host.answer("done");
    for turn in 0..20 {
        host.give(Input::Prompt(text(&format!("later {turn} {}", "word ".repeat(100)))));
        if host.names().last() == Some(&"compaction-start") {
            assert!(question(&host).contains("The first summary."));
            return;
        }
        host.answer("yes");
    }
    panic!("no second compaction");
}

#[test]
fn a_summary_is_part_of_the_next_question_whole() {
    let mut host = due();
    host.answer(&format!("{}and the account is 4711.", "as was said ".repeat(300)));
    host.answer("done");
    host.forget();
    for turn in 0..20 {
        host.give(Input::Prompt(text(&format!("later {turn} {}", "word ".repeat(100)))));
        if host.names().last() == Some(&"compaction-start") {
            assert!(question(&host).contains("and the account is 4711."));
            return;
        }
        host.answer("yes");
    }
    panic!("no second compaction");
}

#[test]
fn what_stays_too_long_is_not_compacted_at_every_step() {
    for summarizer in [Summarizer::LINES, Summarizer::MODEL] {
        let mut definition = agent(vec![]);
        definition.policy.compaction = Some(Compaction { threshold: Some(1_000), keep: 1_000, summarizer });
        let mut host = Harness::new(definition);
        host.give(Input::Prompt(text(&"a long beginning ".repeat(1_000))));
        for _ in 0..40 {
            if host.names().last() == Some(&"compaction-start") {
                host.answer("in short");
            }
            host.answer(&"word ".repeat(100));
            host.give(Input::Prompt(text("and then?")));
        }
        let made = host.names().iter().filter(|name| **name == "compaction-end").count();
        // Some 5200 tokens came, of which a compaction leaves out 250 or more.
        assert!((3..=18).contains(&made), "{summarizer:?}: {made}");
    }
}

#[test]
fn an_abort_stops_the_summary() {
    let mut host = due();
    host.give(Input::Abort { reason: None });
    assert!(host.effects.iter().any(|effect| matches!(effect, Effect::CancelModel { .. })));
    host.run_end();
    assert_eq!(host.status(), Status::Idle);
    host.give(Input::Prompt(text("again")));
}

#[test]
fn estimates_learn_from_the_provider_and_count_what_is_sent() {
    let described = |length: usize| {
        let mut definition = agent(vec![ToolDefinition { description: "x".repeat(length), ..tool("a") }]);
        definition.policy.compaction = Some(Compaction { threshold: Some(2_000), keep: 100, ..Compaction::default() });
        definition
    };
    let turns = |agent: Agent, counted: Option<u64>| {
        let mut host = Harness::new(agent);
        for turn in 0..100 {
            host.give(Input::Prompt(text(&format!("question {turn} {}", "word ".repeat(20)))));
            if host.names().contains(&"compaction-end") {
                return turn;
            }
            let usage = Usage { input: counted.map(|counted| counted * (turn + 1)), ..Usage::default() };
            let end = ModelEvent::Stop { reason: StopReason::Stop, raw: None };
            host.stream([text_block(0, "yes"), vec![ModelEvent::Usage(usage), end]].concat());
            host.end_stream();
        }
        100
    };
    let plain = turns(described(10), None);
    assert!(plain < 100, "{plain}");
    assert!(turns(described(10), Some(120)) < plain, "a provider that counts more is believed");
    assert!(turns(described(10), Some(20)) > plain, "and one that counts less");
    assert!(turns(described(6_000), None) < plain, "tools are sent too");
}

/// A conversation whose first prompt and last result are long, with little between them.
fn little_to_leave_out(agent: Agent) -> Harness {
    let mut host = Harness::new(agent);
    host.give(Input::Prompt(text(&"word ".repeat(2_000))));
    host.answer("Yes.");
    host.forget();
    host.give(Input::Prompt(text(&"more ".repeat(2_000))));
    host
}

#[test]
fn what_would_become_longer_is_not_compacted() {
    let mut by_model = agent(vec![]);
    by_model.policy.compaction = Some(Compaction { summarizer: Summarizer::MODEL, ..Compaction::default() });
    for agent in [agent(vec![]), by_model] {
        let mut host = little_to_leave_out(agent);
        host.fail_stream(overflow());
        assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::ContextOverflow);
        assert!(!host.names().contains(&"compaction-start"));
        assert_eq!(host.model_calls(), 1, "nothing is asked of a model for it");
    }
}

#[test]
fn a_summary_of_few_long_messages_may_say_more_than_the_lines() {
    let mut host = Harness::new(summarized(Some(3_000)));
    host.give(Input::Prompt(text(&"word ".repeat(2_000))));
    host.answer(&"more ".repeat(2_000));
    host.give(Input::Prompt(text(&"much ".repeat(800))));
    assert_eq!(host.names().last(), Some(&"compaction-start"));
    let words = "what matters of it ".repeat(100);
    host.stream([text_block(0, &words), stop(StopReason::Stop)].concat());
    host.end_stream();
    assert!(sent(&host)[1].contains(words.trim()), "{:.200}", sent(&host)[1]);
}

#[test]
fn a_summary_that_is_longer_than_what_it_stands_for_gives_way_to_the_lines() {
    let mut host = due();
    host.stream([text_block(0, &"so much to say ".repeat(5_000)), stop(StopReason::Stop)].concat());
    host.end_stream();
    let summary = &sent(&host)[1];
    assert!(summary.starts_with("user(Earlier") && summary.contains("Assistant: answer"), "{summary:.200}");
    assert!(!summary.contains("so much to say"));
    let end = host.events.iter().find_map(|event| match event.kind {
        EventKind::CompactionEnd { tokens_before, tokens_after, .. } => Some((tokens_before, tokens_after)),
        _ => None,
    });
    assert!(end.is_some_and(|(before, after)| after < before), "{end:?}");
}
