//! What Anthropic and Bedrock have in common: what the names of Claude's models tell, and how they are asked to reason
//! (platform.claude.com/docs, "Extended thinking", "Adaptive thinking" and "Effort").

use std::borrow::Cow;

use super::body::{Members, invalid};
use super::request::{Effort, Reasoning, RequestOptions, ToolChoice};
use crate::error::Error;
use crate::json::{Object, add_member, filled, quoted, quoted_list};

/// The fewest tokens that may be set aside for reasoning.
const MIN_BUDGET: u64 = 1024;

/// The members of the request that ask for reasoning, and how many tokens they set aside for it.
pub(super) fn thinking(model: &str, options: &RequestOptions) -> Result<(Members, u64), Error> {
    let Some(reasoning) = options.reasoning else { return Ok((Vec::new(), 0)) };
    if reasoning == Reasoning::Off {
        return Ok((vec![("thinking", r#"{"type":"disabled"}"#.to_owned())], 0));
    }
    if matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
        return Err(invalid("Claude cannot be made to call a tool while it reasons; leave one of the two out"));
    }
    let version = version(model);
    // The first one of these still takes a number.
    if version < ADAPTIVE || (version == ADAPTIVE && matches!(reasoning, Reasoning::Budget(_))) {
        let budget = budget(model, reasoning, options.max_tokens)?;
        let thinking = filled(r#"{"type":"enabled","budget_tokens":@}"#, &[&budget.to_string()]);
        return Ok((vec![("thinking", thinking)], budget));
    }
    // Those after it hide what they reason unless they are asked.
    let thinking =
        if version > ADAPTIVE { r#"{"type":"adaptive","display":"summarized"}"# } else { r#"{"type":"adaptive"}"# };
    let config = filled(r#"{"effort":$}"#, &[effort(reasoning, version)]);
    Ok((vec![("thinking", thinking.to_owned()), ("output_config", config)], 0))
}

/// From this version on, models choose themselves how much to reason and take an effort; older ones take a number of tokens.
const ADAPTIVE: (u32, u32) = (4, 6);

/// Whether a model can be held to a schema: from 4.5 on (guides "Structured outputs" of Anthropic and "Structured output" of
/// Amazon Bedrock, 2026-06).
pub(super) fn is_held_to_schemas(model: &str) -> bool {
    version(model) >= (4, 5)
}

/// The first two numbers of a model's name that are no date, such as 4 and 5 of `us.anthropic.claude-sonnet-4-5-v1:0`.
fn version(model: &str) -> (u32, u32) {
    // Other models behind the same protocol number theirs in another way.
    let model = if model.contains("claude") { model } else { "" };
    let numbers = model.split('-').filter_map(|word| word.parse::<u32>().ok());
    let mut numbers = numbers.filter(|number| *number < 100);
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn effort(reasoning: Reasoning, version: (u32, u32)) -> &'static str {
    match reasoning {
        Reasoning::Effort(Effort::Minimal) => "low",
        Reasoning::Effort(Effort::ExtraHigh) if version == ADAPTIVE => "high",
        other => other.word(),
    }
}

/// The tokens to reason with, which must leave some for the answer. A word gives way to the limit, a number does not.
fn budget(model: &str, reasoning: Reasoning, max_tokens: Option<u64>) -> Result<u64, Error> {
    let tokens = reasoning.tokens();
    let (tokens, limit) = match reasoning {
        Reasoning::Effort(_) => {
            let limit = max_tokens.unwrap_or_else(|| default_limit(model));
            (tokens.min(limit / 4 * 3), limit)
        }
        _ => (tokens, max_tokens.unwrap_or(u64::MAX)),
    };
    if tokens < MIN_BUDGET || tokens >= limit {
        return Err(invalid(format!(
            "Claude reasons with {MIN_BUDGET} tokens or more, and fewer than the answer may have: {tokens} of at most \
             {limit} are not possible"
        )));
    }
    Ok(tokens)
}

/// The most tokens that an answer may have where the caller gave no limit: what every model of the generation takes, and
/// room for an answer behind the reasoning.
pub(super) fn limit(model: &str, budget: u64) -> u64 {
    default_limit(model).max(budget.saturating_add(ROOM))
}

/// The tokens that are left for an answer behind reasoning.
const ROOM: u64 = 8000;

fn default_limit(model: &str) -> u64 {
    match version(model) {
        (3, 7) | (4.., _) => 32_000,
        (3, 5) | (0, _) => 8192,
        _ => 4096,
    }
}

/// The schema of a tool's input with the members whose names Claude's services take: letters, digits, `_`, `.` and `-`, at most
/// 64. They refuse the whole request for any other, such as `$top` or `filter[id]`. Those are told in the description, and the
/// model can give them all the same, since no input is held to its schema.
pub(super) fn with_plain_names(schema: &str) -> Cow<'_, str> {
    const MAX_NAME: usize = 64;
    let is_plain = |name: &str| {
        let is_plain_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain_byte)
    };
    let root = Object::parse(schema).unwrap_or_default();
    let properties = root.object("properties").unwrap_or_default();
    if properties.iter().all(|(name, _)| is_plain(name)) {
        return Cow::Borrowed(schema);
    }
    let (mut kept, mut told) = ("{}".to_owned(), "{}".to_owned());
    for (name, property) in properties.iter() {
        add_member(if is_plain(name) { &mut kept } else { &mut told }, name, property.get());
    }
    let required: Vec<String> = root.read("required").unwrap_or_default();
    let (required, required_told): (Vec<_>, Vec<_>) = required.into_iter().partition(|name| is_plain(name));
    let mut description = root.string("description").map(|text| format!("{text}\n")).unwrap_or_default();
    description.push_str(&format!("Takes these properties too, under exactly these names: {told}"));
    if !required_told.is_empty() {
        description.push_str(&format!(" Of them these are required: {}", quoted_list(&required_told)));
    }
    let mut lowered = "{}".to_owned();
    for (keyword, value) in root.iter() {
        match keyword {
            "properties" => add_member(&mut lowered, keyword, &kept),
            "required" if !required.is_empty() => add_member(&mut lowered, keyword, &quoted_list(&required)),
            "required" | "description" | "additionalProperties" => {}
            _ => add_member(&mut lowered, keyword, value.get()),
        }
    }
    add_member(&mut lowered, "description", &quoted(&description));
    Cow::Owned(lowered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_with_other_names_are_told_in_words() {
        let plain = r#"{"type":"object","properties":{"a.b-c_1":{}},"required":["a.b-c_1"]}"#;
        assert!(matches!(with_plain_names(plain), Cow::Borrowed(same) if same == plain));
        // ComposioHQ/composio#3500, beautyfree/appstore-connect-mcp#2
        let schema = r#"{"type":"object","description":"Lists.","properties":{"q":{"type":"string"},"$top":{"type":"integer"},"filter[id]":{}},"required":["q","$top"],"additionalProperties":false}"#;
        let told = concat!(
            r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"description":"Lists.\nTakes these "#,
            r#"properties too, under exactly these names: {\"$top\":{\"type\":\"integer\"},\"filter[id]\":{}} Of them these "#,
            r#"are required: [\"$top\"]"}"#
        );
        assert_eq!(with_plain_names(schema), told);
        let long = "x".repeat(65);
        let alone = with_plain_names(&format!(r#"{{"type":"object","properties":{{"{long}":{{}}}}}}"#)).into_owned();
        assert!(alone.starts_with(r#"{"type":"object","properties":{},"description":""#), "{alone}");
    }

    #[test]
    fn versions_are_read_from_names() {
        for (model, expected) in [
            ("claude-sonnet-4-5-20250929", (4, 5)),
            ("claude-opus-4-20250514", (4, 0)),
            ("claude-3-7-sonnet-20250219", (3, 7)),
            ("claude-sonnet-5", (5, 0)),
            ("us.anthropic.claude-opus-4-8-v1:0", (4, 8)),
            ("us.anthropic.claude-opus-4-6-v1", (4, 6)),
            ("claude-instant", (0, 0)),
            ("glm-4-7", (0, 0)),
        ] {
            assert_eq!(version(model), expected, "{model}");
        }
    }

    #[test]
    fn reasoning_leaves_room_for_the_answer() {
        let budget = |reasoning, limit| budget("claude-sonnet-4-5", reasoning, limit);
        assert_eq!(budget(Reasoning::Effort(Effort::High), None).unwrap(), 16_384);
        assert_eq!(budget(Reasoning::Effort(Effort::Max), None).unwrap(), 24_000);
        assert_eq!(budget(Reasoning::Effort(Effort::High), Some(4096)).unwrap(), 3072);
        assert!(budget(Reasoning::Effort(Effort::Low), Some(1024)).is_err());
        assert!(budget(Reasoning::Budget(2048), Some(2048)).is_err());
        assert!(budget(Reasoning::Budget(100), None).is_err());
        assert_eq!((limit("claude-sonnet-4-5", 16_384), limit("claude-sonnet-4-5", 60_000)), (32_000, 68_000));
    }
}
