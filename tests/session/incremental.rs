//! Checkpoints that write what has changed, and what they amount to.

use std::sync::Arc;

use crablet::agent::{Agent, Effect, Hooks, Input, Save, Session, ToolDefinition, ToolOutput};
use crablet::{Error, ErrorKind, Millis};

use crate::harness::{Harness, agent, text, tool};

/// What a store holds after every checkpoint that was asked for.
fn stored(host: &Harness) -> String {
    host.effects.iter().filter_map(save).cloned().reduce(Save::then).unwrap().text().to_owned()
}

fn save(effect: &Effect) -> Option<&Save> {
    match effect {
        Effect::Checkpoint { save, .. } => Some(save),
        _ => None,
    }
}

fn saves(host: &Harness) -> Vec<&Save> {
    host.effects.iter().filter_map(save).collect()
}

fn definition() -> Agent {
    let tools = vec![tool("a"), ToolDefinition { needs_approval: true, ..tool("guarded") }];
    Agent { has_store: true, hooks: Hooks { after_tool_call: true, ..Hooks::default() }, ..agent(tools) }
}

fn restored(text: &str) -> Session {
    Session::restore(text, Arc::new(definition()), Millis(1_000_000)).unwrap()
}

#[test]
fn the_first_checkpoint_begins_and_the_others_add() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("1", "a", "{\n \"n\" : 1.0 }"), ("2", "guarded", "{}")]);
    host.save();
    let kinds: Vec<bool> = saves(&host).iter().map(|save| matches!(save, Save::Replace(_))).collect();
    assert_eq!(kinds, [true, false]);
    let added = saves(&host)[1].text();
    assert!(!added.contains("hello"), "the prompt is stored already: {added}");
    assert_eq!(
        added.matches("\\\"n\\\" : 1.0").count(),
        1,
        "the input stands with its message and nowhere else: {added}"
    );
    for line in stored(&host).lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn what_was_added_is_the_whole() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("1", "a", "{\n \"n\" : 1.0 }"), ("2", "a", "{}"), ("3", "guarded", "{}")]);
    host.save();
    host.tool_ends("2", ToolOutput::text("two"));
    host.reply(Ok(crablet::agent::HookReply::Continue));
    host.decide("3", crablet::agent::Approval::Allow);
    host.give(Input::FollowUp(text("and then")));
    host.save();
    let copy = |text: &str| restored(text).snapshot();
    let saved_by_then = stored(&host);
    assert!(saved_by_then.lines().count() > host.session.snapshot().lines().count());
    assert_eq!(copy(&saved_by_then), copy(&host.session.snapshot()));
}

#[test]
fn a_stored_result_is_written_once_until_its_step_is_over() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("1", "a", "{}"), ("2", "a", "{}"), ("3", "guarded", "{}"), ("4", "guarded", "{}")]);
    host.save();
    host.forget();
    for call in ["1", "2"] {
        host.tool_ends(call, ToolOutput::text(format!("the result of {call}")));
        host.reply(Ok(crablet::agent::HookReply::Continue));
    }
    host.decide("3", crablet::agent::Approval::Allow);
    host.save();
    host.decide("4", crablet::agent::Approval::Allow);
    let texts: Vec<&str> = saves(&host).iter().map(|save| save.text()).collect();
    let mentions = texts.concat().matches("the result of 1").count();
    assert_eq!(mentions, 1, "{texts:#?}");
}

#[test]
fn a_text_that_ends_anywhere_restores_to_the_last_whole_checkpoint() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("1", "a", "{\n}")]);
    let first = saves(&host)[0].text().len();
    let stored = stored(&host);
    for end in first..stored.len() - 1 {
        let Some(cut) = stored.get(..end) else { continue };
        let mut session = Session::restore_stored(cut, Arc::new(definition()), host.now).unwrap();
        assert_eq!(session.history().len(), 1, "cut at {end}");
        let save = session.changes();
        assert_eq!(matches!(save, Save::Replace(_)), end > first, "what is torn is not added to, cut at {end}");
    }
    assert!(restored(&stored).history().len() > 1);
}

#[test]
fn a_restored_session_adds_to_what_is_stored_or_begins_again() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer("one");
    let text = stored(&host);
    let go_on = |mut session: Session| {
        session.handle(host.now, Input::CheckpointSaved { seq: 0 }).unwrap();
        session.changes()
    };
    let agent = || Arc::new(definition());
    assert!(matches!(go_on(Session::restore_stored(&text, agent(), host.now).unwrap()), Save::Append(_)));
    assert!(matches!(go_on(Session::restore(&text, agent(), host.now).unwrap()), Save::Replace(_)));
    let version_1 = include_str!("golden/snapshot-v1.json");
    let mut old = Session::restore_stored(version_1, agent(), host.now);
    let upgraded = old.as_mut().map(Session::changes);
    assert!(matches!(upgraded, Ok(Save::Replace(_)) | Err(_)));
}

#[test]
fn after_a_failed_save_everything_is_written_again() {
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer("one");
    let seq = host.checkpoint();
    host.give(Input::CheckpointFailed { seq, error: Error::new(ErrorKind::Network, "full") });
    host.give(Input::Prompt(text("again")));
    let last = saves(&host).pop().unwrap();
    assert!(matches!(last, Save::Replace(text) if text.contains("hello") && text.contains("again")));
}

#[test]
fn what_is_stored_stays_in_proportion_to_the_conversation() {
    let mut host = Harness::new(definition());
    let mut stored = String::new();
    let mut replaced = 0;
    for turn in 0..2_000 {
        host.give(Input::Prompt(text(&format!("question {turn}"))));
        host.save();
        host.answer("yes");
        host.save();
        for effect in std::mem::take(&mut host.effects) {
            match effect {
                Effect::Checkpoint { save: Save::Append(lines), .. } => stored.push_str(&lines),
                Effect::Checkpoint { save: Save::Replace(lines), .. } => {
                    stored = lines;
                    replaced += 1;
                }
                _ => {}
            }
        }
    }
    assert!(stored.len() < 3 * host.session.snapshot().len(), "{} bytes", stored.len());
    assert!((3..40).contains(&replaced), "replaced {replaced} times");
    assert_eq!(restored(&stored).history(), host.session.history());
}
