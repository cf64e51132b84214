//! Tool calls put together from deltas.

use super::super::answer::fail;
use super::super::blocks::Numbering;
use super::super::event::ModelEvent;
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use super::progress::Progress;
use crate::error::ErrorKind;
use crate::json::{Object, RawJson, Tree, read_string};

/// The calls of one answer, in the order in which they began.
///
/// A delta belongs to the call with its index where there is one, else to the one with its id, else to the last one. The
/// first id and the first name that are not empty count. A call is announced once both are known.
#[derive(Debug)]
pub(super) struct Calls {
    names: ToolNames,
    calls: Vec<Call>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    progress: Progress,
    /// How many bytes of the arguments were given out.
    sent: usize,
    /// The block, once the call is announced.
    block: Option<u32>,
    replay: Option<RawJson>,
}

/// What one delta says about a call; texts are empty where it says nothing.
pub(super) struct Piece {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) replay: Option<RawJson>,
}

/// The most calls of one answer; no provider allows more than 128.
const MAX_CALLS: usize = 1024;

/// The most bytes of arguments of one answer, which no model's output limit reaches.
const MAX_ARGUMENT_BYTES: usize = 32 * 1024 * 1024;

impl Calls {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self { names: ToolNames::new(tools), calls: Vec::new(), bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// One element of `tool_calls`.
    pub(super) fn delta(&mut self, delta: &Object<'_>, numbering: &mut Numbering, events: &mut Vec<ModelEvent>) {
        let function = delta.object("function").unwrap_or_default();
        let piece = Piece {
            index: delta.integer("index"),
            id: delta.string("id").unwrap_or_default(),
            name: function.string("name").unwrap_or_default(),
            arguments: arguments(&function),
            replay: delta.raw("extra_content"),
        };
        self.piece(piece, numbering, events);
    }

    /// What such an element says.
    pub(super) fn piece(&mut self, mut piece: Piece, numbering: &mut Numbering, events: &mut Vec<ModelEvent>) {
        // Mistral's way of saying that there is none.
        if piece.id == "null" {
            piece.id.clear();
        }
        let position = self.position(&piece);
        self.write(position, piece, numbering, events);
    }

    /// The one `function_call` of the protocol's first version.
    pub(super) fn function(&mut self, function: &Object<'_>, numbering: &mut Numbering, events: &mut Vec<ModelEvent>) {
        let position = if self.calls.is_empty() { None } else { Some(0) };
        let name = function.string("name").unwrap_or_default();
        let piece = Piece { index: None, id: "call_0".to_owned(), name, arguments: arguments(function), replay: None };
        self.write(position, piece, numbering, events);
    }

    /// All calls are complete.
    pub(super) fn end(&mut self, numbering: &mut Numbering, events: &mut Vec<ModelEvent>) {
        for (position, call) in self.calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{position}");
            }
            announce(call, &self.names, numbering, events);
            call.send(events);
            if let Some(block) = call.block {
                events.push(ModelEvent::ToolInputEnd { block, replay: call.replay.take() });
            }
        }
    }

    /// The call that a piece goes on with; `None` for a new one.
    fn position(&mut self, piece: &Piece) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let of_index = piece.index.and_then(|_| self.calls.iter().rposition(|call| call.index == piece.index));
        let of_id = self.calls.iter().rposition(|call| !piece.id.is_empty() && call.id == piece.id);
        let position = match (of_index, of_id) {
            // Servers number the pieces of one call differently. An id that a call has tells more than its number.
            (Some(index), Some(id)) if self.calls.get(index).is_some_and(|call| call.id != piece.id) => id,
            (Some(index), _) => index,
            (None, Some(id)) if piece.index.is_none() || piece.name.is_empty() => id,
            (None, _) if piece.index.is_none() && !piece.id.is_empty() => {
                return last.filter(|last| self.lacks_id(*last));
            }
            (None, _) if piece.index.is_none() => last?,
            // Nobody announced this number: the piece belongs to the call that is being written, if one is.
            (None, None) if piece.id.is_empty() && piece.name.is_empty() => {
                return last.filter(|last| self.is_open(*last));
            }
            (None, _) => return None,
        };
        let begins_anew = self.calls.get_mut(position).is_some_and(|call| call.is_followed_by(piece));
        (!begins_anew).then_some(position)
    }

    fn is_open(&mut self, position: usize) -> bool {
        self.calls.get_mut(position).is_some_and(|call| !call.is_complete())
    }

    fn lacks_id(&mut self, position: usize) -> bool {
        self.calls.get_mut(position).is_some_and(|call| call.id.is_empty() && !call.is_complete())
    }

    fn write(
        &mut self,
        position: Option<usize>,
        piece: Piece,
        numbering: &mut Numbering,
        events: &mut Vec<ModelEvent>,
    ) {
        let position = position.unwrap_or_else(|| {
            self.calls.push(Call { index: piece.index, ..Call::default() });
            self.calls.len() - 1
        });
        self.bytes += piece.arguments.len();
        if self.calls.len() > MAX_CALLS || self.bytes > MAX_ARGUMENT_BYTES {
            return fail(
                events,
                ErrorKind::Limit,
                "the answer has more tool calls or longer arguments than are allowed",
            );
        }
        let Some(call) = self.calls.get_mut(position) else { return };
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if call.name.is_empty() {
            call.name = piece.name;
        }
        call.replay = piece.replay.or(call.replay.take());
        call.append(&piece.arguments);
        if !call.id.is_empty() {
            announce(call, &self.names, numbering, events);
        }
        if call.arguments != EMPTY {
            call.send(events);
        }
    }
}

