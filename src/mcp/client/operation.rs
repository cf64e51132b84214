//! What a caller asked for, from start to end.

use std::sync::Arc;

use super::super::protocol::{CallToolResult, Era, Revision, Tool};
use super::super::transport::{Outbound, RequestId};
use super::connect::HEADER_MISMATCH;
use super::listing::{Collection, Listing, Next};
use super::question::Rounds;
use super::{
    CallOptions, Client, Effect, Event, OperationId, Pending, Phase, Reply, Request, TimerId, TransportKind, header,
};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{Params, RpcError, code};
use crate::time::Millis;

/// The most operations that may be open at once. Far above what a model starts; a caller in a loop is stopped before
/// memory is full.
const OPERATION_LIMIT: usize = 1_024;

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    request: Request,
    /// The request on the wire; `None` while it waits for the connection.
    wire: Option<RequestId>,
    /// The connection that the request was sent on.
    generation: u64,
    listing: Listing,
    cursor: Option<String>,
    idle_timeout: u64,
    has_maximum: bool,
    has_idle_timer: bool,
    /// The last sign of life since the idle timer was set.
    stirred: Option<Millis>,
    /// The highest progress reported.
    progress: Option<f64>,
    /// Whether it was sent again in a new session, which happens once.
    session_renewed: bool,
    /// Whether the tools were listed again for it, which happens once.
    relisting: Relisting,
    /// What the server asked for before it answers.
    rounds: Rounds,
}

/// A call that was refused because its headers did not fit lists the tools again first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Relisting {
    #[default]
    Untried,
    Listing,
    Done,
}

