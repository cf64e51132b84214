//! Histories that have become too long for the model.

use crablet::agent::{Agent, Compaction, EventKind, Input};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, in_short, text};

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
    agent.policy.compaction = Some(Compaction { threshold: Some(2_000), keep: 500 });
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