impl Call {
    fn append(&mut self, arguments: &str) {
        // Some servers begin with an empty object and then write the real one; some say the whole input again at the end.
        if self.sent == 0 && self.arguments == EMPTY && arguments.starts_with('{') {
            self.arguments.clear();
            self.progress = Progress::default();
        }
        let is_repeated = self.is_complete() && is_same(&self.arguments, arguments);
        if !is_repeated {
            self.arguments.push_str(arguments);
            self.progress.push(arguments);
        }
    }

    /// Gives out the arguments that came since the last time.
    fn send(&mut self, events: &mut Vec<ModelEvent>) {
        let Some(block) = self.block else { return };
        let json = self.arguments.get(self.sent..).unwrap_or_default();
        if !json.is_empty() {
            events.push(ModelEvent::ToolInputDelta { block, json: json.to_owned() });
            self.sent = self.arguments.len();
        }
    }

    /// Whether a delta that names the same index or id is really the next call. Servers that number every call 0 are known
    /// by a new id or name after a call that is already whole, and those that give all calls one id, or none, by another
    /// whole input.
    fn is_followed_by(&mut self, piece: &Piece) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        if piece.id.is_empty() && self.id.is_empty() && self.index.is_none() {
            return self.is_complete();
        }
        if !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id {
            return (self.arguments.is_empty() && piece.name != self.name) || self.is_complete();
        }
        if !self.is_complete() {
            return false;
        }
        let is_other_input = || self.arguments != EMPTY && !is_same(&self.arguments, &piece.arguments);
        piece.name != self.name || (Object::parse(&piece.arguments).is_ok() && is_other_input())
    }

    fn is_complete(&mut self) -> bool {
        self.progress.is_whole(&self.arguments)
    }
}

/// Announces a call whose name is known.
fn announce(call: &mut Call, names: &ToolNames, numbering: &mut Numbering, events: &mut Vec<ModelEvent>) {
    if call.block.is_some() || call.name.is_empty() {
        return;
    }
    let block = numbering.next();
    call.block = Some(block);
    let name = names.registered(call.name.clone());
    events.push(ModelEvent::ToolInputStart { block, id: call.id.clone(), name });
}

/// What an input without members looks like. It is held back until it is certain that no other input follows.
const EMPTY: &str = "{}";

/// Whether a piece says the same as a whole input, however they are spaced. A piece that is much shorter does not: many of
/// them would have the input read as often.
fn is_same(input: &str, piece: &str) -> bool {
    const LARGEST_RATIO: usize = 4;
    let read = |input: &str| Tree::read(input.trim()).ok();
    let may_be = piece.len() >= input.len() / LARGEST_RATIO;
    input == piece || (may_be && read(piece).is_some_and(|piece| read(input) == Some(piece)))
}

