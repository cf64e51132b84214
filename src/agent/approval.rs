//! What an approval is bound to.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::call::{Call, Stage};
use super::context::Context;
use super::definition::ToolDefinition;
use super::effect::Effect;
use super::event::EventKind;
use super::input::{Approval, InputError};
use super::timers::Purpose;
use crate::json::RawJson;

/// Names the exact text of an input, so that a decision which travelled holds for no other input than the one it was made
/// about: a hook that is asked again after a restore may change it.
///
/// 128 bits of FNV-1a, written as 32 hexadecimal digits. It tells inputs apart; it is no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputHash(u128);

impl InputHash {
    /// The hash of an input.
    pub fn of(input: &RawJson) -> Self {
        let add = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        Self(input.as_str().bytes().fold(OFFSET, add))
    }

    /// Reads 32 hexadecimal digits; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_plain.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for InputHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Serialize for InputHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Call {
    /// Asks a person, by the time the policy gives. After a restore that time is set already.
    pub(super) fn ask_approval(&mut self, context: &mut Context<'_>, tool: &Arc<ToolDefinition>, input: RawJson) {
        let call_id = self.call.call_id.clone();
        let input_hash = InputHash::of(&input);
        context.emit(EventKind::ApprovalRequest {
            call_id: call_id.clone(),
            tool_name: tool.name.clone(),
            input: input.clone(),
            input_hash,
        });
        context.perform(Effect::AskApproval { call_id, tool: tool.clone(), input: input.clone() });
        self.stage = Stage::AwaitingApproval { input };
        let purpose = Purpose::Approval(self.call.call_id.clone());
        if let Some(limit) = context.conversation.agent.policy.approval_timeout
            && context.timers.deadline(&purpose).is_none()
        {
            context.set_timer(purpose, limit);
        }
    }

    /// A person decided.
    pub(super) fn decided(
        &mut self,
        context: &mut Context<'_>,
        decision: Approval,
        input_hash: Option<InputHash>,
    ) -> Result<(), InputError> {
        let Stage::AwaitingApproval { input } = &self.stage else { return Err(InputError::Unexpected) };
        if input_hash.is_some_and(|hash| hash != InputHash::of(input)) {
            return Err(InputError::OtherInput);
        }
        let input = input.clone();
        self.answered(context, decision == Approval::Allow);
        match decision {
            Approval::Allow => self.stage = Stage::Ready { input },
            Approval::Deny { reason } => {
                let why = reason.map(|reason| format!(" Reason: {reason}")).unwrap_or_default();
                let text = format!("The user did not allow this call of {}; it was not run.{why}", self.call.tool_name);
                self.refuse(context, text);
            }
        }
        Ok(())
    }

    /// Nobody decided in time.
    pub(super) fn approval_expired(&mut self, context: &mut Context<'_>) {
        if matches!(self.stage, Stage::AwaitingApproval { .. }) {
            self.answered(context, false);
            let limit = context.conversation.agent.policy.approval_timeout.unwrap_or_default();
            let text = format!(
                "Nobody decided within {limit} ms whether this call of {} may run, so it was not run.",
                self.call.tool_name
            );
            self.refuse(context, text);
        }
    }

    fn answered(&self, context: &mut Context<'_>, allowed: bool) {
        context.clear_timer(&Purpose::Approval(self.call.call_id.clone()));
        context.emit(EventKind::ApprovalResponse { call_id: self.call.call_id.clone(), allowed });
    }
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a_and_reads_back() {
        let hash = |text: &str| InputHash::of(&RawJson::parse(text).unwrap());
        assert_eq!(hash("0").to_string(), "d228cb69401a8caf78912b704e4a4f8f");
        assert_ne!(hash(r#"{"a":1}"#), hash(r#"{"a": 1}"#), "the exact text");
        let text = hash("{}").to_string();
        assert_eq!(InputHash::parse(&text), Some(hash("{}")));
        assert_eq!(InputHash::parse("+0000000000000000000000000000000"), None);
    }
}
