//! What OpenAI's two protocols share.

use super::body::described;
use super::output::OutputStyle;
use super::request::OutputSchema;
use crate::json::schema::Dialect;

/// OpenAI's models from `gpt-4o` on are held to a schema (guide "Structured Outputs", 2026-02).
pub(super) fn style_of_openai(model: &str) -> OutputStyle {
    if model == "gpt-4" || ["gpt-3", "gpt-4-"].iter().any(|prefix| model.starts_with(prefix)) {
        OutputStyle::Tool { is_demanded: true }
    } else {
        OutputStyle::Schema
    }
}

impl OutputSchema {
    /// The members that OpenAI's two protocols have for it. A schema that strict mode has no words for is sent as it is,
    /// for the model to follow as well as it can.
    pub(super) fn members(&self) -> String {
        let strict = self.lowered(Dialect::OpenAi);
        let members = described(&self.name, self.description.as_deref());
        let schema = strict.as_ref().unwrap_or(&self.schema).as_str();
        format!("{members}\"schema\":{schema},\"strict\":{}", strict.is_some())
    }
}
