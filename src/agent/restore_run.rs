//! From the saved form back to a run: its phase, its timers, and how far each call of its step has come.

use std::sync::Arc;

use super::answer::Answer;
use super::call::{AfterValidation, Call, Stage};
use super::conversation::Conversation;
use super::effect::{HookId, ModelCallId, TimerId};
use super::event::{EndReason, RunEnd, RunId};
use super::input::ToolOutput;
use super::output::Output;
use super::plan::StepPlan;
use super::restore::{OpenEntries, missing, read_nested, unknown};
use super::run::{ModelCall, Phase, Run, Suspension};
use super::session::{RestoreError, Session};
use super::step_hooks::StepQuestion;
use super::sub_agent::Nested;
use super::summarizing::{NextAttempt, Summarizing};
use super::timers::{Purpose, Timer, Timers};
use super::tools::Batch;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::model::{
    Body, CallId, Content, Message, ModelRef, OutputSchema, StopReason, ToolCall, ToolInput, ToolResult, Usage,
};
use crate::time::Millis;

pub(super) fn read_run(
    run: &Object<'_>,
    conversation: &Conversation,
    open: &OpenEntries<'_>,
) -> Result<Run, RestoreError> {
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
        error: end.object("error").map(|error| Error::read(&error)),
        text: end.string("text").unwrap_or_default(),
        output: end.get("output").map(RawJson::from),
        message: end.object("message").map(|message| Message::read(&message)).transpose()?.map(Arc::new),
    })
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
            (Some(agent), Some(state)) => {
                let (conversation, run) = read_nested(call, &state, open, agent.definition().clone())?;
                Some(Nested::new(Session::of_sub_agent(conversation, run)))
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
                Some("ask") => AfterValidation::Ask,
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

impl EndReason {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "terminated" => Some(Self::Terminated),
            "limit" => Some(Self::Limit),
            _ => StopReason::from_name(name).map(Self::Model),
        }
    }
}
