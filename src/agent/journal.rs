//! What is saved of a session, as lines that are only ever added: what a checkpoint costs is what has changed.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::call::{Call, Stage};
use super::conversation::Conversation;
use super::run::{Phase, Run};
use super::session::Session;
use super::snapshot::{Header, State};
use super::tree::{Node, Tree, TreeCompaction};
use crate::model::{CallId, MessageId, ToolResult};

/// What a checkpoint writes: lines of JSON, each with a line feed at its end.
///
/// What is stored is at any time the text of a [`Replace`](Self::Replace) with every [`Append`](Self::Append) since behind
/// it, and [`Session::restore`](super::Session::restore) reads just that. A text of which the end is missing restores to
/// the last checkpoint that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Save {
    /// Add these lines to what is stored.
    Append(String),
    /// Store these lines in the place of what is stored. The first checkpoint is one, the first after a failed one too, and
    /// now and then another, so that what is stored stays in proportion to the conversation.
    Replace(String),
}

impl Save {
    /// The lines.
    pub fn text(&self) -> &str {
        match self {
            Self::Append(text) | Self::Replace(text) => text,
        }
    }

    /// The lines, kept.
    pub fn into_text(self) -> String {
        match self {
            Self::Append(text) | Self::Replace(text) => text,
        }
    }

    /// Both of these in one.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        match (self, later) {
            (_, later @ Self::Replace(_)) => later,
            (Self::Append(earlier), Self::Append(later)) => Self::Append(earlier + &later),
            (Self::Replace(earlier), Self::Append(later)) => Self::Replace(earlier + &later),
        }
    }
}

/// How much of a session has been handed out to be saved.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Whether there is something stored to add to.
    is_begun: bool,
    messages: usize,
    compactions: usize,
    /// Messages whose label has changed since.
    labels: Vec<MessageId>,
    /// The calls of the open step whose results are stored.
    results: Vec<CallId>,
    /// The journals of the sub-agents that work on calls of the open step.
    within: Vec<(CallId, Self)>,
    sizes: Sizes,
}

/// The sizes of what is stored, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) all: usize,
    /// Of lines that later ones have made void, or will have by the end of the step.
    pub(super) dead: usize,
    /// Of the line of the latest state.
    pub(super) state: usize,
}

impl Journal {
    /// The journal of a session of which everything is stored.
    pub(super) fn of_stored(conversation: &Conversation, run: Option<&Run>, sizes: Sizes) -> Self {
        let calls = run.map(calls_of).unwrap_or_default();
        let within = calls.iter().filter_map(|call| {
            let session = session_of(call)?;
            let journal = Self::of_stored(&session.conversation, session.run.as_ref(), Sizes::default());
            Some((call.call.call_id.clone(), journal))
        });
        Self {
            is_begun: true,
            messages: conversation.tree.nodes.len(),
            compactions: conversation.tree.compactions.len(),
            labels: Vec::new(),
            results: calls.iter().filter(|call| call.is_done()).map(|call| call.call.call_id.clone()).collect(),
            within: within.collect(),
            sizes,
        }
    }

    /// What is stored may not be what was handed out: the next checkpoint writes everything.
    pub(super) fn begin_again(&mut self) {
        self.is_begun = false;
    }

    pub(super) fn label_changed(&mut self, id: &MessageId) {
        if !self.labels.contains(id) {
            self.labels.push(id.clone());
        }
    }

    /// Whether writing everything again costs less than what is void.
    fn is_wasteful(&self) -> bool {
        let Sizes { all, dead, .. } = self.sizes;
        dead > MAX_DEAD_BYTES && dead > all / 2
    }

    /// Adds the lines that say what has changed.
    fn write(&mut self, text: &mut Vec<u8>, conversation: &Conversation, run: Option<&Run>) {
        let before = text.len();
        self.write_lasting(text, conversation);
        let lasting = text.len();
        self.write_open(text, run);
        let open = text.len();
        line(text, &State { conversation, run });
        self.sizes.all += text.len() - before;
        self.sizes.dead += open - lasting + std::mem::replace(&mut self.sizes.state, text.len() - open);
    }

    /// What stays true.
    fn write_lasting(&mut self, text: &mut Vec<u8>, conversation: &Conversation) {
        let tree = &conversation.tree;
        if !std::mem::replace(&mut self.is_begun, true) {
            line(text, &Header { seed: conversation.ids.seed });
            self.labels = tree.labelled();
        }
        for node in tree.nodes.iter().skip(self.messages) {
            line(text, &MessageLine { tree, node });
        }
        self.messages = tree.nodes.len();
        for compaction in tree.compactions.iter().skip(self.compactions) {
            line(text, compaction.as_ref());
        }
        self.compactions = tree.compactions.len();
        for id in self.labels.drain(..) {
            let label = tree.get(&id).and_then(|node| node.label.as_deref());
            line(text, &LabelLine { id: &id, label });
        }
    }

