//! What a server asks of the user or the program: input forms, model calls, roots.
//!
//! In the handshake era a question is a request of the server; in the stateless era it comes inside a result, and the
//! answers go with the next try of the same request (revision 2026-07-28, "Multi round-trip requests").

use super::super::protocol::Era;
use super::super::transport::{Outbound, RequestId};
use super::{Client, Effect, OperationId, Phase};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Params, RpcError, code};
use crate::time::Millis;

/// The most questions that may be open at once: more than a person answers, fewer than fill the memory.
const QUESTION_LIMIT: usize = 32;

/// How often one request may come back with further questions. Real servers ask once or twice.
const ROUND_LIMIT: u32 = 10;

/// Names a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    asker: Asker,
    method: String,
    params: RawJson,
}

/// Where the answer goes.
#[derive(Debug)]
pub(super) enum Asker {
    /// Back as the response to this request.
    Request { id: RawJson, era: Era },
    /// Under this key into the next try of an operation.
    Operation { operation: OperationId, key: String },
}

/// The rounds of one operation.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    count: u32,
    open: usize,
    answers: Params,
    state: Option<RawJson>,
}

impl Rounds {
    /// The answers of the last round, once all are there.
    pub(super) fn answers(&self) -> &Params {
        &self.answers
    }

    /// Begins a round of so many questions; `false` when there were too many rounds or questions.
    pub(super) fn begin(&mut self, questions: usize) -> bool {
        *self = Self { count: self.count + 1, open: questions, ..Self::default() };
        self.count <= ROUND_LIMIT && questions <= QUESTION_LIMIT
    }

    /// Whether no question of the round is open.
    pub(super) const fn is_answered(&self) -> bool {
        self.open == 0
    }

    /// Forgets answers that were given. How often was asked still counts.
    pub(super) fn clear_answers(&mut self) {
        self.answers = Params::new();
    }

    /// Adds what the last round brought to the parameters of the next try.
    pub(super) fn add_to(&self, mut params: Params) -> Params {
        if !self.answers.is_empty() {
            params.set("inputResponses", &self.answers);
        }
        if let Some(state) = &self.state {
            params.set("requestState", state);
        }
        params
    }
}

impl Client {
    /// A request of the server.
    pub(super) fn take_request(&mut self, id: RawJson, method: String, params: Option<RawJson>) {
        let era = match self.phase {
            Phase::Ready { era: Era::Stateless, .. } => {
                return self
                    .warn(format!("the MCP server sent the request {method}, for which its revision has no place"));
            }
            Phase::Ready { era, .. } => era,
            // A server may ping before the connection stands.
            _ => Era::Handshake(super::super::protocol::Revision::LATEST),
        };
        let outcome = match method.as_str() {
            "ping" => Ok(Params::new().to_raw()),
            _ if !self.offers(&method) => {
                Err(RpcError::new(code::METHOD_NOT_FOUND, format!("this client does not offer {method}")))
            }
            // Revision 2025-11-25, "Elicitation" and "Sampling", names the number.
            _ if !self.offers_part(&method, params.as_ref()) => {
                let message = format!("this client offers {method}, but not in this mode, or not with tools");
                Err(RpcError::new(code::INVALID_PARAMS, message))
            }
            _ if self.questions.len() >= QUESTION_LIMIT => {
                Err(RpcError::new(code::INTERNAL_ERROR, "too many questions are open; wait for answers"))
            }
            _ => return self.ask(Asker::Request { id, era }, method, params),
        };
        self.respond(&id, era, &outcome);
    }

    /// The server no longer wants an answer, or ends the subscription.
    pub(super) fn take_cancellation(&mut self, now: Millis, params: Option<&RawJson>) {
        let wanted = params.and_then(|params| Object::parse(params.as_str()).ok()?.raw("requestId"));
        if let Some(id) = wanted.as_ref().and_then(RequestId::read) {
            self.server_stopped_listening(now, &id);
        }
        self.withdraw_questions(&|asker| matches!(asker, Asker::Request { id, .. } if Some(id) == wanted.as_ref()));
    }

