//! What a caller asked for, from start to end.

use std::sync::Arc;

use super::super::protocol::{Era, Revision, Tool};
use super::super::transport::streamable_http::mirrored;
use super::super::transport::{Outbound, RequestId};
use super::connect::{HEADER_MISMATCH, STATELESS_CODES};
use super::listing::{Collection, Listing, Next};
use super::pages::Pages;
use super::question::Rounds;
use super::task::{self, Task};
use super::{
    CallOptions, Claim, Client, Effect, Event, OperationId, Pending, Phase, Reply, Request, TimerId, TransportKind,
    cache, claim,
};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, quoted};
use crate::jsonrpc::{Params, RpcError, code, excerpt};
use crate::time::Millis;

/// The most operations that may be open at once. Far above what a model starts; a caller in a loop is stopped before
/// memory is full.
const OPERATION_LIMIT: usize = 1_024;

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) request: Request,
    /// The request on the wire; `None` while it waits for the connection.
    wire: Option<RequestId>,
    /// Whether its next request is one that a later client may claim, or is claimed itself.
    claim: Claim,
    /// The connection that the request was sent on.
    generation: u64,
    listing: Listing,
    cursor: Option<RawJson>,
    /// How long the answer is good; of a list the shortest of its pages.
    time_to_live: u64,
    idle_timeout: u64,
    has_maximum: bool,
    has_idle_timer: bool,
    /// The last sign of life since the idle timer was set.
    stirred: Option<Millis>,
    /// The highest progress reported.
    progress: Option<f64>,
    /// Whether it was sent again in a new session, which happens once.
    session_renewed: bool,
    /// Whether it was sent again because its answer was lost, which happens once.
    pub(super) was_repeated: bool,
    /// Whether the tools were listed again for it, which happens once.
    relisting: Relisting,
    /// What the server asked for before it answers.
    pub(super) rounds: Rounds,
    /// What the server made of the call.
    pub(super) task: Option<Task>,
    /// The pages that a person must visit first.
    pub(super) pages: Option<Pages>,
}

/// A call that was refused because its headers did not fit lists the tools again first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Relisting {
    #[default]
    Untried,
    Listing,
    Done,
}

/// What a result is.
enum ResultKind {
    Complete,
    /// The server asks for something first.
    InputRequired,
    Task(Task),
}

impl Operation {
    /// What it lists at the moment, if that is what it does.
    fn listed(&self) -> Option<Collection> {
        match self.request {
            Request::ListTools => Some(Collection::Tools),
            Request::List(collection) => Some(collection),
            Request::CallTool { .. } if self.relisting == Relisting::Listing => Some(Collection::Tools),
            _ => None,
        }
    }
}

