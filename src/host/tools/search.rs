use regex_lite::{Regex, RegexBuilder};

/// What a line is searched for.
pub(super) enum LineMatcher {
    /// This text.
    Text(String),
    /// This text in lower case.
    AnyCase(String),
    /// A regular expression, whose time is linear.
    Regex(Regex),
}

impl LineMatcher {
    /// # Errors
    ///
    /// A message for the model when the pattern is not a regular expression.
    pub(super) fn new(text: &str, is_regex: bool, ignores_case: bool) -> Result<Self, String> {
        if text.is_empty() {
            return Err("text is empty: say what to search for".to_owned());
        }
        if is_regex {
            let built = RegexBuilder::new(text).case_insensitive(ignores_case).size_limit(SIZE_LIMIT).build();
            return built.map(Self::Regex).map_err(|error| {
                format!(
                    "the pattern is not a regular expression this tool takes: {error}. Leave \"regex\" out to search for \
                    it as it is"
                )
            });
        }
        Ok(if ignores_case { Self::AnyCase(text.to_lowercase()) } else { Self::Text(text.to_owned()) })
    }

    pub(super) fn matches(&self, line: &str) -> bool {
        match self {
            Self::Text(text) => line.contains(text),
            Self::AnyCase(text) => line.to_lowercase().contains(text),
            Self::Regex(regex) => regex.is_match(line),
        }
    }
}

/// The most memory of a compiled pattern: bounds the time for each byte that it is matched with.
const SIZE_LIMIT: usize = 256 * 1024;