    /// A result that asks for input first.
    pub(super) fn take_input_required(&mut self, now: Millis, operation: OperationId, result: &RawJson) {
        let object = Object::parse(result.as_str()).unwrap_or_default();
        let questions = read_questions(&object);
        let is_offered =
            |method: &str, params: Option<&RawJson>| self.offers(method) && self.offers_part(method, params);
        if let Some((_, method, _)) = questions.iter().find(|(_, method, params)| !is_offered(method, params.as_ref()))
        {
            let message = format!("the MCP server asks for {method}, which this client does not offer");
            return self.finish(operation, Err(Error::new(ErrorKind::Protocol, message)));
        }
        let state = object.raw("requestState");
        let is_empty = questions.is_empty() && state.is_none();
        let Some(rounds) = self.rounds(operation) else { return };
        let count = rounds.count + 1;
        *rounds = Rounds { count, open: questions.len(), answers: Params::new(), state };
        if is_empty || count > ROUND_LIMIT || questions.len() + self.questions.len() > QUESTION_LIMIT {
            let message = "the MCP server asks for input again and again, or for too much, or for nothing";
            return self.finish(operation, Err(Error::new(ErrorKind::Protocol, message)));
        }
        if questions.is_empty() {
            return self.send_operation(now, operation);
        }
        for (key, method, params) in questions {
            self.ask(Asker::Operation { operation, key }, method, params);
        }
    }

    pub(super) fn ask(&mut self, asker: Asker, method: String, params: Option<RawJson>) {
        let question = QuestionId(self.next_question);
        self.next_question += 1;
        let params = params.unwrap_or_else(|| Params::new().to_raw());
        self.effects.push_back(Effect::Ask { question, method: method.clone(), params: params.clone() });
        self.questions.insert(question, Question { asker, method, params });
    }

    /// An answer; one to a question that was withdrawn is ignored.
    pub(super) fn take_answer_to_question(
        &mut self,
        now: Millis,
        question: QuestionId,
        outcome: Result<RawJson, RpcError>,
    ) {
        let Some(Question { asker, method, params }) = self.questions.remove(&question) else { return };
        let outcome = outcome.map(|answer| match method.as_str() {
            "elicitation/create" => with_defaults(&params, answer),
            _ => answer,
        });
        match (asker, outcome) {
            (Asker::Request { id, era }, outcome) => self.respond(&id, era, &outcome),
            (Asker::Operation { operation, .. }, Err(error)) => {
                let message = format!("the question of the MCP server was not answered: {}", error.message);
                self.finish(operation, Err(Error::new(ErrorKind::Aborted, message)));
            }
            (Asker::Operation { operation, key }, Ok(answer)) => {
                let Some(rounds) = self.rounds(operation) else { return };
                rounds.open = rounds.open.saturating_sub(1);
                if self.take_page_decision(now, operation, &answer).is_some() {
                    return;
                }
                let Some(rounds) = self.rounds(operation) else { return };
                rounds.answers.set(&key, &answer);
                if rounds.open == 0 {
                    self.send_operation(now, operation);
                }
            }
        }
    }

