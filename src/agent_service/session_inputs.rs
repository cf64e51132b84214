//! The inputs of one session in the order of the stream, and which of them are in what is saved.

use super::input::{Input, InputBody};
use super::saved::SavedState;
use super::taken::{Taken, is_kept};
use crate::error::Error;

/// Follows what became of each input. Does no I/O: what came is [pushed](Self::push), from [`next`](Self::next) on.
#[derive(Debug)]
pub(super) struct SessionInputs {
    before: Taken,
    inputs: Vec<ReadInput>,
    next: u64,
}

/// An input as its worker follows it.
#[derive(Clone, Debug)]
pub(super) struct ReadInput {
    pub(super) sequence: u64,
    pub(super) input: Input,
    pub(super) state: State,
    /// The id of the message that waits in a queue of the session.
    message_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody looked at it.
    Waiting,
    /// The session has it.
    Given,
    /// It needs not be given again.
    Settled,
}

impl SessionInputs {
    /// What was taken out of order is skipped, so what lies before it is read again.
    pub(super) fn new(before: Taken) -> Self {
        Self { next: before.through + 1, before, inputs: Vec::new() }
    }

    /// Takes in the next message of the session.
    ///
    /// # Errors
    ///
    /// The id that a message is named by which is no input, and why it is none.
    pub(super) fn push(&mut self, sequence: u64, text: &str) -> Result<(), (String, Error)> {
        self.next = sequence + 1;
        if self.before.has(sequence) {
            return Ok(());
        }
        let (input, state, outcome) = match Input::parse(text) {
            Ok(input) => (input, State::Waiting, Ok(())),
            Err(error) => {
                let id = format!("seq-{sequence}");
                let nothing = Input { id: id.clone(), body: InputBody::Abort { reason: None } };
                (nothing, State::Settled, Err((id, error)))
            }
        };
        self.inputs.push(ReadInput { sequence, input, state, message_id: None });
        outcome
    }

    /// The session has an input; `message_id` is that of a message that waits in one of its queues.
    pub(super) fn give(&mut self, sequence: u64, message_id: Option<String>) {
        if let Some(input) = self.at(sequence) {
            input.state = State::Given;
            input.message_id = message_id;
        }
    }

    /// An input needs not be given again.
    pub(super) fn settle(&mut self, sequence: u64) {
        if let Some(input) = self.at(sequence) {
            input.state = State::Settled;
        }
    }

    /// What was given and is not in what is saved is to be given again.
    pub(super) fn give_again(&mut self) {
        self.change(State::Given, State::Waiting);
    }

    /// Settles all that was given: the run that had it is over.
    pub(super) fn settle_given(&mut self) {
        self.change(State::Given, State::Settled);
    }

    /// The sequence from which on nothing was read.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The inputs that nobody looked at, in their order.
    pub(super) fn waiting(&self) -> Vec<ReadInput> {
        self.inputs.iter().filter(|one| one.state == State::Waiting).cloned().collect()
    }

    /// Whether an input waits still.
    pub(super) fn is_waiting(&self, sequence: u64) -> bool {
        self.inputs.iter().any(|one| one.sequence == sequence && one.state == State::Waiting)
    }

    /// Whether an input was read. One that is read and not settled at the end waits for a run that waits for a person.
    pub(super) const fn is_read(&self, sequence: u64) -> bool {
        sequence < self.next
    }

    /// Whether an input needs not be given again.
    pub(super) fn is_settled(&self, sequence: u64) -> bool {
        let is_settled = |one: &ReadInput| one.sequence == sequence && one.state == State::Settled;
        self.before.has(sequence) || self.inputs.iter().any(is_settled)
    }

    /// What is taken once these lines are saved, and the inputs that they settle.
    pub(super) fn kept_in(&self, lines: &str) -> (Taken, Vec<u64>) {
        let settled: Vec<u64> = SavedState::last(lines).map_or_else(Vec::new, |state| {
            let is_kept = |one: &&ReadInput| {
                one.state == State::Given && is_kept(&one.input, one.message_id.as_deref(), lines, &state)
            };
            self.inputs.iter().filter(is_kept).map(|one| one.sequence).collect()
        });
        let is_settled = |one: &ReadInput| one.state == State::Settled || settled.contains(&one.sequence);
        let taken = self.before.with(self.inputs.iter().map(|one| (one.sequence, is_settled(one))));
        (taken, settled)
    }

    fn at(&mut self, sequence: u64) -> Option<&mut ReadInput> {
        self.inputs.iter_mut().find(|one| one.sequence == sequence)
    }

    fn change(&mut self, from: State, to: State) {
        for one in self.inputs.iter_mut().filter(|one| one.state == from) {
            one.state = to;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    const PROMPT: &str = r#"{"id":"p","type":"prompt","content":[]}"#;
    const RUNNING: &str = "{\"type\":\"state\",\"run\":{\"id\":\"r\",\"phase\":{\"type\":\"calling\"}}}\n";

    #[test]
    fn an_input_is_settled_once_a_checkpoint_has_it_or_its_run_is_over() {
        let mut inputs = SessionInputs::new(Taken::default());
        inputs.push(4, PROMPT).unwrap();
        inputs.push(6, PROMPT).unwrap();
        assert_eq!(inputs.kept_in(RUNNING), (Taken { through: 0, also: vec![] }, vec![]));
        inputs.give(4, None);
        let (taken, settled) = inputs.kept_in(RUNNING);
        assert_eq!((taken, settled.as_slice()), (Taken { through: 4, also: vec![] }, [4].as_slice()));
        assert!(!inputs.is_settled(4), "not before it is saved");
        inputs.settle(4);
        assert!(inputs.is_settled(4) && inputs.is_waiting(6) && inputs.is_read(6) && !inputs.is_read(7));
        inputs.give(6, None);
        inputs.give_again();
        assert_eq!(inputs.waiting().len(), 1);
        inputs.give(6, None);
        inputs.settle_given();
        assert!(inputs.is_settled(6));
    }

    #[test]
    fn what_was_taken_before_is_passed_over_and_what_is_no_input_is_refused() {
        let mut inputs = SessionInputs::new(Taken { through: 2, also: vec![5] });
        assert_eq!(inputs.next(), 3);
        inputs.push(5, PROMPT).unwrap();
        assert!(inputs.waiting().is_empty() && inputs.is_settled(5));
        let (id, error) = inputs.push(7, "no").unwrap_err();
        assert_eq!((id.as_str(), error.kind()), ("seq-7", crate::ErrorKind::InvalidInput));
        assert!(inputs.is_settled(7));
    }
}
