use std::collections::BTreeMap;

use crablet::json::RawJson;
use crablet::jsonrpc::{self, Params};
use crablet::mcp::server::LogLevel;

use super::wire::{self, LOG_LEVEL_KEY};
use super::{Call, Exchange, Outputs};

/// A request of a caller that the child is at work on.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) exchange: Exchange,
    /// The caller's own id.
    pub(super) id: RawJson,
    pub(super) method: String,
    /// The token under which the caller wants to hear of progress.
    pub(super) progress_token: Option<RawJson>,
    /// From which level on the caller wants to hear log messages (2026-07-28).
    pub(super) log_level: Option<LogLevel>,
}

/// The requests that a child is at work on, by the numbers that they have there. Callers choose their ids and progress
/// tokens by themselves, so that two may choose the same.
#[derive(Debug)]
pub(super) struct OpenCalls {
    next: u64,
    calls: BTreeMap<u64, OpenCall>,
}

impl Default for OpenCalls {
    fn default() -> Self {
        Self { next: 1, calls: BTreeMap::new() }
    }
}

impl OpenCall {
    pub(super) fn of(call: &Call) -> Self {
        let meta = wire::members(&call.params, "_meta");
        let log_level = wire::text(&meta, LOG_LEVEL_KEY).and_then(|level| LogLevel::from_name(&level));
        Self {
            exchange: call.exchange,
            id: call.id.clone(),
            method: call.method.clone(),
            progress_token: meta.member("progressToken").cloned(),
            log_level,
        }
    }
}

impl OpenCalls {
    /// A number for a request to the child that no other has had.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    pub(super) fn insert(&mut self, number: u64, call: OpenCall) {
        self.calls.insert(number, call);
    }

    pub(super) fn get(&self, number: u64) -> Option<&OpenCall> {
        self.calls.get(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<OpenCall> {
        self.calls.remove(&number)
    }

    pub(super) fn remove_exchange(&mut self, exchange: Exchange) -> Option<(u64, OpenCall)> {
        let number = self.calls.iter().find(|(_, call)| call.exchange == exchange).map(|(number, _)| *number)?;
        Some((number, self.calls.remove(&number)?))
    }

    /// The number of a request by its caller's id.
    pub(super) fn number_of_id(&self, id: &RawJson) -> Option<u64> {
        self.calls.iter().find(|(_, call)| call.id == *id).map(|(number, _)| *number)
    }

    /// The open requests, the newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = (u64, &OpenCall)> {
        self.calls.iter().rev().map(|(number, call)| (*number, call))
    }

    /// Passes on a progress report to the request it is about.
    pub(super) fn progress(&self, params: &Params, outputs: &mut Outputs) {
        let call = wire::number_in(params, "progressToken").and_then(|number| self.get(number));
        let Some(OpenCall { exchange, progress_token: Some(token), .. }) = call else { return };
        let params = params.clone().with("progressToken", token);
        outputs.caller(Some(*exchange), jsonrpc::notification(wire::PROGRESS, &params));
    }

    /// Passes on a log message to the newest request whose caller wants it: on a pipe, nothing says of which request a
    /// message is.
    pub(super) fn log(&self, params: &Params, outputs: &mut Outputs) {
        let level = wire::text(params, "level").and_then(|level| LogLevel::from_name(&level));
        let wants = |call: &&OpenCall| call.log_level.zip(level).is_some_and(|(least, level)| level >= least);
        if let Some(call) = self.calls.values().rev().find(wants) {
            outputs.caller(Some(call.exchange), jsonrpc::notification(wire::MESSAGE, params));
        }
    }

    /// Answers everything that is open, since the child has ended.
    pub(super) fn end(&mut self, sentence: &str, outputs: &mut Outputs) {
        for call in std::mem::take(&mut self.calls).into_values() {
            outputs.answer(call.exchange, wire::child_ended(&call.id, sentence));
        }
    }
}
