//! From the saved form back to a session. What it looks like stands in the documentation of
//! [`Session::snapshot`](super::Session::snapshot).

use std::borrow::Cow;
use std::sync::Arc;

use super::answer::Answer;
use super::call::{AfterValidation, Call, Stage};
use super::conversation::{Checkpoints, Conversation};
use super::definition::Agent;
use super::effect::{Effect, HookId, ModelCallId, TimerId};
use super::event::{EndReason, EventKind, RunEnd, RunId};
use super::input::ToolOutput;
use super::journal::Journal;
use super::lines::{self, Lines};
use super::output::Output;
use super::plan::StepPlan;
use super::queue::QueuedMessage;
use super::run::{ModelCall, Phase, Run, Suspension};
use super::session::{RestoreError, Session};
use super::snapshot::{FORMAT, VERSION};
use super::step_hooks::StepQuestion;
use super::sub_agent::SubAgent;
use super::summarizing::{NextAttempt, Summarizing};
use super::timers::{Purpose, Timer, Timers};
use super::tools::Batch;
use super::tree::TreeCompaction;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::model::{
    Body, CallId, Content, Message, MessageError, MessageId, ModelRef, OutputSchema, StopReason, ToolCall, ToolInput,
    ToolResult, Usage,
};
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
        return Err(RestoreError::Malformed(format!("its format is not {FORMAT:?}")));
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
#[derive(Default)]
struct OpenEntries<'text> {
    results: Vec<&'text Object<'text>>,
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
                open.within.push((call_id, lines::text_of(inner.get())));
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
fn read_nested(
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
        // The silence belonged to an attempt that is gone; the next one sets its own.
        self.timers.set.retain(|timer| timer.purpose != Purpose::ModelSilence);
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

fn read_run(run: &Object<'_>, conversation: &Conversation, open: &OpenEntries<'_>) -> Result<Run, RestoreError> {
    let phase = run.object("phase").ok_or_else(|| missing("phase"))?;
    Ok(Run {
        id: RunId(run.string("id").ok_or_else(|| missing("id"))?.into()),
        steps: number(run, "steps")?,
        blocks: number(run, "blocks")?,
        usage: usage(run, "usage"),
        step_usage: usage(run, "stepUsage"),
        active_tools: run.read("activeTools"),
        plan: StepPlan::default(),
        output: run.object("output").map(|output| read_output_schema(&output)).transpose()?,
        fallback: run.read("fallback").unwrap_or_default(),
        attempts_before: run.read("attemptsBefore").unwrap_or_default(),
        shortened: false,
        timers: Timers { set: run.objects("timers").iter().map(read_timer).collect::<Result<_, _>>()? },
        phase: read_phase(&phase, conversation, open)?,
    })
}

fn read_output_schema(output: &Object<'_>) -> Result<Output, RestoreError> {
    let schema = output.raw("schema").ok_or_else(|| missing("schema"))?;
    let mut read = OutputSchema::new(output.string("name").unwrap_or_default(), schema);
    read.description = output.string("description");
    Output::new(Arc::new(read), output.read("repairs").unwrap_or_default()).map_err(RestoreError::Malformed)
}

fn read_timer(timer: &Object<'_>) -> Result<Timer, RestoreError> {
    let call_id = || timer.string("callId").map(CallId::new).ok_or_else(|| missing("callId"));
    let purpose = timer.string("purpose").unwrap_or_default();
    Ok(Timer {
        id: TimerId(timer.integer("id").ok_or_else(|| missing("id"))?),
        at: Millis(timer.integer("at").ok_or_else(|| missing("at"))?),
        purpose: match purpose.as_str() {
            "run-timeout" => Purpose::RunTimeout,
            "model-silence" => Purpose::ModelSilence,
            "retry" => Purpose::Retry,
            "tool" => Purpose::Tool(call_id()?),
            "hook" => Purpose::Hook(call_id()?),
            "approval" => Purpose::Approval(call_id()?),
            "step-hook" => Purpose::StepHook,
            _ => return Err(unknown("purpose", &purpose)),
        },
    })
}

fn read_phase(phase: &Object<'_>, conversation: &Conversation, open: &OpenEntries<'_>) -> Result<Phase, RestoreError> {
    let kind = phase.string("type").unwrap_or_default();
    Ok(match kind.as_str() {
        "between-steps" => Phase::BetweenSteps,
        "saving" => Phase::Saving { seq: 0 },
        "summarizing" => {
            let number = number(phase, "attempt")?;
            let error = Error::new(ErrorKind::ContextOverflow, "the input is too long for the model");
            Phase::Summarizing(Box::new(Summarizing::interrupted(NextAttempt {
                number,
                error: (number > 1).then_some(error),
            })))
        }
        "calling" => Phase::Calling(Box::new(ModelCall {
            id: ModelCallId(0),
            attempt: number(phase, "attempt")?,
            model: ModelRef::default(),
            answer: Answer::default(),
            last_data: None,
            data_since_timer: false,
        })),
        "preparing" => Phase::Preparing {
            hook: HookId(phase.integer("hook").ok_or_else(|| missing("hook"))?),
            question: match phase.string("question").as_deref() {
                Some("prepareContext") => StepQuestion::Context,
                Some("stopWhen") => StepQuestion::Stop,
                _ => StepQuestion::Step,
            },
            attempt: number(phase, "attempt")?,
        },
        "waiting" => Phase::Waiting { attempt: number(phase, "attempt")? },
        "tools" => {
            let batch = read_batch(&phase.objects("calls"), conversation, open)?;
            Phase::Tools { batch, suspension: Suspension::None }
        }
        "validating-output" => Phase::ValidatingOutput {
            hook: HookId(phase.integer("hook").ok_or_else(|| missing("hook"))?),
            output: phase.get("output").map(RawJson::from).ok_or_else(|| missing("output"))?,
        },
        "ending" => Phase::Ending { end: read_end(phase)?, seq: 0 },
        _ => return Err(unknown("phase", &kind)),
    })
}

fn read_end(end: &Object<'_>) -> Result<RunEnd, RestoreError> {
    let reason = end.string("stopReason").unwrap_or_default();
    Ok(RunEnd {
        reason: EndReason::from_name(&reason).ok_or_else(|| unknown("stop reason", &reason))?,
        usage: usage(end, "usage"),
        error: end.object("error").map(|error| read_error(&error)),
        text: end.string("text").unwrap_or_default(),
        output: end.get("output").map(RawJson::from),
        message: end.object("message").map(|message| Message::read(&message)).transpose()?.map(Arc::new),
    })
}

fn read_error(error: &Object<'_>) -> Error {
    let kind = error.string("kind").and_then(|kind| ErrorKind::from_name(&kind)).unwrap_or(ErrorKind::Internal);
    let mut read = Error::new(kind, error.string("message").unwrap_or_default());
    if let Some(status) = error.read("status") {
        read = read.with_status(status);
    }
    if let Some(code) = error.string("code") {
        read = read.with_code(code);
    }
    if let Some(milliseconds) = error.integer("retryAfterMs") {
        read = read.with_retry_after(milliseconds);
    }
    read
}

/// The calls are those of the last message; the saved form has how far each has come.
fn read_batch(
    stages: &[Object<'_>],
    conversation: &Conversation,
    open: &OpenEntries<'_>,
) -> Result<Batch, RestoreError> {
    let calls: Vec<&ToolCall> = match conversation.history.last().map(|message| &message.body) {
        Some(Body::Assistant(assistant)) => assistant.tool_calls().collect(),
        _ => Vec::new(),
    };
    if calls.is_empty() || calls.len() != stages.len() {
        return Err(RestoreError::Malformed("its calls are not those of its last message".to_owned()));
    }
    let read = |(call, stage): (&ToolCall, &Object<'_>)| {
        if stage.string("callId").as_deref() != Some(call.call_id.as_str()) {
            return Err(RestoreError::Malformed("its calls are not those of its last message".to_owned()));
        }
        let agent = conversation.tools.find(&call.tool_name).and_then(|tool| tool.agent.as_ref());
        let session = match (agent, stage.object("session")) {
            (Some(SubAgent(agent)), Some(state)) => {
                let (conversation, run) = read_nested(call, &state, open, agent.clone())?;
                Some(Box::new(Session::of_sub_agent(conversation, run)))
            }
            _ => None,
        };
        let spent = usage(stage, "spent");
        Ok(Call { stage: read_stage(stage, call, open)?, spent, session, ..Call::new(call.clone()) })
    };
    Ok(Batch { calls: calls.into_iter().zip(stages).map(read).collect::<Result<_, _>>()? })
}

fn read_stage(stage: &Object<'_>, call: &ToolCall, open: &OpenEntries<'_>) -> Result<Stage, RestoreError> {
    let input = || match (stage.get("input"), &call.input) {
        (Some(input), _) => Ok(RawJson::from(input)),
        (None, ToolInput::Json(own)) => Ok(own.clone()),
        (None, ToolInput::Malformed { .. }) => Err(missing("input")),
    };
    let hook = || stage.integer("hook").map(HookId).ok_or_else(|| missing("hook"));
    let name = stage.string("stage").unwrap_or_default();
    Ok(match name.as_str() {
        "waiting" => Stage::Waiting,
        "validating" => Stage::Validating {
            input: input()?,
            then: match stage.string("then").as_deref() {
                Some("approval") => AfterValidation::Approval,
                Some("run") => AfterValidation::Run,
                _ => AfterValidation::Hook,
            },
        },
        "asking-before" => Stage::AskingBefore { input: input()?, hook: hook()? },
        "awaiting-approval" => Stage::AwaitingApproval { input: input()? },
        "ready" => Stage::Ready { input: input()? },
        "delegated" => Stage::Delegated { input: input()? },
        "started" => Stage::Running { input: input()? },
        "asking-after" => Stage::AskingAfter {
            hook: hook()?,
            input: input()?,
            output: read_output(&stage.object("output").ok_or_else(|| missing("output"))?)?,
        },
        "done" if stage.get("result").is_some() => read_done(stage)?,
        "done" => {
            let is_of_call = |entry: &&&Object<'_>| {
                entry.object("result").and_then(|result| result.string("callId")).as_deref()
                    == Some(call.call_id.as_str())
            };
            read_done(open.results.iter().rev().find(is_of_call).ok_or_else(|| missing("result"))?)?
        }
        _ => return Err(unknown("stage", &name)),
    })
}

fn read_done(done: &Object<'_>) -> Result<Stage, RestoreError> {
    Ok(Stage::Done {
        result: Arc::new(ToolResult::read(&done.object("result").ok_or_else(|| missing("result"))?)?),
        terminate: done.boolean("terminate").unwrap_or(false),
        was_run: done.boolean("wasRun").unwrap_or(true),
    })
}

fn read_output(output: &Object<'_>) -> Result<ToolOutput, RestoreError> {
    Ok(ToolOutput {
        content: Content::read_list(output.get("content"))?,
        output: output.get("output").map(RawJson::from),
        details: output.get("details").map(RawJson::from),
        is_error: output.boolean("isError").unwrap_or(false),
        terminate: output.boolean("terminate").unwrap_or(false),
    })
}

fn usage(object: &Object<'_>, name: &str) -> Usage {
    object.object(name).map(|usage| Usage::read(&usage)).unwrap_or_default()
}

fn number(object: &Object<'_>, name: &'static str) -> Result<u32, RestoreError> {
    object.read(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> RestoreError {
    RestoreError::Malformed(format!("the member {name:?} is missing or of the wrong type"))
}

fn unknown(what: &str, name: &str) -> RestoreError {
    RestoreError::Malformed(format!("it has a {what} {name:?} that this version does not know"))
}

impl From<MessageError> for RestoreError {
    fn from(error: MessageError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl EndReason {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "terminated" => Some(Self::Terminated),
            "limit" => Some(Self::Limit),
            _ => StopReason::from_name(name).map(Self::Model),
        }
    }
}
