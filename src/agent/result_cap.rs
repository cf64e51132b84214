//! Keeps a tool's result from filling the model's context: what the model reads of a very long one is its beginning and end.

use super::input::ToolOutput;
use super::result_reader::TOOL;
use crate::json::RawJson;
use crate::model::{CallId, Content};

/// The output with each text shortened to about this many characters. The whole text stays in `output`, which the model
/// does not read, unless the tool returned a value of its own. With `reader` the model is told that it can read the rest of
/// this call's result.
pub(super) fn capped(mut output: ToolOutput, limit: usize, reader: Option<&CallId>) -> ToolOutput {
    let is_long = |content: &Content| matches!(content, Content::Text(text) if exceeds(text, limit));
    if !output.content.iter().any(is_long) {
        return output;
    }
    if output.output.is_none() {
        output.output = RawJson::from_value(&output.texts()).ok();
    }
    for content in &mut output.content {
        if let Content::Text(text) = content
            && exceeds(text, limit)
        {
            *text = shortened(text, limit, reader);
        }
    }
    output
}

fn exceeds(text: &str, limit: usize) -> bool {
    // No text has more characters than bytes, so that most need no counting.
    text.len() > limit && text.chars().nth(limit).is_some()
}

/// Two thirds of the limit from the beginning, one third from the end: lists and logs are told from both.
fn shortened(text: &str, limit: usize, reader: Option<&CallId>) -> String {
    let tail = limit / 3;
    let head = limit - tail;
    let left_out = text.chars().count() - limit;
    let head_end = text.char_indices().nth(head).map_or(text.len(), |(index, _)| index);
    let tail_start = tail.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last));
    let tail_start = tail_start.map_or(text.len(), |(index, _)| index);
    let (beginning, end) = (text.get(..head_end).unwrap_or_default(), text.get(tail_start..).unwrap_or_default());
    let how = match reader {
        Some(call_id) => format!("; {TOOL} with callId {call_id} and offset {head} reads them"),
        None => String::new(),
    };
    format!("{beginning}\n[… {left_out} characters left out{how} …]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(output: &ToolOutput) -> Vec<String> {
        let text = |content: &Content| match content {
            Content::Text(text) => text.clone(),
            Content::File(_) => panic!("no file"),
        };
        output.content.iter().map(text).collect()
    }

    #[test]
    fn a_short_result_is_left_as_it_is() {
        let output = ToolOutput::text("жук ".repeat(25));
        assert_eq!(capped(output.clone(), 100, None), output);
    }

    #[test]
    fn a_long_result_keeps_its_beginning_and_end_and_the_whole_stays_for_the_caller() {
        let whole: String = (0..1_000).map(|number| format!("{number}\u{1f980}")).collect();
        let output = capped(ToolOutput::text(whole.clone()), 30, None);
        let [text] = &texts(&output)[..] else { panic!() };
        assert!(text.starts_with("0\u{1f980}1\u{1f980}") && text.ends_with("999\u{1f980}"));
        assert!(text.contains("characters left out") && text.chars().count() < 80);
        assert_eq!(output.output.unwrap().read::<String>().unwrap(), whole);
    }

    #[test]
    fn any_limit_cuts_between_characters() {
        let whole = "a\u{1f980}é".repeat(20);
        for limit in 0..70 {
            let output = capped(ToolOutput::text(whole.clone()), limit, None);
            let kept: usize = texts(&output)[0].chars().filter(|letter| "a\u{1f980}é".contains(*letter)).count();
            assert!(kept >= limit.min(60), "limit {limit}: {kept}");
        }
    }

    #[test]
    fn the_tools_own_value_is_kept() {
        let own = RawJson::parse("[1]").unwrap();
        let output = ToolOutput { output: Some(own.clone()), ..ToolOutput::text("x".repeat(100)) };
        assert_eq!(capped(output, 10, None).output, Some(own));
    }
}
