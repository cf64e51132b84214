//! Which inputs of a session are in what is saved of it.

use serde::{Deserialize, Serialize};

use super::input::{Input, InputBody};
use super::saved::SavedState;

/// Which inputs of a session are in what is saved of it, by their sequences: all up to `through`, and these beyond. It is
/// saved with each checkpoint, so that an input that is delivered again is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Taken {
    pub(super) through: u64,
    pub(super) also: Vec<u64>,
}

impl Taken {
    pub(super) fn has(&self, sequence: u64) -> bool {
        sequence <= self.through || self.also.contains(&sequence)
    }

    /// What is taken when these inputs were read, in order, of which some are settled.
    pub(super) fn with(&self, read: impl Iterator<Item = (u64, bool)>) -> Self {
        let (settled, open): (Vec<_>, Vec<_>) = read.partition(|(_, is_settled)| *is_settled);
        let settled = settled.into_iter().map(|(sequence, _)| sequence);
        let mut also: Vec<u64> = self.also.iter().copied().chain(settled).collect();
        let most = also.iter().copied().fold(self.through, u64::max);
        let before_open = open.iter().map(|(sequence, _)| sequence.saturating_sub(1)).min();
        let through = before_open.map_or(most, |before| before.min(most).max(self.through));
        also.retain(|sequence| *sequence > through);
        also.sort_unstable();
        also.dedup();
        Self { through, also }
    }
}

/// Whether a checkpoint has an input that was given to the session, so that the input needs not be given again.
pub(super) fn is_kept(input: &Input, message_id: Option<&str>, lines: &str, state: &SavedState<'_>) -> bool {
    match &input.body {
        // Nothing is written between the end of a run and the prompt of the next but states without a run.
        InputBody::Prompt(_) => state.is_open(),
        InputBody::Steer(_) | InputBody::FollowUp(_) => match message_id {
            None => state.is_open(),
            Some(id) => lines.contains(&serde_json::Value::from(id).to_string()),
        },
        InputBody::Abort { .. } => !state.is_open(),
        InputBody::Approve { call_id, .. } => !state.has_call(call_id, "awaiting-approval"),
        InputBody::ToolResult { call_id, .. } => !state.has_call(call_id, "started"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(before: (u64, &[u64]), read: &[(u64, bool)]) -> (u64, Vec<u64>) {
        let before = Taken { through: before.0, also: before.1.to_vec() };
        let Taken { through, also } = before.with(read.iter().copied());
        (through, also)
    }

    #[test]
    fn what_is_settled_out_of_order_is_named_until_all_before_it_is() {
        assert_eq!(with((0, &[]), &[(3, true), (5, true)]), (5, vec![]));
        assert_eq!(with((0, &[]), &[(3, false), (5, true)]), (2, vec![5]));
        assert_eq!(with((2, &[5]), &[(3, true), (7, false)]), (5, vec![]));
        assert_eq!(with((4, &[]), &[(9, false)]), (4, vec![]));
        assert_eq!(with((4, &[8]), &[]), (8, vec![]));
        let taken = Taken { through: 2, also: vec![5] };
        assert_eq!([1, 2, 3, 5, 6].map(|sequence| taken.has(sequence)), [true, true, false, true, false]);
    }

    #[test]
    fn a_checkpoint_has_an_input_when_its_state_shows_what_became_of_it() {
        let input = |text: &str| Input::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let kept = |text: &str, id: Option<&str>, state: &str| {
            let state_line = format!("{{\"type\":\"state\",{state}}}");
            is_kept(&input(text), id, &state_line, &SavedState::last(&state_line).unwrap_or_default())
        };
        let running = "\"run\":{\"id\":\"r\",\"phase\":{\"type\":\"calling\"}}";
        let ending = "\"run\":{\"id\":\"r\",\"phase\":{\"type\":\"ending\"}}";
        let asking = "\"run\":{\"phase\":{\"type\":\"tools\",\"calls\":[{\"callId\":\"d\",\"stage\":\"delegated\",\
            \"session\":{\"run\":{\"phase\":{\"calls\":[{\"callId\":\"c\",\"stage\":\"awaiting-approval\"}]}}}}]}}";
        let prompt = r#"{"id":"i","type":"prompt","content":[]}"#;
        assert!(kept(prompt, None, running) && !kept(prompt, None, ending) && !kept(prompt, None, "\"run\":null"));
        let steer = r#"{"id":"i","type":"steer","content":[]}"#;
        assert!(kept(steer, Some("m1"), "\"steers\":[{\"id\":\"m1\"}]") && !kept(steer, Some("m1"), running));
        let abort = r#"{"id":"i","type":"abort"}"#;
        assert!(kept(abort, None, ending) && !kept(abort, None, running));
        let approve = r#"{"id":"i","type":"approve","callId":"c","allow":true}"#;
        assert!(kept(approve, None, running) && !kept(approve, None, asking));
        let result = r#"{"id":"i","type":"tool-result","callId":"c","output":1}"#;
        assert!(kept(result, None, asking));
    }
}