    /// Whether the client declared that it answers this.
    fn offers(&self, method: &str) -> bool {
        let capability = match method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => return false,
        };
        self.options.capabilities.member(capability).is_some()
    }

    /// Whether the client declared that it shows pages.
    pub(super) fn offers_pages(&self) -> bool {
        self.declares("elicitation", "url")
    }

    /// Whether the client declared the part of a capability that this question wants. People are asked by a form where neither
    /// the question nor the client names a mode; models are given tools only where the client said that it can.
    fn offers_part(&self, method: &str, params: Option<&RawJson>) -> bool {
        let params = params.and_then(|params| Object::parse(params.as_str()).ok()).unwrap_or_default();
        match (method, params.string("mode").as_deref()) {
            ("elicitation/create", Some("url")) => self.offers_pages(),
            ("elicitation/create", _) => self.declares("elicitation", "form") || !self.offers_pages(),
            ("sampling/createMessage", _) => {
                let wants_tools = params.raw("tools").is_some() || params.raw("toolChoice").is_some();
                !wants_tools || self.declares("sampling", "tools")
            }
            _ => true,
        }
    }

    fn declares(&self, capability: &str, part: &str) -> bool {
        let declared = self.options.capabilities.member(capability);
        declared.is_some_and(|raw| Object::parse(raw.as_str()).is_ok_and(|object| object.object(part).is_some()))
    }

    fn respond(&mut self, id: &RawJson, era: Era, outcome: &Result<RawJson, RpcError>) {
        let message = jsonrpc::response(id, outcome);
        self.effects.push_back(Effect::Send(Outbound::Notify { message, era, headers: Vec::new() }));
    }

    /// Withdraws the questions of an operation that is over.
    pub(super) fn withdraw_questions_of(&mut self, wanted: OperationId) {
        self.withdraw_questions(&|asker| matches!(asker, Asker::Operation { operation, .. } if *operation == wanted));
    }

    /// Withdraws all questions: nobody would hear the answers.
    pub(super) fn withdraw_all_questions(&mut self) {
        self.withdraw_questions(&|_| true);
    }

    fn withdraw_questions(&mut self, is_over: &dyn Fn(&Asker) -> bool) {
        let effects = &mut self.effects;
        self.questions.retain(|id, question| {
            let is_over = is_over(&question.asker);
            if is_over {
                effects.push_back(Effect::Withdraw(*id));
            }
            !is_over
        });
    }
}

/// Key, method and parameters of each question in a result.
fn read_questions(result: &Object<'_>) -> Vec<(String, String, Option<RawJson>)> {
    let requests = result.object("inputRequests").unwrap_or_default();
    let read = |(key, raw): (&str, &serde_json::value::RawValue)| {
        let request = Object::parse(raw.get()).ok()?;
        Some((key.to_owned(), request.string("method")?, request.raw("params")))
    };
    requests.iter().filter_map(read).collect()
}

/// An accepted form with the defaults of its schema where the answer says nothing (revision 2025-11-25, "Elicitation").
fn with_defaults(params: &RawJson, answer: RawJson) -> RawJson {
    let (Ok(params), Ok(members)) = (Object::parse(params.as_str()), Params::from_object(&answer)) else {
        return answer;
    };
    let is_accepted = members.member("action").is_some_and(|action| action.as_str() == "\"accept\"");
    let Some(properties) = params.object("requestedSchema").and_then(|schema| schema.object("properties")) else {
        return answer;
    };
    if !is_accepted {
        return answer;
    }
    let mut content =
        members.member("content").and_then(|content| Params::from_object(content).ok()).unwrap_or_default();
    for (name, schema) in properties.iter() {
        let default = Object::parse(schema.get()).ok().and_then(|schema| schema.raw("default"));
        if let Some(default) = default.filter(|_| content.member(name).is_none()) {
            content.set(name, &default);
        }
    }
    members.with("content", &content).to_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[test]
    fn accepted_forms_are_completed_with_defaults() {
        let params = raw(r#"{"requestedSchema":{"properties":{"a":{"default":1},"b":{"default":"x"},"c":{}}}}"#);
        let completed = with_defaults(&params, raw(r#"{"action":"accept","content":{"a":2}}"#));
        assert_eq!(completed.as_str(), r#"{"action":"accept","content":{"a":2,"b":"x"}}"#);
        let declined = with_defaults(&params, raw(r#"{"action":"decline"}"#));
        assert_eq!(declined.as_str(), r#"{"action":"decline"}"#);
    }
}
