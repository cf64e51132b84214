//! From the saved form back to a session. What it looks like stands in the documentation of
//! [`Session::snapshot`](super::Session::snapshot).

use std::borrow::Cow;
use std::sync::Arc;

use super::conversation::{Checkpoints, Conversation};
use super::definition::Agent;
use super::effect::Effect;
use super::event::EventKind;
use super::journal::Journal;
use super::lines::{self, Lines};
use super::queue::QueuedMessage;
use super::restore_run::read_run;
use super::run::{Phase, Run};
use super::session::RestoreError;
use super::snapshot::{FORMAT, VERSION};
use super::timers::Purpose;
use super::tree::TreeCompaction;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, quoted};
use crate::model::{CallId, Content, Message, MessageError, MessageId, ToolCall};
use crate::time::Millis;

/// Reads a session: what lasts, and the run that was active.
pub(super) fn read(text: &str, agent: Arc<Agent>) -> Result<(Conversation, Option<Run>), RestoreError> {
    let first_line = text.lines().next().unwrap_or_default();
    let header = match Object::parse(first_line) {
        Ok(header) => header,
        // Version 1 is one object, which somebody may have laid out in lines.
        Err(_) => Object::parse(text).map_err(|error| RestoreError::Malformed(error.to_string()))?,
    };
    if header.string("format").as_deref() != Some(FORMAT) {
        return Err(RestoreError::Malformed(format!("its format is not \"{FORMAT}\"")));
    }
    let version = header.integer("version").ok_or_else(|| missing("version"))?;
    let conversation = Conversation::new(agent, read_seed(&header)?);
    match version {
        1 => read_version_1(&header, conversation),
        VERSION => read_lines(text, conversation),
        newer => Err(RestoreError::TooNew(newer)),
    }
}

/// One object with everything.
fn read_version_1(
    object: &Object<'_>,
    mut conversation: Conversation,
) -> Result<(Conversation, Option<Run>), RestoreError> {
    for message in object.array("messages").ok_or_else(|| missing("messages"))? {
        conversation.remember(&Arc::new(Message::parse(message.get())?));
    }
    if let Some(compacted) = object.object("compaction") {
        let place = |name| {
            let index = compacted.read::<usize>(name).ok_or_else(|| missing(name))?;
            Ok::<_, RestoreError>(index)
        };
        let id_at = |index: usize| conversation.history.get(index).map(|message| message.id.clone());
        let message = compacted.object("message").ok_or_else(|| missing("message"))?;
        conversation.tree.compactions.push(Arc::new(TreeCompaction {
            first: id_at(place("start")?).ok_or_else(|| missing("start"))?,
            last: id_at(place("end")?.saturating_sub(1)).ok_or_else(|| missing("end"))?,
            message: Arc::new(Message::read(&message)?),
        }));
        let head = conversation.tree.head().cloned();
        conversation.seek(head.as_ref());
    }
    let run = read_state(object, &mut conversation, &OpenEntries::default())?;
    Ok((conversation, run))
}

/// A header and lines up to the last state.
fn read_lines(text: &str, mut conversation: Conversation) -> Result<(Conversation, Option<Run>), RestoreError> {
    let texts = lines::split(text);
    let lines = Lines::read(&texts)?;
    let state = lines.entries.last();
    let state = state.ok_or_else(|| RestoreError::Malformed("it ends before its first state".to_owned()))?;
    let run = read_entries(&lines.entries, state, &mut conversation)?;
    if lines.is_whole && text.ends_with('\n') {
        conversation.journal = Journal::of_stored(&conversation, run.as_ref(), lines.sizes);
    }
    Ok((conversation, run))
}

/// What entries of their own say about the calls of the open step.
#[derive(Debug, Default)]
pub(super) struct OpenEntries<'text> {
    pub(super) results: Vec<&'text Object<'text>>,
    /// The entries of sub-agents, each with the call that its agent works on.
    within: Vec<(CallId, Cow<'text, str>)>,
}