impl Operation {
    /// What it lists at the moment, if that is what it does.
    fn listed(&self) -> Option<Collection> {
        match self.request {
            Request::ListTools => Some(Collection::Tools),
            Request::List(collection) => Some(collection),
            Request::CallTool { .. } if self.relisting == Relisting::Listing => Some(Collection::Tools),
            Request::CallTool { .. } | Request::Other { .. } => None,
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
        let invalid = |message: &str| Err(Error::new(ErrorKind::InvalidInput, message));
        match (&self.phase, &request) {
            (Phase::Closed(error), _) => return Err(error.clone()),
            (Phase::Closing, _) => return Err(Error::new(ErrorKind::ConnectionClosed, "the connection is closing")),
            (_, Request::CallTool { name, arguments }) if Object::parse(arguments.as_str()).is_err() => {
                return invalid(&format!("the input of the MCP tool {name} is not a JSON object"));
            }
            _ if self.operations.contains_key(&id) => return invalid("an operation of this id is open already"),
            _ if self.operations.len() >= OPERATION_LIMIT => {
                let message = format!("{OPERATION_LIMIT} requests to this MCP server are open; wait for some to end");
                return Err(Error::new(ErrorKind::Limit, message));
            }
            _ => {}
        }
        if let Some(maximum) = options.maximum {
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Maximum(id), at: now.after(maximum) });
        }
        let operation = Operation {
            request,
            wire: None,
            generation: 0,
            listing: Listing::default(),
            cursor: None,
            idle_timeout: options.idle_timeout,
            has_maximum: options.maximum.is_some(),
            has_idle_timer: false,
            stirred: None,
            progress: None,
            session_renewed: false,
            relisting: Relisting::default(),
            rounds: Rounds::default(),
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
        let listed = operation.listed();
        if listed.is_some_and(|collection| !self.server.may_offer(collection.capability())) {
            return self.take_list(now, id);
        }
        let (method, params) = match (listed, &operation.request) {
            (Some(collection), _) => (collection.method().to_owned(), list_params(operation.cursor.as_deref())),
            (None, Request::CallTool { name, arguments }) => {
                let params = Params::new().with("name", name).with("arguments", arguments);
                ("tools/call".to_owned(), operation.rounds.add_to(params))
            }
            (None, Request::Other { method, params }) => (method.clone(), operation.rounds.add_to(params.clone())),
            (None, Request::ListTools | Request::List(_)) => return,
        };
        let has_idle_timer = std::mem::replace(&mut operation.has_idle_timer, true);
        operation.generation = self.generation;
        operation.stirred = has_idle_timer.then_some(now);
        if !has_idle_timer {
            let at = now.after(operation.idle_timeout);
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Idle(id), at });
        }
        let wire = self.send_request(era, Pending::Operation(id), &method, params);
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.wire = Some(wire);
        }
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
        match outcome {
            Ok(result) => match self.is_complete(&result) {
                Ok(true) => match listed {
                    Some(collection) => self.take_page(now, id, collection, &result),
                    None => self.take_result(id, result),
                },
                Ok(false) => self.take_input_required(now, id, &result),
                Err(error) => self.finish(id, Err(error)),
            },
            // Some servers declare what they do not have.
            Err(error) if listed.is_some() && error.code == code::METHOD_NOT_FOUND => self.take_list(now, id),
            Err(error) if error.code == HEADER_MISMATCH && self.may_relist(id) => self.relist(now, id),
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
        let is_unknown_to_stateless = !(code::INVALID_PARAMS..=HEADER_MISMATCH).contains(&error.code);
        is_assumed && is_unknown_to_stateless && status.is_none_or(|status| status == 400)
    }

    /// Whether a result is the last word. The stateless era says so; the other era has only such results.
    fn is_complete(&self, result: &RawJson) -> Result<bool, Error> {
        let Phase::Ready { era: Era::Stateless, .. } = self.phase else { return Ok(true) };
        let kind = Object::parse(result.as_str()).ok().and_then(|object| object.string("resultType"));
        match kind.as_deref() {
            None | Some("complete") => Ok(true),
            Some("input_required") => Ok(false),
            Some(kind) => {
                let message = format!("the MCP server answered with a result of the unknown kind {kind:?}");
                Err(Error::new(ErrorKind::Protocol, message))
            }
        }
    }

    fn take_result(&mut self, id: OperationId, result: RawJson) {
        let is_call = matches!(self.operations.get(&id), Some(Operation { request: Request::CallTool { .. }, .. }));
        let outcome = match is_call {
            true => CallToolResult::read(&result).map(Reply::ToolResult),
            false => Ok(Reply::Value(result)),
        };
        self.finish(id, outcome);
    }

    fn take_page(&mut self, now: Millis, id: OperationId, collection: Collection, result: &RawJson) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        match operation.listing.take_page(collection, result) {
            Ok(Next::Page(cursor)) => {
                operation.cursor = Some(cursor);
                self.send_operation(now, id);
            }
            Ok(Next::End) => self.take_list(now, id),
            Ok(Next::Cut(reason)) => {
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
        if matches!(operation.request, Request::List(_)) {
            return self.finish(id, Ok(Reply::Entries(entries)));
        }
        let read = |entry: &RawJson| Tool::read(&Object::parse(entry.as_str()).ok()?).map(Arc::new);
        let mut tools: Vec<_> = entries.iter().filter_map(read).collect();
        let is_for_call = operation.relisting == Relisting::Listing;
        if is_for_call {
            operation.relisting = Relisting::Done;
            operation.cursor = None;
        }
        tools.retain(|tool| self.can_be_called(tool));
        self.tools = tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect();
        match is_for_call {
            true => self.send_operation(now, id),
            false => self.finish(id, Ok(Reply::Tools(tools))),
        }
    }

    /// Stateless servers over HTTP refuse calls whose annotated arguments are not repeated in headers.
    fn can_be_called(&mut self, tool: &Tool) -> bool {
        let is_stateless = matches!(self.phase, Phase::Ready { era: Era::Stateless, .. });
        if !is_stateless || self.options.transport != TransportKind::Http {
            return true;
        }
        let checked = header::mirrored_params(&tool.input_schema);
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
        let Some(wire) = self.operations.get_mut(&id).and_then(|operation| operation.wire.take()) else { return };
        self.pending.remove(&wire);
        // Over HTTP the stateless era cancels by closing the stream, and has no such notification.
        if let Phase::Ready { era, .. } = self.phase
            && (era != Era::Stateless || self.options.transport == TransportKind::Pipe)
        {
            let params = Params::new().with("requestId", &wire).with("reason", reason);
            self.send_notification(era, "notifications/cancelled", &params);
        }
        self.effects.push_back(Effect::Send(Outbound::Cancel { id: wire }));
    }

    pub(super) fn idle_timer(&mut self, now: Millis, id: OperationId) {
        // While a session is replaced its own limit counts, and a person may think as long as they like.
        let is_suspended = !matches!(self.phase, Phase::Ready { .. }) || !self.questions.is_empty();
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

fn list_params(cursor: Option<&str>) -> Params {
    cursor.map_or_else(Params::new, |cursor| Params::new().with("cursor", cursor))
}
