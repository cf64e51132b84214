use super::super::protocol::Era;
use super::{CallNumber, Outcome, Outgoing, PendingCall, Server, render};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Params, RequestId, RpcError};

/// What a client is asked for while a call waits.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequest {
    method: &'static str,
    params: RawJson,
}

/// A call that waits for a client of the handshake era.
#[derive(Debug)]
pub(super) struct Asked {
    call: PendingCall,
    /// The questions without an answer, by the id they were sent under.
    open: Vec<(u64, String)>,
}

impl InputRequest {
    /// Asks the user to fill in a form, which a flat JSON Schema of an object describes.
    pub fn elicit(message: &str, schema: &RawJson) -> Self {
        let params = Params::new().with("message", message).with("requestedSchema", schema);
        Self { method: "elicitation/create", params: params.to_raw() }
    }

    /// Asks the user to open an address and do something there. The answer says that the user agreed, not that it is done.
    pub fn elicit_url(message: &str, url: &str, elicitation_id: &str) -> Self {
        let params = Params::new().with("mode", "url").with("message", message).with("url", url);
        Self { method: "elicitation/create", params: params.with("elicitationId", elicitation_id).to_raw() }
    }

    /// Asks the client's model. The parameters are those of `sampling/createMessage`.
    pub fn sample(params: RawJson) -> Self {
        Self { method: "sampling/createMessage", params }
    }

    /// Asks which folders the client works in.
    pub fn roots() -> Self {
        Self { method: "roots/list", params: Params::new().to_raw() }
    }

    /// The capability that a client needs to be asked for this.
    pub(super) fn capability(&self) -> &'static str {
        match self.method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            _ => "roots",
        }
    }

    pub(super) fn is_offered(&self, capabilities: &Params) -> bool {
        let Some(offered) = capabilities.member(self.capability()) else { return false };
        let is_url = self.method == "elicitation/create"
            && Object::parse(self.params.as_str()).is_ok_and(|params| params.string("mode").as_deref() == Some("url"));
        match Object::parse(offered.as_str()) {
            Ok(offered) if is_url => offered.get("url").is_some(),
            // A form is offered unless only addresses are.
            Ok(offered) => offered.get("url").is_none() || offered.get("form").is_some(),
            Err(_) => false,
        }
    }

    /// As it stands in a result of the stateless era.
    fn to_params(&self) -> Params {
        Params::new().with("method", self.method).with("params", &self.params)
    }
}

impl Server {
    /// Asks the client for what a call needs, in the way of its era.
    pub(super) fn ask(
        &mut self,
        call: PendingCall,
        requests: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> Vec<String> {
        if let Some((_, missing)) = requests.iter().find(|(_, request)| !call.can_ask(request)) {
            return vec![self.cannot_ask(&call, missing)];
        }
        if call.era == Era::Stateless {
            let mut result = Params::new().with("resultType", "input_required");
            if !requests.is_empty() {
                let asked =
                    requests.iter().fold(Params::new(), |asked, (key, request)| asked.with(key, &request.to_params()));
                result.set("inputRequests", &asked);
            }
            if let Some(state) = &state {
                result.set("requestState", state);
            }
            return vec![self.close(call, Ok(result.to_raw()))];
        }
        let mut call = call;
        call.request_state = state;
        call.input_responses = Params::new();
        let mut lines = Vec::new();
        let mut open = Vec::new();
        for (key, request) in requests {
            let id = self.next_question;
            self.next_question += 1;
            let params = Params::from_object(&request.params).unwrap_or_default();
            let message = jsonrpc::request(&RequestId::Text(question_id(id)), request.method, &params);
            lines.push(render::line(&message));
            open.push((id, key));
        }
        if open.is_empty() {
            let error = Outcome::Failed("the server asked for nothing".to_owned());
            return vec![self.finished(call, error)];
        }
        self.asked.insert(call.number, Asked { call, open });
        lines
    }

    /// The client answered a question; the last answer brings the call again.
    pub(super) fn answered(&mut self, id: Option<&RequestId>, outcome: Result<RawJson, RpcError>) -> Outgoing {
        let Some(RequestId::Text(id)) = id else { return Outgoing::None };
        let is_asked = |asked: &Asked| asked.open.iter().position(|(open, _)| question_id(*open) == *id);
        let found = self.asked.iter_mut().find_map(|(number, asked)| Some((*number, is_asked(asked)?, asked)));
        let Some((number, position, asked)) = found else { return Outgoing::None };
        let (_, key) = asked.open.remove(position);
        match outcome {
            Ok(answer) => asked.call.input_responses.set(&key, &answer),
            Err(error) => {
                let Some(asked) = self.asked.remove(&number) else { return Outgoing::None };
                let reason = format!("the client did not answer what it was asked: {}", error.message);
                return Outgoing::Reply(self.finished(asked.call, Outcome::Failed(reason)));
            }
        }
        if !asked.open.is_empty() {
            return Outgoing::None;
        }
        match self.asked.remove(&number) {
            Some(asked) => self.gated(asked.call),
            None => Outgoing::None,
        }
    }

    /// Forgets what was asked for a call that is cancelled.
    pub(super) fn forget_asked(&mut self, number: CallNumber) {
        self.asked.remove(&number);
    }

    fn cannot_ask(&mut self, call: &PendingCall, missing: &InputRequest) -> String {
        let capability = missing.capability();
        let message =
            format!("this needs a client that can be asked ({capability}), which this one did not say it can");
        if call.era != Era::Stateless {
            return self.finished(call.clone(), Outcome::Failed(message));
        }
        let required = Params::new().with(capability, &Params::new());
        let data = Params::new().with("requiredCapabilities", &required).to_raw();
        let error = RpcError { code: super::dispatch::MISSING_CAPABILITY, message, data: Some(data) };
        self.close(call.clone(), Err(error))
    }
}

/// Ids of this side are texts with a prefix, so that no client takes them for its own.
fn question_id(number: u64) -> String {
    format!("server-{number}")
}
