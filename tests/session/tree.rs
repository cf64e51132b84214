//! The session tree: going elsewhere, labels, and what is saved of them.

use std::sync::Arc;

use crablet::agent::{Compaction, Effect, Input, Save, Session, TreeError};
use crablet::model::MessageId;

use crate::harness::{Harness, agent, in_short, text, tool};

fn ids(host: &Harness) -> Vec<MessageId> {
    host.session.history().iter().map(|message| message.id.clone()).collect()
}

/// A conversation of two turns.
fn conversation() -> Harness {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    host.answer("one");
    host.give(Input::Prompt(text("second")));
    host.answer("two");
    host
}

fn copy(host: &Harness) -> Harness {
    host.restored(agent(vec![tool("a")]))
}

#[test]
fn a_conversation_goes_on_elsewhere_and_keeps_what_it_left() {
    let mut host = conversation();
    let before = ids(&host);
    host.session.seek(Some(&before[1])).unwrap();
    assert_eq!(host.transcript(), ["user(hello)", "assistant(one)"]);
    host.give(Input::Prompt(text("another second")));
    host.answer("another two");
    let sent: Vec<String> = host.model_call().1.messages.iter().map(|message| in_short(message)).collect();
    assert_eq!(sent, ["user(hello)", "assistant(one)", "user(another second)"]);

    let parents: Vec<Option<MessageId>> = host.session.tree().map(|entry| entry.parent.cloned()).collect();
    assert_eq!(parents.len(), 6);
    assert_eq!(parents[2], parents[4], "both prompts follow the first answer");

    let mut restored = copy(&host);
    assert_eq!(restored.transcript(), host.transcript(), "the place is saved");
    restored.session.seek(Some(&before[3])).unwrap();
    assert_eq!(restored.transcript(), ["user(hello)", "assistant(one)", "user(second)", "assistant(two)"]);
    restored.session.seek(None).unwrap();
    restored.give(Input::Prompt(text("from nothing")));
    assert_eq!(restored.transcript(), ["user(from nothing)"]);
    assert_eq!(restored.session.entry(&before[0]).unwrap().parent, None);
}

#[test]
fn a_place_between_calls_and_results_or_under_a_run_is_refused() {
    let mut host = conversation();
    host.give(Input::Prompt(text("use it")));
    host.answer_calls(&[("1", "a", "{}")]);
    let call = ids(&host)[5].clone();
    assert_eq!(host.session.seek(None), Err(TreeError::Busy));
    host.give(Input::Abort { reason: None });
    assert_eq!(host.session.seek(Some(&call)), Err(TreeError::Open(call)));
    let nowhere = MessageId::new("nowhere");
    assert_eq!(host.session.seek(Some(&nowhere)), Err(TreeError::Unknown(nowhere.clone())));
    assert_eq!(host.session.label(&nowhere, None), Err(TreeError::Unknown(nowhere)));
    assert_eq!(host.transcript().len(), 7);
}

#[test]
fn labels_are_saved_and_taken_away() {
    let mut host = conversation();
    let ids = ids(&host);
    host.session.label(&ids[1], Some("good".into())).unwrap();
    host.session.label(&ids[3], Some("bad".into())).unwrap();
    host.session.label(&ids[3], None).unwrap();
    let restored = copy(&host);
    let labels: Vec<Option<String>> = restored.session.tree().map(|entry| entry.label.map(str::to_owned)).collect();
    assert_eq!(labels, [None, Some("good".to_owned()), None, None]);
    let fork = host.session.fork(&ids[1], 9).unwrap();
    assert_eq!(fork.entry(&ids[1]).unwrap().label, Some("good"));
}

#[test]
fn a_store_is_told_of_a_move_and_of_labels() {
    let stored = || crablet::agent::Agent { has_store: true, ..agent(vec![]) };
    let mut host = Harness::prompted(stored());
    host.save();
    host.answer("one");
    host.save();
    let ids = ids(&host);
    host.session.label(&ids[0], Some("start".into())).unwrap();
    host.session.seek(Some(&ids[0])).unwrap();
    let mut added = String::new();
    while let Some(effect) = host.session.poll_effect() {
        let Effect::Checkpoint { save: Save::Append(lines), .. } = &effect else { panic!("{effect:?}") };
        added.push_str(lines);
        host.effects.push(effect);
    }
    assert_eq!(added.lines().count(), 2, "a label and a state: {added}");
    let saves = host.effects.iter().filter_map(|effect| match effect {
        Effect::Checkpoint { save, .. } => Some(save.clone()),
        _ => None,
    });
    let text = saves.reduce(Save::then).unwrap().text().to_owned();
    let restored = Session::restore_stored(&text, Arc::new(stored()), host.now).unwrap();
    assert_eq!(restored.history().len(), 1);
    assert_eq!(restored.entry(&ids[0]).unwrap().label, Some("start"));
}

#[test]
fn a_compaction_holds_where_its_messages_are_on_the_way() {
    let mut agent = agent(vec![]);
    agent.policy.compaction = Some(Compaction { threshold: Some(1_000), keep: 500, ..Compaction::default() });
    let mut host = Harness::new(agent.clone());
    for turn in 0..20 {
        host.give(Input::Prompt(text(&format!("question {turn} {}", "word ".repeat(100)))));
        host.answer(&format!("answer {turn}"));
    }
    let ids = ids(&host);
    let sent = |host: &mut Harness| {
        host.give(Input::Prompt(text("and now?")));
        let count = host.model_call().1.messages.len();
        host.give(Input::Abort { reason: None });
        count
    };
    host.session.seek(Some(&ids[3])).unwrap();
    assert_eq!(sent(&mut host), 5, "nothing is left out of so little");
    host.session.seek(Some(&ids[39])).unwrap();
    let compacted = sent(&mut host);
    assert!(compacted < 30, "{compacted}");
    host.session.seek(Some(&ids[39])).unwrap();
    let mut restored = host.restored(agent);
    assert_eq!(sent(&mut restored), compacted);
}
