//! Calls that a server turns into tasks: it answers at once with a name for the work, and is asked later how far it is.
//!
//! Sources: revision 2025-11-25, "Tasks" (the client asks for a task, and fetches the result by `tasks/result`), and the
//! extension `io.modelcontextprotocol/tasks` of revision 2026-07-28 (the server decides, and `tasks/get` brings the result).

use super::super::protocol::Era;
use super::{Client, Effect, OperationId, Pending, Phase, TimerId};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, quoted};
use crate::jsonrpc::{Params, RpcError};
use crate::time::Millis;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The wait between two questions when the server names none, in milliseconds.
const DEFAULT_INTERVAL: u64 = 1_000;

/// The shortest and the longest wait that a server may name, in milliseconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 100..=60_000;

/// How long a handshake server is asked to keep a task, in milliseconds: an hour, as long as anybody waits for a tool.
pub(super) const TIME_TO_LIVE: u64 = 3_600_000;

/// A task of one operation.
#[derive(Debug)]
pub(super) struct Task {
    id: String,
    interval: u64,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Between two questions.
    Waiting,
    /// It is asked how far the work is.
    Asking,
    /// The result is fetched.
    Fetching,
    /// The answers to the server's questions are on their way.
    Answering,
}

impl Task {
    /// The task in the answer to a call; `None` when it is no task.
    pub(super) fn read(result: &RawJson) -> Option<Self> {
        let object = Object::parse(result.as_str()).ok()?;
        let task = object.object("task").unwrap_or(object);
        let mut read = Self { id: task.string("taskId")?, interval: DEFAULT_INTERVAL, step: Step::Waiting };
        read.note(&task);
        Some(read)
    }

    fn note(&mut self, task: &Object<'_>) {
        if let Some(interval) = task.integer("pollIntervalMs").or_else(|| task.integer("pollInterval")) {
            self.interval = interval.clamp(*INTERVALS.start(), *INTERVALS.end());
        }
    }

    /// The next request about it; `None` between two.
    pub(super) fn request(&mut self, answers: &Params) -> Option<(&'static str, Params)> {
        let params = Params::new().with("taskId", &self.id);
        if !answers.is_empty() && self.step == Step::Waiting {
            self.step = Step::Answering;
        }
        match self.step {
            Step::Waiting => None,
            Step::Asking => Some(("tasks/get", params)),
            Step::Fetching => Some(("tasks/result", params)),
            Step::Answering => Some(("tasks/update", params.with("inputResponses", answers))),
        }
    }
}

impl Client {
    /// The call became a task.
    pub(super) fn take_task(&mut self, now: Millis, id: OperationId, task: Task) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let at = now.after(task.interval);
        operation.task = Some(task);
        self.effects.push_back(Effect::SetTimer { timer: TimerId::Task(id), at });
    }

    /// It is time to ask how far the task is.
    pub(super) fn ask_for_task(&mut self, now: Millis, id: OperationId) {
        let Some(task) = self.operations.get_mut(&id).and_then(|operation| operation.task.as_mut()) else { return };
        if task.step == Step::Waiting {
            task.step = Step::Asking;
            self.send_operation(now, id);
        }
    }

    /// The answer to a request about a task.
    pub(super) fn take_task_answer(&mut self, now: Millis, id: OperationId, outcome: Result<RawJson, RpcError>) {
        let Some(task) = self.operations.get_mut(&id).and_then(|operation| operation.task.as_mut()) else { return };
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.finish(id, Err(error.into())),
        };
        match task.step {
            Step::Fetching => return self.take_result(now, id, result),
            Step::Answering => return self.wait_for_task(now, id),
            Step::Waiting | Step::Asking => {}
        }
        let object = Object::parse(result.as_str()).unwrap_or_default();
        task.note(&object);
        let is_stateless = matches!(self.phase, Phase::Ready { era: Era::Stateless, .. });
        let status = object.string("status").unwrap_or_default();
        match (status.as_str(), is_stateless) {
            ("working", _) => self.wait_for_task(now, id),
            ("cancelled", _) => self.finish(id, Err(failed(&object, "the MCP server cancelled the task"))),
            // The result of a handshake task, or its error, comes with one more request, and so do its questions.
            ("input_required" | "completed" | "failed", false) => {
                task.step = Step::Fetching;
                self.send_operation(now, id);
            }
            ("input_required", true) => {
                task.step = Step::Waiting;
                self.take_input_required(now, id, &result);
            }
            ("completed", true) => match object.raw("result") {
                Some(result) => self.take_result(now, id, result),
                None => self.finish(id, Err(failed(&object, "the MCP server completed the task without a result"))),
            },
            ("failed", true) => self.finish(id, Err(failed(&object, "the task failed"))),
            _ => {
                let message =
                    format!("the MCP server says of a task that it is {}, which is no status", quoted(&status));
                self.finish(id, Err(Error::new(ErrorKind::Protocol, message)));
            }
        }
    }

    fn wait_for_task(&mut self, now: Millis, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.rounds.clear_answers();
        let Some(task) = operation.task.as_mut() else { return };
        task.step = Step::Waiting;
        let at = now.after(task.interval);
        self.effects.push_back(Effect::SetTimer { timer: TimerId::Task(id), at });
    }

    /// Tells the server that nobody waits for the task any more.
    pub(super) fn cancel_task(&mut self, id: OperationId) {
        let Phase::Ready { era, .. } = self.phase else { return };
        let task = self.operations.get(&id).and_then(|operation| operation.task.as_ref());
        let Some(params) = task.map(|task| Params::new().with("taskId", &task.id)) else { return };
        self.send_request(era, Pending::Aside, "tasks/cancel", params);
    }
}

fn failed(task: &Object<'_>, what: &str) -> Error {
    let said = task.object("error").and_then(|error| error.string("message"));
    let said = said.or_else(|| task.string("statusMessage")).map(|said| format!(": {said}")).unwrap_or_default();
    Error::new(ErrorKind::Rpc, format!("{what}{said}"))
}