impl Client {
    pub(super) fn start(
        &mut self,
        now: Millis,
        id: OperationId,
        request: Request,
        options: &CallOptions,
    ) -> Result<(), Error> {
        match (&self.phase, &request) {
            (Phase::Closed(error), _) => return Err(error.clone()),
            (Phase::Closing, _) => return Err(Error::new(ErrorKind::ConnectionClosed, "the connection is closing")),
            (_, Request::CallTool { name, arguments }) if Object::parse(arguments.as_str()).is_err() => {
                let message = format!("the input of the MCP tool {name} is not a JSON object");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            _ if self.operations.contains_key(&id) => {
                return Err(Error::new(ErrorKind::InvalidInput, "an operation of this id is open already"));
            }
            _ if self.operations.len() >= OPERATION_LIMIT => {
                let message = format!("{OPERATION_LIMIT} requests to this MCP server are open; wait for some to end");
                return Err(Error::new(ErrorKind::Limit, message));
            }
            _ => {}
        }
        if let Some(reply) = self.kept(now, &request).filter(|_| !options.refresh) {
            self.events.push_back(Event::Done { operation: id, outcome: Ok(reply) });
            return Ok(());
        }
        if let Some(maximum) = options.maximum {
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Maximum(id), at: now.after(maximum) });
        }
        let operation = Operation {
            request,
            wire: None,
            claim: options.claim.clone(),
            generation: 0,
            listing: Listing::default(),
            cursor: None,
            time_to_live: u64::MAX,
            idle_timeout: options.idle_timeout,
            has_maximum: options.maximum.is_some(),
            has_idle_timer: false,
            stirred: None,
            progress: None,
            session_renewed: false,
            was_repeated: false,
            relisting: Relisting::default(),
            rounds: Rounds::default(),
            task: None,
            pages: None,
        };
        self.operations.insert(id, operation);
        self.send_operation(now, id);
        Ok(())
    }

    /// Sends what waited for the connection.
    pub(super) fn send_waiting(&mut self, now: Millis) {
        let waiting = self.operations.iter().filter(|(_, operation)| operation.wire.is_none());
        for id in waiting.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.send_operation(now, id);
        }
    }

    pub(super) fn send_operation(&mut self, now: Millis, id: OperationId) {
        let Phase::Ready { era, .. } = self.phase else { return };
        let Some(operation) = self.operations.get_mut(&id) else { return };
        if let Claim::Take(key) = &operation.claim {
            let key = key.clone();
            operation.claim = Claim::None;
            return self.claim(now, id, &key);
        }
        let listed = operation.listed();
        if listed.is_some_and(|collection| !self.server.may_offer(collection.capability())) {
            return self.take_list(now, id);
        }
        if era == Era::Stateless && matches!(operation.request, Request::SetLogLevel(_) | Request::Subscribe { .. }) {
            return self.keep_up(now, id);
        }
        let needs_task = match &operation.request {
            Request::CallTool { name, .. } => self.tools.get(name).is_some_and(|tool| tool.needs_task),
            _ => false,
        };
        let (method, params) = match (listed, &operation.request) {
            (Some(collection), _) => (collection.method().to_owned(), list_params(operation.cursor.as_ref())),
            (None, Request::CallTool { .. }) if operation.task.is_some() => {
                let task = operation.task.as_mut();
                match task.and_then(|task| task.request(operation.rounds.answers())) {
                    Some((method, params)) => (method.to_owned(), params),
                    None => return,
                }
            }
            (None, Request::CallTool { name, arguments }) => {
                let mut params = Params::new().with("name", name).with("arguments", arguments);
                if needs_task && era != Era::Stateless {
                    params.set("task", &Params::new().with("ttl", &task::TIME_TO_LIVE));
                }
                ("tools/call".to_owned(), operation.rounds.add_to(params))
            }
            (None, Request::SetLogLevel(level)) => ("logging/setLevel".to_owned(), Params::new().with("level", level)),
            (None, Request::Subscribe { uri, wanted }) => {
                let method = if *wanted { "resources/subscribe" } else { "resources/unsubscribe" };
                (method.to_owned(), Params::new().with("uri", uri))
            }
            (None, Request::Other { method, params }) => (method.clone(), operation.rounds.add_to(params.clone())),
            (None, Request::ListTools | Request::List(_)) => return,
        };
        let wire = self.offered_id(id, &method).unwrap_or_else(|| self.next_request_id());
        self.sent(now, id, wire.clone());
        self.send_request_as(wire, era, Pending::Operation(id), &method, params);
    }

    /// The id by which a later client can claim the answer, where there can be one.
    fn offered_id(&mut self, id: OperationId, method: &str) -> Option<RequestId> {
        let operation = self.operations.get_mut(&id).filter(|_| method == "tools/call")?;
        let Claim::Offer(key) = std::mem::take(&mut operation.claim) else { return None };
        let wire = claim::request_id(&key);
        if self.resume_id.is_none() || self.pending.contains_key(&wire) {
            return None;
        }
        // What came for an earlier call of this key is not the answer to this one.
        self.unclaimed.take(&wire);
        Some(wire)
    }

    /// From now on an answer to this request is waited for.
    pub(super) fn sent(&mut self, now: Millis, id: OperationId, wire: RequestId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let has_idle_timer = std::mem::replace(&mut operation.has_idle_timer, true);
        operation.generation = self.generation;
        operation.stirred = has_idle_timer.then_some(now);
        if !has_idle_timer {
            let at = now.after(operation.idle_timeout);
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Idle(id), at });
        }
        operation.wire = Some(wire);
    }

    /// The answer to an operation's request.
    pub(super) fn answer(
        &mut self,
        now: Millis,
        id: OperationId,
        status: Option<u16>,
        outcome: Result<RawJson, RpcError>,
    ) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.wire = None;
        let listed = operation.listed();
        if operation.task.is_some() {
            return self.take_task_answer(now, id, outcome);
        }
        match outcome {
            Ok(result) => match (self.result_kind(&result), listed) {
                (Ok(ResultKind::Complete), Some(collection)) => self.take_page(now, id, collection, &result),
                (Ok(ResultKind::Complete), None) => self.take_result(now, id, result),
                (Ok(ResultKind::InputRequired), _) => self.take_input_required(now, id, &result),
                (Ok(ResultKind::Task(task)), _) => self.take_task(now, id, task),
                (Err(error), _) => self.finish(id, Err(error)),
            },
            // Some servers declare what they do not have.
            Err(error) if listed.is_some() && error.code == code::METHOD_NOT_FOUND => self.take_list(now, id),
            Err(error) if error.code == HEADER_MISMATCH && self.may_relist(id) => self.relist(now, id),
            // A tool whose calls must be tasks, which is known only from the list.
            Err(error) if error.code == code::METHOD_NOT_FOUND && self.makes_tasks() && self.may_relist(id) => {
                self.relist(now, id);
            }
            Err(error) if self.asks_for_pages(id, &error) => self.ask_for_pages(id, error),
            Err(error) if self.is_other_era(status, &error) => self.connect_without_record(now),
            Err(error) => self.finish(id, Err(error.into())),
        }
    }

    /// An operation's request ended without an answer.
    pub(super) fn unanswered(&mut self, now: Millis, id: OperationId, error: Error) {
        let current = self.generation;
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.wire = None;
        let is_current = operation.generation == current;
        match &self.phase {
            _ if error.kind() == ErrorKind::SessionExpired && !operation.session_renewed => {
                operation.session_renewed = true;
                match self.phase {
                    Phase::Ready { era: Era::Handshake(revision), .. } if is_current => self.expired(now, revision),
                    _ => self.send_operation(now, id),
                }
            }
            Phase::Ready { era: Era::Stateless, is_assumed: true } if error.kind() == ErrorKind::BadRequest => {
                self.connect_without_record(now);
            }
            _ if self.may_repeat(id, &error) => self.repeat(now, id, &error),
            _ => self.finish(id, Err(error)),
        }
    }

    fn expired(&mut self, now: Millis, revision: Revision) {
        self.warn("the MCP server forgot the session; a new one is opened");
        self.renew_session(now, revision);
    }

    /// Whether the record was wrong: the stateless request met a server that wants `initialize`.
    fn is_other_era(&self, status: Option<u16>, error: &RpcError) -> bool {
        let is_assumed = matches!(self.phase, Phase::Ready { era: Era::Stateless, is_assumed: true });
        let is_stateless = match status {
            // What a stateless server refuses with these statuses; python-sdk, of the other era, uses -32600 for a missing session.
            Some(400) => error.code == code::INVALID_PARAMS || STATELESS_CODES.contains(&error.code),
            Some(404) => error.code == code::METHOD_NOT_FOUND,
            Some(_) => true,
            None => (code::INVALID_PARAMS..=HEADER_MISMATCH).contains(&error.code),
        };
        is_assumed && !is_stateless
    }

    /// What a result is. The stateless era says so; the other era has tasks and last words.
    fn result_kind(&self, result: &RawJson) -> Result<ResultKind, Error> {
        let is_stateless = matches!(self.phase, Phase::Ready { era: Era::Stateless, .. });
        if !is_stateless && !self.makes_tasks() {
            return Ok(ResultKind::Complete);
        }
        let object = Object::parse(result.as_str()).ok();
        if !is_stateless {
            let has_task =
                object.is_some_and(|object| object.get("content").is_none() && object.object("task").is_some());
            let task = Some(result).filter(|_| has_task).and_then(Task::read);
            return Ok(task.map_or(ResultKind::Complete, ResultKind::Task));
        }
        let kind = object.and_then(|object| object.string("resultType"));
        match kind.as_deref() {
            None | Some("complete") => Ok(ResultKind::Complete),
            Some("input_required") => Ok(ResultKind::InputRequired),
            Some("task") => Task::read(result).map(ResultKind::Task).ok_or_else(|| {
                Error::new(ErrorKind::Protocol, "the MCP server made a task of the request and gave it no id")
            }),
            Some(kind) => {
                let message = format!("the MCP server answered with a result of the unknown kind {}", quoted(kind));
                Err(Error::new(ErrorKind::Protocol, message))
            }
        }
    }

    /// Whether this is a handshake server that turns calls into tasks.
    fn makes_tasks(&self) -> bool {
        matches!(self.phase, Phase::Ready { era: Era::Handshake(_), .. })
            && self.server.capabilities.as_ref().is_some_and(|capabilities| capabilities.has("tasks"))
    }

    pub(super) fn take_result(&mut self, now: Millis, id: OperationId, result: RawJson) {
        let Some(operation) = self.operations.get(&id) else { return };
        let outcome = match &operation.request {
            Request::CallTool { name, .. } => {
                let name = name.clone();
                self.check_output(&name, &result).map(|()| Reply::ToolResult(result))
            }
            Request::SetLogLevel(_) | Request::Subscribe { .. } => {
                self.keep_up(now, id);
                Ok(Reply::Value(result))
            }
            _ => {
                let time_to_live = cache::time_to_live(&result);
                let reply = Reply::Value(result);
                self.keep(now, id, time_to_live, &reply);
                Ok(reply)
            }
        };
        self.finish(id, outcome);
    }

    fn take_page(&mut self, now: Millis, id: OperationId, collection: Collection, result: &RawJson) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.time_to_live = operation.time_to_live.min(cache::time_to_live(result));
        match operation.listing.take_page(collection, result) {
            Ok(Next::Page(cursor)) => {
                operation.cursor = Some(cursor);
                self.send_operation(now, id);
            }
            Ok(Next::End) => self.take_list(now, id),
            Ok(Next::Cut(reason)) => {
                operation.time_to_live = 0;
                self.warn(format!("the list of {} was cut: {reason}", collection.capability()));
                self.take_list(now, id);
            }
            Err(error) => self.finish(id, Err(error)),
        }
    }

    /// The list is complete.
    fn take_list(&mut self, now: Millis, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let entries = std::mem::take(&mut operation.listing).into_entries();
        // A server that was not asked says nothing about how long its answer is good.
        let time_to_live = if operation.time_to_live == u64::MAX { 0 } else { operation.time_to_live };
        if matches!(operation.request, Request::List(_)) {
            let reply = Reply::Entries(entries);
            self.keep(now, id, time_to_live, &reply);
            return self.finish(id, Ok(reply));
        }
        let mut tools = Vec::new();
        for entry in &entries {
            match Tool::read(entry) {
                Some(tool) => tools.push(Arc::new(tool)),
                None => self.warn(format!(
                    "an MCP tool is left out, whose name or schema cannot be used: {}",
                    excerpt(entry.as_str())
                )),
            }
        }
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let is_for_call = operation.relisting == Relisting::Listing;
        if is_for_call {
            operation.relisting = Relisting::Done;
            operation.cursor = None;
        }
        tools.retain(|tool| self.can_be_called(tool));
        self.tools = tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect();
        match is_for_call {
            true => self.send_operation(now, id),
            false => {
                let reply = Reply::Tools(tools);
                self.keep(now, id, time_to_live, &reply);
                self.finish(id, Ok(reply));
            }
        }
    }

    /// Stateless servers over HTTP refuse calls whose annotated arguments are not repeated in headers.
    fn can_be_called(&mut self, tool: &Tool) -> bool {
        let is_stateless = matches!(self.phase, Phase::Ready { era: Era::Stateless, .. });
        if !is_stateless || self.options.transport != TransportKind::Http {
            return true;
        }
        let checked = mirrored::mirrored_params(&tool.input_schema);
        if let Err(problem) = &checked {
            self.warn(format!("the MCP tool {} is left out: {problem}", tool.name));
        }
        checked.is_ok()
    }

    fn may_relist(&self, id: OperationId) -> bool {
        let operation = self.operations.get(&id);
        operation.is_some_and(|operation| {
            matches!(operation.request, Request::CallTool { .. }) && operation.relisting == Relisting::Untried
        })
    }

    fn relist(&mut self, now: Millis, id: OperationId) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.relisting = Relisting::Listing;
            self.send_operation(now, id);
        }
    }

    pub(super) fn cancel(&mut self, id: OperationId, reason: &str) {
        self.withdraw(id, reason);
        let Some(operation) = self.operations.get(&id) else { return };
        let message = format!("{} was cancelled", operation.request);
        self.finish(id, Err(Error::new(ErrorKind::Aborted, message)));
    }

    /// Tells the server and the transport that nobody waits any more.
    fn withdraw(&mut self, id: OperationId, reason: &str) {
        self.cancel_task(id);
        let Some(wire) = self.operations.get_mut(&id).and_then(|operation| operation.wire.take()) else { return };
        self.pending.remove(&wire);
        self.tell_cancelled(&wire, reason);
        self.effects.push_back(Effect::Send(Outbound::Cancel { id: wire }));
    }

    /// Tells the server, where a message does that: over HTTP the stateless era cancels by closing the stream, and has no
    /// such notification.
    pub(super) fn tell_cancelled(&mut self, wire: &RequestId, reason: &str) {
        if let Phase::Ready { era, .. } = self.phase
            && (era != Era::Stateless || self.options.transport == TransportKind::Pipe)
        {
            let params = Params::new().with("requestId", wire).with("reason", reason);
            self.send_notification(era, "notifications/cancelled", &params);
        }
    }

    pub(super) fn idle_timer(&mut self, now: Millis, id: OperationId) {
        // While a session is replaced its own limit counts, and a person may think as long as they like.
        let is_suspended =
            !matches!(self.phase, Phase::Ready { .. }) || !self.questions.is_empty() || self.waits_for_page(id);
        let Some(operation) = self.operations.get_mut(&id) else { return };
        match operation.stirred.take().or(is_suspended.then_some(now)) {
            Some(stirred) => {
                let at = stirred.after(operation.idle_timeout);
                self.effects.push_back(Effect::SetTimer { timer: TimerId::Idle(id), at });
            }
            None => {
                operation.has_idle_timer = false;
                self.time_out(id, "had no sign of life from the MCP server for too long");
            }
        }
    }

    pub(super) fn time_out(&mut self, id: OperationId, what: &str) {
        let Some(operation) = self.operations.get(&id) else { return };
        let message = format!("{} {what}", operation.request);
        self.withdraw(id, "timed out");
        self.finish(id, Err(Error::new(ErrorKind::Timeout, message)));
    }

    /// The server is at work on this operation.
    pub(super) fn stir(&mut self, now: Millis, id: OperationId) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.stirred = Some(now);
        }
    }

    /// Takes note of progress; whether it is more than before, as the specification demands.
    pub(super) fn is_new_progress(&mut self, id: OperationId, progress: f64) -> bool {
        let Some(operation) = self.operations.get_mut(&id) else { return false };
        let is_new = operation.progress.is_none_or(|before| progress > before);
        if is_new {
            operation.progress = Some(progress);
        }
        is_new
    }

    pub(super) fn finish(&mut self, id: OperationId, outcome: Result<Reply, Error>) {
        let Some(operation) = self.operations.remove(&id) else { return };
        if let Some(wire) = operation.wire {
            self.pending.remove(&wire);
        }
        if operation.has_idle_timer {
            self.effects.push_back(Effect::ClearTimer(TimerId::Idle(id)));
        }
        if operation.has_maximum {
            self.effects.push_back(Effect::ClearTimer(TimerId::Maximum(id)));
        }
        if operation.task.is_some() {
            self.effects.push_back(Effect::ClearTimer(TimerId::Task(id)));
        }
        self.withdraw_questions_of(id);
        self.events.push_back(Event::Done { operation: id, outcome });
    }

    pub(super) fn rounds(&mut self, id: OperationId) -> Option<&mut Rounds> {
        self.operations.get_mut(&id).map(|operation| &mut operation.rounds)
    }

    pub(super) fn end_operations(&mut self, error: &Error) {
        for operation in self.operations.keys().copied().collect::<Vec<_>>() {
            self.finish(operation, Err(error.clone()));
        }
    }
}

fn list_params(cursor: Option<&RawJson>) -> Params {
    cursor.map_or_else(Params::new, |cursor| Params::new().with("cursor", cursor))
}