fn read_entries(
    entries: &[Object<'_>],
    state: &Object<'_>,
    conversation: &mut Conversation,
) -> Result<Option<Run>, RestoreError> {
    let mut open = OpenEntries::default();
    for entry in entries {
        let id = |name| entry.string(name).map(MessageId::new).ok_or_else(|| missing(name));
        match entry.string("type").as_deref() {
            Some("message") => read_message(entry, conversation)?,
            Some("compaction") => {
                let message = entry.object("message").ok_or_else(|| missing("message"))?;
                let message = Arc::new(Message::read(&message)?);
                let compaction = TreeCompaction { first: id("first")?, last: id("last")?, message };
                conversation.tree.compactions.push(Arc::new(compaction));
            }
            Some("label") => {
                if let Some(node) = conversation.tree.get_mut(&id("id")?) {
                    node.label = entry.string("label");
                }
            }
            Some("result") => open.results.push(entry),
            Some("within") => {
                let call_id = entry.string("callId").map(CallId::new).ok_or_else(|| missing("callId"))?;
                let inner = entry.get("entry").ok_or_else(|| missing("entry"))?;
                open.within.push((call_id, lines::text_of_line(inner.get())));
            }
            // A later version may have kinds of entries that this one can do without.
            _ => {}
        }
    }
    let head = state.string("head").map(MessageId::new);
    if !conversation.seek(head.as_ref()) {
        return Err(RestoreError::Malformed("its head is not among its messages".to_owned()));
    }
    read_state(state, conversation, &open)
}

/// The session of the sub-agent that works on a call.
pub(super) fn read_nested(
    call: &ToolCall,
    state: &Object<'_>,
    open: &OpenEntries<'_>,
    agent: Arc<Agent>,
) -> Result<(Conversation, Option<Run>), RestoreError> {
    let texts = open.within.iter().filter(|(call_id, _)| *call_id == call.call_id).map(|(_, text)| text);
    let entries = texts.map(|text| Object::parse(text)).collect::<Result<Vec<_>, _>>();
    let entries = entries.map_err(|error| RestoreError::Malformed(error.to_string()))?;
    let header = entries.first().ok_or_else(|| missing("session"))?;
    let mut conversation = Conversation::new(agent, read_seed(header)?);
    let run = read_entries(&entries, state, &mut conversation)?;
    Ok((conversation, run))
}

fn read_seed(header: &Object<'_>) -> Result<u64, RestoreError> {
    let seed = header.string("seed").and_then(|seed| u64::from_str_radix(&seed, 16).ok());
    seed.ok_or_else(|| missing("seed"))
}

fn read_message(entry: &Object<'_>, conversation: &mut Conversation) -> Result<(), RestoreError> {
    let message = entry.object("message").ok_or_else(|| missing("message"))?;
    let message = Arc::new(Message::read(&message)?);
    let parent = entry.string("parent").map(MessageId::new);
    if !conversation.tree.push_after(parent.as_ref(), message.clone()) {
        return Err(RestoreError::Malformed(format!("the message {} follows one that is not there", message.id)));
    }
    conversation.note(&message);
    Ok(())
}

/// What is small: of version 1 the object with everything else, of later ones the last line.
fn read_state(
    state: &Object<'_>,
    conversation: &mut Conversation,
    open: &OpenEntries<'_>,
) -> Result<Option<Run>, RestoreError> {
    conversation.ids.next = state.integer("nextId").ok_or_else(|| missing("nextId"))?;
    let checkpoint = state.integer("checkpoint").unwrap_or_default();
    conversation.checkpoints = Checkpoints { asked: checkpoint, saved: checkpoint };
    conversation.tools.add_found(state.read("foundTools").unwrap_or_default());
    if let Some(scale) = state.integer("tokenScale") {
        conversation.token_scale = scale;
    }
    for (name, queue) in [("steers", &mut conversation.steers), ("followUps", &mut conversation.follow_ups)] {
        for queued in state.array(name).unwrap_or_default() {
            let message = match Object::parse(queued.get()) {
                Ok(object) => QueuedMessage {
                    id: MessageId::new(object.string("id").ok_or_else(|| missing("id"))?),
                    content: Content::read_list(object.get("content"))?,
                },
                // Written before messages had an id in the queue.
                Err(_) => QueuedMessage { id: conversation.ids.message(), content: Content::read_list(Some(queued))? },
            };
            queue.restore(message);
        }
    }
    state.object("run").map(|run| read_run(&run, conversation, open)).transpose()
}

impl Run {
    /// Hands out again what was open.
    pub(super) fn reopen(&mut self, conversation: &mut Conversation, now: Millis) {
        self.context(conversation, now).emit(EventKind::RunStart);
        self.forget_times_of_what_is_done_anew(conversation, now);
        for timer in &self.timers.set {
            conversation.effects.push_back(Effect::SetTimer { timer: timer.id, at: timer.at });
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Saving { .. } => self.phase = Phase::Saving { seq: conversation.checkpoint() },
            Phase::Ending { end, .. } => self.phase = Phase::Ending { end, seq: conversation.checkpoint() },
            Phase::Summarizing(summarizing) => {
                let next = summarizing.next;
                self.shortened = next.number > 1;
                let keep = Self::kept_tokens(conversation, &next);
                self.summarize_or_go_on(conversation, now, keep, next);
            }
            Phase::Calling(call) => {
                let attempt = call.attempt.saturating_add(1);
                let message = "the process stopped while the model answered; the call is made again";
                let error = Error::new(ErrorKind::StreamTruncated, message);
                self.context(conversation, now).emit(EventKind::StepRetry { attempt, delay: 0, error, model: None });
                self.prepare_call(conversation, now, attempt);
            }
            Phase::Preparing { hook, question, attempt } => self.ask_again(conversation, now, question, hook, attempt),
            Phase::ValidatingOutput { hook, output } => self.validate_output(conversation, now, hook, output),
            Phase::Waiting { attempt } if self.timers.deadline(&Purpose::Retry).is_none() => {
                self.prepare_call(conversation, now, attempt);
            }
            Phase::Tools { mut batch, suspension } => {
                for call in &mut batch.calls {
                    call.reopen(&mut self.context(conversation, now));
                }
                self.phase = Phase::Tools { batch, suspension };
            }
            phase @ (Phase::BetweenSteps | Phase::Waiting { .. } | Phase::Over) => self.phase = phase,
        }
    }
}

impl Run {
    /// What is asked, called or run anew by this process gets its time anew: a hook must not be taken for too slow because nobody
    /// was there to ask it. A time that belongs to the run, or to somebody outside, stays as it is, and so does what is left of a
    /// tool's.
    fn forget_times_of_what_is_done_anew(&mut self, conversation: &Conversation, now: Millis) {
        let calls = match &self.phase {
            Phase::Tools { batch, .. } => batch.calls.as_slice(),
            _ => &[],
        };
        let is_client_side = |call_id: &CallId| {
            let call = calls.iter().find(|call| call.call.call_id == *call_id);
            let tool = call.and_then(|call| conversation.tools.find(&call.call.tool_name));
            tool.is_some_and(|tool| tool.client_side)
        };
        self.timers.set.retain(|timer| match &timer.purpose {
            Purpose::ModelSilence | Purpose::Hook(_) | Purpose::StepHook => false,
            Purpose::Tool(call_id) => timer.at > now || is_client_side(call_id),
            Purpose::RunTimeout | Purpose::Retry | Purpose::Approval(_) => true,
        });
    }
}

pub(super) fn missing(name: &str) -> RestoreError {
    RestoreError::Malformed(format!("the member \"{name}\" is missing or of the wrong type"))
}

pub(super) fn unknown(what: &str, name: &str) -> RestoreError {
    RestoreError::Malformed(format!("it has a {what} {} that this version does not know", quoted(name)))
}

impl From<MessageError> for RestoreError {
    fn from(error: MessageError) -> Self {
        Self::Malformed(error.to_string())
    }
}
