//! What a worker reads of a saved conversation without the agent: how far a run is, and what of it may be shown.
//! `agent/snapshot_format.md` has the format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::agent::text_of_line;
use crate::json::Object;
use crate::model::{Body, CallId, Message, Origin, Part, ToolResult};
use crate::time::Millis;

/// The lines of a conversation up to the last that counts.
pub(super) struct Saved<'text> {
    entries: Vec<Cow<'text, str>>,
}

impl<'text> Saved<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let mut entries: Vec<_> = text.split('\n').filter(|line| !line.trim().is_empty()).map(text_of_line).collect();
        let last = entries.iter().rposition(|entry| is_state(entry));
        entries.truncate(last.map_or(0, |last| last + 1));
        Self { entries }
    }

    /// What the conversation is at.
    pub(super) fn state(&self) -> SavedState<'_> {
        self.entries.last().and_then(|entry| Object::parse(entry).ok()).map(SavedState).unwrap_or_default()
    }

    /// The messages from the last one on that began a run.
    pub(super) fn since_last_prompt(&self) -> Vec<Arc<Message>> {
        let mut messages: HashMap<String, (Option<String>, &str)> = HashMap::new();
        let entries: Vec<Object<'_>> = self.entries.iter().filter_map(|entry| Object::parse(entry).ok()).collect();
        for entry in entries.iter().filter(|entry| entry.string("type").as_deref() == Some("message")) {
            if let Some(message) = entry.get("message")
                && let Some(id) = Object::parse(message.get()).ok().and_then(|message| message.string("id"))
            {
                messages.insert(id, (entry.string("parent"), message.get()));
            }
        }
        let mut history = Vec::new();
        let mut place = self.state().0.string("head");
        // Each message is taken out, so that a way that goes in a circle ends.
        while let Some((parent, text)) = place.and_then(|id| messages.remove(&id)) {
            let Ok(message) = Message::parse(text) else { break };
            let is_prompt = matches!(&message.body, Body::User(user) if user.origin == Origin::Prompt);
            history.push(Arc::new(message));
            if is_prompt {
                break;
            }
            place = parent;
        }
        history.reverse();
        history
    }

    /// The results of the open step that are saved.
    pub(super) fn open_results(&self, messages: &[Arc<Message>]) -> Vec<ToolResult> {
        let Some(Body::Assistant(answer)) = messages.last().map(|message| &message.body) else { return Vec::new() };
        let mut results: Vec<(CallId, Option<ToolResult>)> = Vec::new();
        for part in &answer.content {
            if let Part::ToolCall(call) = part {
                results.push((call.call_id.clone(), None));
            }
        }
        for entry in self.entries.iter().filter(|entry| entry.starts_with("{\"type\":\"result\"")) {
            let result = Object::parse(entry).ok().and_then(|entry| ToolResult::read(&entry.object("result")?).ok());
            if let Some(result) = result
                && let Some((_, kept)) = results.iter_mut().find(|(call_id, _)| *call_id == result.call_id)
            {
                *kept = Some(result);
            }
        }
        results.into_iter().filter_map(|(_, result)| result).collect()
    }
}

/// The part of a saved state that says what became of inputs.
#[derive(Default)]
pub(super) struct SavedState<'text>(Object<'text>);

impl<'text> SavedState<'text> {
    /// The last state of these lines; `None` when there is none.
    pub(super) fn last(lines: &'text str) -> Option<Self> {
        // A state has no raw JSON with line feeds, so it is never written as a text.
        let line = lines.rsplit('\n').find(|line| is_state(line))?;
        Object::parse(line).ok().map(Self)
    }

