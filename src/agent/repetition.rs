//! Notices a model that goes round in a circle: the same calls with the same results, step after step.

use std::sync::Arc;

use crate::model::{Body, Content, Message, Origin, ToolInput, ToolMessage};

/// How many steps at the end of the history made the same calls and got the same results, looking back at most this far.
///
/// Results count too: a tool that is asked again and again until something changes is no circle.
pub(super) fn identical_steps(history: &[Arc<Message>], at_most: u32) -> u32 {
    let mut steps = history.iter().rev().filter(|message| !is_nudge(message));
    let mut latest: Option<(Vec<Call<'_>>, Vec<Outcome<'_>>)> = None;
    let mut count = 0;
    while count < at_most {
        let (Some(results), Some(answer)) = (steps.next(), steps.next()) else { break };
        let (Body::Tool(results), Some(calls)) = (&results.body, calls(answer)) else { break };
        let step = (calls, outcomes(results));
        match &latest {
            Some(latest) if *latest != step => break,
            Some(_) => {}
            None => latest = Some(step),
        }
        count += 1;
    }
    count
}

/// What the model is told when it goes round in a circle.
pub(super) fn nudge(count: u32) -> Vec<Content> {
    vec![Content::Text(format!(
        "You have made the same tool calls {count} times in a row and got the same results each time. Do something else: use \
         what you have, change the arguments, or say what is in the way."
    ))]
}

/// A tool and what it was given.
type Call<'message> = (&'message str, &'message str);

/// What a tool gave, and whether it failed.
type Outcome<'message> = (&'message [Content], bool);

fn calls(message: &Message) -> Option<Vec<Call<'_>>> {
    let Body::Assistant(assistant) = &message.body else { return None };
    let calls = assistant.tool_calls().map(|call| {
        let input = match &call.input {
            ToolInput::Json(input) => input.as_str(),
            ToolInput::Malformed { text, .. } => text.as_str(),
        };
        (call.tool_name.as_str(), input)
    });
    Some(calls.collect())
}

fn outcomes(message: &ToolMessage) -> Vec<Outcome<'_>> {
    message.results.iter().map(|result| (result.content.as_slice(), result.is_error)).collect()
}

fn is_nudge(message: &Message) -> bool {
    matches!(&message.body, Body::User(user) if user.origin == Origin::Nudge)
}