    /// What is true until the open step is over.
    fn write_open(&mut self, text: &mut Vec<u8>, run: Option<&Run>) {
        let calls = run.map(calls_of).unwrap_or_default();
        self.results.retain(|stored| calls.iter().any(|call| call.call.call_id == *stored));
        self.within.retain(|(call_id, _)| calls.iter().any(|call| call.call.call_id == *call_id));
        for call in calls {
            let call_id = &call.call.call_id;
            if let Stage::Done { result, terminate, was_run } = &call.stage
                && !self.results.contains(call_id)
            {
                line(text, &ResultLine { result, terminate: *terminate, was_run: *was_run });
                self.results.push(call_id.clone());
            }
            if let Some(Session { conversation, run, .. }) = session_of(call) {
                let mut inner = Vec::new();
                let mut journal = self.take_within(call_id);
                journal.write_lasting(&mut inner, conversation);
                journal.write_open(&mut inner, run.as_ref());
                self.within.push((call_id.clone(), journal));
                for entry in into_text(inner).lines() {
                    write_within(text, call_id, entry);
                }
            }
        }
    }

    fn take_within(&mut self, call_id: &CallId) -> Self {
        let known = self.within.iter().position(|(known, _)| known == call_id);
        known.map(|index| self.within.swap_remove(index).1).unwrap_or_default()
    }
}

/// The whole session.
pub(super) fn whole(conversation: &Conversation, run: Option<&Run>) -> String {
    let mut text = Vec::new();
    Journal::default().write(&mut text, conversation, run);
    into_text(text)
}

/// What has changed since the last time.
pub(super) fn changes(conversation: &mut Conversation, run: Option<&Run>) -> Save {
    let mut journal = std::mem::take(&mut conversation.journal);
    let is_added = journal.is_begun && !journal.is_wasteful();
    if !is_added {
        journal = Journal::default();
    }
    let mut text = Vec::new();
    journal.write(&mut text, conversation, run);
    conversation.journal = journal;
    let text = into_text(text);
    if is_added { Save::Append(text) } else { Save::Replace(text) }
}

/// Void bytes that are of no concern however short a conversation is.
const MAX_DEAD_BYTES: usize = 64 * 1024;

fn calls_of(run: &Run) -> &[Call] {
    match &run.phase {
        Phase::Tools { batch, .. } => &batch.calls,
        _ => &[],
    }
}

/// The session that works on a call.
fn session_of(call: &Call) -> Option<&Session> {
    if matches!(call.stage, Stage::Delegated { .. }) {
        call.session.as_ref().map(|nested| &*nested.session)
    } else {
        None
    }
}

/// Writes a line behind the others, since a copy of a line can be as large as an answer.
fn line(text: &mut Vec<u8>, value: &impl Serialize) {
    let before = text.len();
    write_json(text, value);
    // Raw JSON is kept to the letter, line feeds between its tokens too: such an entry is written as a text.
    if text.get(before..).is_some_and(|written| written.contains(&b'\n')) {
        let written = into_text(text.split_off(before));
        write_json(text, &written);
    }
    text.push(b'\n');
}

/// Writes an entry of a sub-agent's session.
fn write_within(text: &mut Vec<u8>, call_id: &CallId, entry: &str) {
    text.extend_from_slice(br#"{"type":"within","callId":"#);
    write_json(text, call_id);
    text.extend_from_slice(br#","entry":"#);
    text.extend_from_slice(entry.as_bytes());
    text.extend_from_slice(b"}\n");
}

fn write_json(text: &mut Vec<u8>, value: &impl Serialize) {
    // Nothing in a session can fail to be written: its maps have text for keys, and raw JSON was checked when it came in.
    let _written = serde_json::to_writer(text, value);
}

/// What was written is text.
fn into_text(written: Vec<u8>) -> String {
    String::from_utf8(written).unwrap_or_default()
}

struct MessageLine<'tree> {
    tree: &'tree Tree,
    node: &'tree Node,
}

impl Serialize for MessageLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "message")?;
        map.serialize_entry("parent", &self.tree.parent_of(self.node))?;
        map.serialize_entry("message", &self.node.message)?;
        map.end()
    }
}

impl Serialize for TreeCompaction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "compaction")?;
        map.serialize_entry("first", &self.first)?;
        map.serialize_entry("last", &self.last)?;
        map.serialize_entry("message", &self.message)?;
        map.end()
    }
}

struct LabelLine<'tree> {
    id: &'tree MessageId,
    label: Option<&'tree str>,
}

impl Serialize for LabelLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "label")?;
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("label", &self.label)?;
        map.end()
    }
}

struct ResultLine<'call> {
    result: &'call ToolResult,
    terminate: bool,
    was_run: bool,
}

impl Serialize for ResultLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "result")?;
        map.serialize_entry("result", self.result)?;
        map.serialize_entry("terminate", &self.terminate)?;
        map.serialize_entry("wasRun", &self.was_run)?;
        map.end()
    }
}
