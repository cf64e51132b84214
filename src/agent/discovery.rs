//! Lazy discovery: an agent with very many tools tells the model of one, which finds the others.

use std::sync::Arc;

use serde::Serialize;

use super::definition::ToolDefinition;
use super::input::ToolOutput;
use crate::json::{Object, RawJson, quoted};
use crate::model::{Content, ToolCall, ToolInput, ToolSpec};
use crate::ordered_map::sorted_by_key;

/// Lazy discovery of tools. The model is told of one tool that lists the others; those it has found it may call from the
/// next step on, for the rest of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The name of the tool that lists the others. Default `listTools`.
    pub tool_name: String,
    /// How many tools one call of it gives. Default 20.
    pub page_size: usize,
}

impl Default for Discovery {
    fn default() -> Self {
        Self { tool_name: "listTools".to_owned(), page_size: 20 }
    }
}

impl Discovery {
    /// What the model is told of the tool that lists the others.
    pub(super) fn spec(&self) -> Option<ToolSpec> {
        Some(ToolSpec {
            name: self.tool_name.clone(),
            description: DESCRIPTION.to_owned(),
            input_schema: RawJson::parse(INPUT_SCHEMA).ok()?,
        })
    }

    /// Answers a call of it: what the model reads, and the tools that were found.
    ///
    /// # Errors
    ///
    /// What is wrong with the arguments, for the model to read.
    pub(super) fn answer(
        &self,
        tools: &[Arc<ToolDefinition>],
        call: &ToolCall,
    ) -> Result<(ToolOutput, Vec<String>), String> {
        let (query, start) = read_arguments(&call.input)?;
        let matching = search(tools, &query);
        let page: Vec<&Arc<ToolDefinition>> =
            matching.iter().skip(start).take(self.page_size.max(1)).copied().collect();
        let end = start.saturating_add(page.len());
        let listed = Listed {
            tools: page.iter().map(|tool| ListedTool { name: &tool.name, description: &tool.description }).collect(),
            next_cursor: (end < matching.len()).then(|| end.to_string()),
        };
        let output = RawJson::from_value(&listed).map_err(|error| error.to_string())?;
        let content = vec![Content::Text(output.as_str().to_owned())];
        let found = page.iter().map(|tool| tool.name.clone()).collect();
        Ok((ToolOutput { content, output: Some(output), ..ToolOutput::default() }, found))
    }
}

/// The query, and how many matches to skip.
fn read_arguments(input: &ToolInput) -> Result<(String, usize), String> {
    let ToolInput::Json(input) = input else {
        return Err("The arguments are not valid JSON. Call it with {\"query\": \"…\"}.".to_owned());
    };
    let arguments = Object::parse(input.as_str()).unwrap_or_default();
    let start = match arguments.string("cursor").filter(|cursor| !cursor.is_empty()) {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            format!("There is no cursor {}. Use the nextCursor of the page before, or none.", quoted(&cursor))
        })?,
    };
    Ok((arguments.string("query").unwrap_or_default(), start))
}

/// The tools that have a word of the query in their name or description: those with the most first, else in their own
/// order. All of them for an empty query.
fn search<'tools>(tools: &'tools [Arc<ToolDefinition>], query: &str) -> Vec<&'tools Arc<ToolDefinition>> {
    let query = folded(query);
    let words: Vec<&str> = query.split(is_between_words).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return tools.iter().collect();
    }
    let score = |tool: &ToolDefinition| {
        let (name, description) = (folded(&tool.name), folded(&tool.description));
        let of_word = |word: &&str| usize::from(name.contains(*word)) * 2 + usize::from(description.contains(*word));
        words.iter().map(of_word).sum::<usize>()
    };
    let matching = tools.iter().map(|tool| (score(tool), tool)).filter(|(score, _)| *score > 0);
    sorted_by_key(matching, |(score, _)| std::cmp::Reverse(*score)).into_iter().map(|(_, tool)| tool).collect()
}

/// The text in small letters, for Latin, Greek and Cyrillic. The standard library's tables for all of Unicode are six kilobytes of the
/// npm package.
fn folded(text: &str) -> String {
    let small = |letter: char| {
        let code = u32::from(letter);
        let code = match code {
            0xd7 | 0x3a2 => code,
            0x41..=0x5a | 0xc0..=0xde | 0x391..=0x3ab | 0x410..=0x42f => code + 32,
            0x400..=0x40f => code + 80,
            // Latin Extended-A: a capital and its small letter in turn.
            0x100..=0x12f | 0x132..=0x137 | 0x14a..=0x177 => code | 1,
            0x139..=0x148 | 0x179..=0x17e => code + code % 2,
            _ => code,
        };
        char::from_u32(code).unwrap_or(letter)
    };
    text.chars().map(small).collect()
}

/// Spaces, punctuation and signs: of ASCII all but letters and digits, and the blocks of Unicode that hold nothing else.
fn is_between_words(letter: char) -> bool {
    match letter {
        '\0'..='\x7f' => !letter.is_ascii_alphanumeric(),
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff0f}' => true,
        _ => false,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'tools> {
    tools: Vec<ListedTool<'tools>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct ListedTool<'tools> {
    name: &'tools str,
    description: &'tools str,
}

const DESCRIPTION: &str = "Lists the tools that can be called, most fitting first. Tools that it lists may be called from \
                           then on. Give words of what you want to do as the query; leave it out to see all. When the \
                           result has a nextCursor, give it as the cursor to see more.";

const INPUT_SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string"},"cursor":{"type":"string"}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_small_as_the_standard_library_makes_them() {
        let blocks = [0..0x130, 0x132..0x149, 0x14a..0x178, 0x179..0x17f, 0x391..0x3ca, 0x400..0x460];
        for letter in blocks.into_iter().flatten().filter_map(char::from_u32) {
            assert_eq!(folded(&letter.to_string()), letter.to_lowercase().to_string(), "{letter}");
        }
        assert_eq!(folded("ŽLUŤOUČKÝ Погода ΑΘΗΝΑ 天気"), "žluťoučký погода αθηνα 天気");
    }

    #[test]
    fn words_end_at_spaces_and_signs() {
        let words =
            |text: &'static str| text.split(is_between_words).filter(|word| !word.is_empty()).collect::<Vec<_>>();
        assert_eq!(words("read_file: «données»…Ärger"), ["read", "file", "données", "Ärger"]);
        assert_eq!(words("天気、東京"), ["天気", "東京"]);
    }
}