    fn run(&self) -> Option<Object<'text>> {
        self.0.object("run")
    }

    fn phase(&self) -> Option<Object<'text>> {
        self.run()?.object("phase")
    }

    fn is_phase_ending(&self) -> bool {
        self.phase().and_then(|phase| phase.string("type")).as_deref() == Some("ending")
    }

    /// Whether a run is not finished.
    pub(super) fn is_open(&self) -> bool {
        self.run().is_some() && !self.is_phase_ending()
    }

    /// Whether nothing is left of a run but to show its end.
    pub(super) fn is_ending(&self) -> bool {
        self.run().is_some() && self.is_phase_ending()
    }

    pub(super) fn run_id(&self) -> Option<String> {
        self.run()?.string("id")
    }

    /// Whether a call is in this stage, or one of a sub-agent.
    pub(super) fn has_call(&self, call_id: &str, stage: &str) -> bool {
        let calls = self.phase().map(|phase| phase.objects("calls")).unwrap_or_default();
        calls.into_iter().any(|call| {
            let is_it =
                call.string("callId").as_deref() == Some(call_id) && call.string("stage").as_deref() == Some(stage);
            is_it || call.object("session").is_some_and(|session| Self(session).has_call(call_id, stage))
        })
    }

    /// The first deadline of a run that is not finished, those of sub-agents too.
    pub(super) fn due_at(&self) -> Option<Millis> {
        let run = self.run()?;
        let own = run.objects("timers").into_iter().filter_map(|timer| timer.integer("at").map(Millis)).min();
        let calls = self.phase().map(|phase| phase.objects("calls")).unwrap_or_default();
        let within = calls.into_iter().filter_map(|call| Self(call.object("session")?).due_at()).min();
        [own, within].into_iter().flatten().min()
    }

    /// The end of a run that was saved and perhaps not shown.
    pub(super) fn end(self) -> Option<SavedEnd<'text>> {
        self.is_ending().then(|| self.run().map(SavedEnd)).flatten()
    }
}

/// The event `run-end` of a run whose end was saved.
pub(super) struct SavedEnd<'text>(Object<'text>);

impl Serialize for SavedEnd<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(run) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "run-end")?;
        map.serialize_entry("runId", &run.string("id").unwrap_or_default())?;
        map.serialize_entry("step", &run.integer("steps").unwrap_or_default().saturating_sub(1))?;
        let phase = run.object("phase").unwrap_or_default();
        for (name, value) in phase.iter().filter(|(name, _)| *name != "type") {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn is_state(entry: &str) -> bool {
    Object::parse(entry).is_ok_and(|entry| entry.string("type").as_deref() == Some("state"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn what_stands_behind_the_last_state_is_void_and_the_history_is_the_way_to_the_head() {
        let message = |id: &str, parent: &str, origin: &str| {
            format!(
                r#"{{"type":"message","parent":{parent},"message":{{"id":"{id}","role":"user","content":[]{origin}}}}}"#
            )
        };
        let lines = [
            r#"{"format":"crablet-session","version":2}"#.to_owned(),
            message("m1", "null", ""),
            message("m2", "\"m1\"", ""),
            message("m3", "\"m2\"", ",\"origin\":\"steered\""),
            message("m4", "\"m1\"", ""),
            r#"{"type":"state","head":"m3","run":{"id":"r","timers":[{"at":9},{"at":7}],"phase":{"type":"calling"}}}"#
                .to_owned(),
            message("m5", "\"m3\"", ""),
        ];
        let text = lines.join("\n");
        let saved = Saved::new(&text);
        let ids: Vec<String> = saved.since_last_prompt().iter().map(|message| message.id.to_string()).collect();
        assert_eq!(ids, ["m2", "m3"]);
        assert!(saved.state().is_open() && !saved.state().is_ending());
        assert_eq!(saved.state().due_at(), Some(Millis(7)));
    }

    #[test]
    fn the_end_of_a_run_is_told_with_the_text_that_was_saved() {
        let state = r#"{"type":"state","run":{"id":"r","steps":2,"phase":{"type":"ending","stopReason":"stop","text":"Yes","usage":{"cost":0.10},"output":{"b":1, "a":2}}}}"#;
        let end = Saved::new(state).state().end().map(|end| serde_json::to_string(&end).unwrap());
        let expected = r#"{"type":"run-end","runId":"r","step":1,"stopReason":"stop","text":"Yes","usage":{"cost":0.10},"output":{"b":1, "a":2}}"#;
        assert_eq!(end.as_deref(), Some(expected));
    }
}
