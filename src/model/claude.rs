//! What the names of Anthropic's models tell, on whatever wire.

/// The version in the name of a model of Anthropic, such as 4 and 5 in `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let mut numbers = model.split('-').filter_map(|word| word.parse::<u32>().ok());
    let major = numbers.next()?;
    // A second number that long is a date.
    let minor = numbers.next().filter(|minor| *minor < 100).unwrap_or(0);
    Some((major, minor))
}

/// Whether a model of Anthropic can be held to a schema: from 4.5 on (guides "Structured outputs" of Anthropic and
/// "Structured output" of Amazon Bedrock, 2026-06).
pub(super) fn is_held_to_schemas(model: &str) -> bool {
    model.contains("claude") && version(model).is_some_and(|version| version >= (4, 5))
}