/// A piece of text, or, from servers that do not stream arguments, the whole object.
fn arguments(function: &Object<'_>) -> String {
    match function.get("arguments").map(|raw| raw.get()) {
        None | Some("null") => String::new(),
        Some(raw) => read_string(raw).unwrap_or_else(|| raw.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids, names and arguments that come of these elements of `tool_calls`.
    fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
        let mut calls = Calls::new(&[]);
        let mut events = Vec::new();
        let mut numbering = Numbering::default();
        for delta in deltas {
            calls.delta(&Object::parse(delta).unwrap(), &mut numbering, &mut events);
        }
        calls.end(&mut numbering, &mut events);
        let mut found: Vec<(String, String, String)> = Vec::new();
        for event in events {
            match event {
                ModelEvent::ToolInputStart { id, name, .. } => found.push((id, name, String::new())),
                ModelEvent::ToolInputDelta { block, json } => found[block as usize].2.push_str(&json),
                _ => {}
            }
        }
        found
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn every_call_numbered_0_is_still_two_calls() {
        let first = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        let second = r#"{"index":0,"id":"b","function":{"name":"x","arguments":"{\"k\":2}"}}"#;
        assert_eq!(calls(&[first, second]), [call("a", "x", "{\"k\":1}"), call("b", "x", "{\"k\":2}")]);
    }

    #[test]
    fn an_id_that_says_null_is_none() {
        let first = r#"{"index":0,"id":"null","function":{"name":"x","arguments":"{}"}}"#;
        let second = r#"{"index":1,"id":"null","function":{"name":"y","arguments":"{}"}}"#;
        assert_eq!(calls(&[first, second]), [call("call_0", "x", "{}"), call("call_1", "y", "{}")]);
    }

    #[test]
    fn another_id_within_a_call_changes_nothing() {
        let first = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\""}}"#;
        let second = r#"{"index":0,"id":"b","function":{"name":"x","arguments":":1}"}}"#;
        assert_eq!(calls(&[first, second]), [call("a", "x", "{\"k\":1}")]);
    }

    #[test]
    fn calls_without_id_and_index_are_known_by_their_names() {
        let first = r#"{"function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        let second = r#"{"function":{"name":"y","arguments":{"k":2}}}"#;
        assert_eq!(calls(&[first, second]), [call("call_0", "x", "{\"k\":1}"), call("call_1", "y", "{\"k\":2}")]);
    }

    #[test]
    fn calls_that_all_have_one_id_are_still_several() {
        let first = r#"{"id":"a","function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        let second = r#"{"id":"a","function":{"name":"x","arguments":"{\"k\":2}"}}"#;
        assert_eq!(calls(&[first, second]), [call("a", "x", "{\"k\":1}"), call("a", "x", "{\"k\":2}")]);
        assert_eq!(calls(&[first, first]), [call("a", "x", "{\"k\":1}")]);
    }

    #[test]
    fn calls_without_id_that_are_all_numbered_0_are_still_several() {
        // What gateways to Gemini send: one whole call a chunk (su-kaka/gcli2api#406, omnigent-ai/omnigent#28).
        let first = r#"{"index":0,"id":"","function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        let second = r#"{"index":0,"id":"","function":{"name":"x","arguments":"{\"k\":2}"}}"#;
        let third = r#"{"index":0,"function":{"name":"y","arguments":"{\"k\":1}"}}"#;
        let expected = [call("call_0", "x", "{\"k\":1}"), call("call_1", "x", "{\"k\":2}")];
        assert_eq!(calls(&[first, second]), expected);
        assert_eq!(calls(&[first, second, third])[2], call("call_2", "y", "{\"k\":1}"));
        let empty = r#"{"index":0,"id":"","function":{"name":"z","arguments":"{}"}}"#;
        assert_eq!(calls(&[empty, third]), [call("call_0", "z", "{}"), call("call_1", "y", "{\"k\":1}")]);
    }

    #[test]
    fn a_call_whose_number_changes_is_one() {
        // agno-agi/agno#8880, recorded from a server of DeepSeek: the head of the second call is numbered as the first.
        let first = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        let head = r#"{"index":0,"id":"b","function":{"name":"y","arguments":""}}"#;
        let tail = [
            r#"{"index":1,"function":{"arguments":"{\"k\""}}"#,
            r#"{"index":1,"id":null,"function":{"name":null,"arguments":":2}"}}"#,
        ];
        let expected = [call("a", "x", "{\"k\":1}"), call("b", "y", "{\"k\":2}")];
        assert_eq!(calls(&[first, head, tail[0], tail[1]]), expected);
        let named = [
            r#"{"index":1,"id":"b","function":{"name":"y","arguments":""}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"{\"k\""}}"#,
            r#"{"index":7,"id":"b","function":{"arguments":":2}"}}"#,
        ];
        assert_eq!(calls(&[first, named[0], named[1], named[2]]), expected);
    }

    #[test]
    fn an_input_that_is_said_again_in_other_words_counts_once() {
        let first = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":1}"}}"#;
        for again in [
            r#"{"index":0,"function":{"arguments":"{ \"k\": 1 }"}}"#,
            r#"{"index":0,"id":"","function":{"name":"x","arguments":{"k": 1}}}"#,
        ] {
            assert_eq!(calls(&[first, again]), [call("a", "x", "{\"k\":1}")]);
        }
    }

    #[test]
    fn an_empty_object_before_the_real_input_is_dropped_and_a_repeated_input_counts_once() {
        let empty = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#;
        let real = r#"{"index":0,"function":{"arguments":"{\"k\":1}"}}"#;
        assert_eq!(calls(&[empty, real, real]), [call("a", "x", "{\"k\":1}")]);
        assert_eq!(calls(&[empty]), [call("a", "x", "{}")]);
    }
}
