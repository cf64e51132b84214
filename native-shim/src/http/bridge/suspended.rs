//! Requests whose callers were sent away with a question of the child, until they come back with the answer.

use std::collections::BTreeMap;

use crablet::Millis;
use crablet::json::RawJson;
use crablet::jsonrpc::{Params, RpcError};

use super::open_calls::OpenCall;
use super::{Call, Exchange, wire};

/// What the child has asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The child's id.
    pub(super) id: RawJson,
    pub(super) method: String,
    pub(super) params: Params,
}

/// A request that the child is at work on while its caller is asked.
#[derive(Debug)]
pub(super) struct SuspendedCall {
    pub(super) call: OpenCall,
    /// What the caller can be asked.
    pub(super) capabilities: Params,
    /// The tool, prompt or resource.
    pub(super) subject: Option<String>,
    /// The questions, by the keys under which the caller answers.
    pub(super) questions: BTreeMap<String, Question>,
    /// The answer, if the child did not wait.
    pub(super) outcome: Option<Result<RawJson, RpcError>>,
    /// Grows with every time that the caller is sent away, so that what it keeps is good once.
    round: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The child may ask more at once: the caller is told then.
    Gathering(Millis),
    /// The caller is away, until then at most.
    Away(Millis),
}

/// What has become due.
#[derive(Debug)]
pub(super) enum Due {
    /// The caller of this request is to be sent away with this result.
    Ask(OpenCall, Params),
    /// The caller of this request does not come back.
    Lost(u64, SuspendedCall),
}

/// The suspended requests, by their numbers.
#[derive(Debug)]
pub(super) struct Suspended {
    /// Marks the states of this child.
    nonce: String,
    rounds: u64,
    calls: BTreeMap<u64, SuspendedCall>,
}

impl Suspended {
    pub(super) fn new(nonce: &str) -> Self {
        Self { nonce: nonce.to_owned(), rounds: 0, calls: BTreeMap::new() }
    }

    /// Suspends a request with what its caller is to be asked.
    pub(super) fn insert(
        &mut self,
        number: u64,
        (call, capabilities, subject): (OpenCall, Params, Option<String>),
        questions: BTreeMap<String, Question>,
        now: Millis,
    ) {
        self.rounds += 1;
        let stage = Stage::Gathering(Millis(now.0.saturating_add(GATHERING)));
        let suspended =
            SuspendedCall { call, capabilities, subject, questions, outcome: None, round: self.rounds, stage };
        self.calls.insert(number, suspended);
    }

    /// Takes out the request of an exchange whose caller has not been sent away yet.
    pub(super) fn take_waiting(&mut self, exchange: Exchange) -> Option<(u64, SuspendedCall)> {
        let is_it = |call: &SuspendedCall| call.call.exchange == exchange && matches!(call.stage, Stage::Gathering(_));
        let number = self.calls.iter().find(|(_, call)| is_it(call)).map(|(number, _)| *number)?;
        Some((number, self.calls.remove(&number)?))
    }

    /// The child answered a suspended request. Gives the request if its caller still waits.
    pub(super) fn returned(&mut self, number: u64, outcome: Result<RawJson, RpcError>) -> Option<OpenReply> {
        let suspended = self.calls.get_mut(&number)?;
        if matches!(suspended.stage, Stage::Gathering(_)) {
            return self.calls.remove(&number).map(|suspended| (suspended.call, outcome));
        }
        suspended.outcome = Some(outcome);
        None
    }

    /// The request that a call comes back for, if it is the same one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn come_back(&mut self, call: &Call) -> Result<(u64, SuspendedCall), RpcError> {
        let refused = |message: &str| RpcError::new(crablet::jsonrpc::code::INVALID_PARAMS, message);
        let state = wire::text(&call.params, "requestState").unwrap_or_default();
        let numbers = state.strip_prefix(&self.nonce).and_then(|rest| rest.strip_prefix('.')?.split_once('.'));
        let numbers = numbers.and_then(|(number, round)| Some((number.parse().ok()?, round.parse().ok()?)));
        let (number, round): (u64, u64) = numbers.ok_or_else(|| refused("the requestState is none of this server"))?;
        let is_away = |call: &&SuspendedCall| call.round == round && matches!(call.stage, Stage::Away(_));
        let suspended = self.calls.get(&number).filter(is_away).ok_or_else(|| {
            refused("what the requestState belongs to has ended, or waited for too long: send the request without it")
        })?;
        if suspended.call.method != call.method || suspended.subject != subject(call) {
            return Err(refused("the requestState belongs to another request"));
        }
        self.calls.remove(&number).map(|suspended| (number, suspended)).ok_or_else(|| refused("it has just ended"))
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut SuspendedCall> {
        self.calls.get_mut(&number)
    }

    /// The newest request whose caller can be asked this.
    pub(super) fn newest_for(&self, method: &str, params: &Params) -> Option<u64> {
        let can =
            |call: &SuspendedCall| call.outcome.is_none() && wire::can_be_asked(&call.capabilities, method, params);
        self.calls.iter().rev().find(|(_, call)| can(call)).map(|(number, _)| *number)
    }

    /// Forgets a question that the child takes back.
    pub(super) fn retract(&mut self, id: &RawJson) {
        for call in self.calls.values_mut() {
            call.questions.retain(|_, question| question.id != *id);
        }
    }

    /// When the next thing becomes due.
    pub(super) fn due(&self) -> Option<Millis> {
        let at = |call: &SuspendedCall| match call.stage {
            Stage::Gathering(at) | Stage::Away(at) => at,
        };
        self.calls.values().map(at).min()
    }

    /// Takes one thing that is due: a caller to be told, one that stays away for too long, or where there are too many of
    /// those, the oldest.
    pub(super) fn take_due(&mut self, now: Millis) -> Option<Due> {
        let gathered = |call: &SuspendedCall| matches!(call.stage, Stage::Gathering(at) if at <= now);
        let late = |call: &SuspendedCall| matches!(call.stage, Stage::Away(until) if until <= now);
        if let Some((number, suspended)) = self.calls.iter_mut().find(|(_, call)| gathered(call)) {
            suspended.stage = Stage::Away(Millis(now.0.saturating_add(PATIENCE)));
            let mut requests = Params::new();
            for (key, question) in &suspended.questions {
                let request = Params::new().with("method", &question.method).with("params", &question.params);
                requests.set(key, &request);
            }
            let state = format!("{}.{number}.{}", self.nonce, suspended.round);
            let result = Params::new().with("resultType", "input_required").with("inputRequests", &requests);
            return Some(Due::Ask(suspended.call.clone(), result.with("requestState", &state)));
        }
        let is_surplus = self.calls.len() > MAX_SUSPENDED;
        let is_away = |call: &SuspendedCall| matches!(call.stage, Stage::Away(_));
        let is_lost = |(_, call): &(&u64, &SuspendedCall)| late(call) || (is_surplus && is_away(call));
        let number = self.calls.iter().find(is_lost).map(|(number, _)| *number)?;
        Some(Due::Lost(number, self.calls.remove(&number)?))
    }

    /// Ends all of them. Gives those whose callers still wait.
    pub(super) fn end(&mut self) -> Vec<OpenCall> {
        let waits = |call: &SuspendedCall| matches!(call.stage, Stage::Gathering(_));
        std::mem::take(&mut self.calls).into_values().filter(waits).map(|suspended| suspended.call).collect()
    }
}

/// A request, and what it is answered.
pub(super) type OpenReply = (OpenCall, Result<RawJson, RpcError>);

/// What a call is about: its tool, prompt or resource.
pub(super) fn subject(call: &Call) -> Option<String> {
    wire::text(&call.params, "name").or_else(|| wire::text(&call.params, "uri"))
}

/// How long further questions are waited for, in milliseconds: a child that asks several asks them at once.
const GATHERING: u64 = 20;

/// How long a caller may take to come back with its answers, in milliseconds: a person may have to be asked.
const PATIENCE: u64 = 10 * 60_000;

/// How many callers of one child may be away at the same time.
const MAX_SUSPENDED: usize = 64;
