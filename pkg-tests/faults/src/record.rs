//! What is known of a script once it is over: what its agent showed, what it kept, and what its tools really did.

use serde_json::Value;

/// Everything that the promises are held against.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The runs, in order. The last one had no faults.
    pub(crate) runs: Vec<Run>,
    /// What the tools did, in order.
    pub(crate) performed: Vec<Performed>,
    /// What the harness itself met that must not be, such as a run that never ended.
    pub(crate) problems: Vec<String>,
}

/// One run: a prompt, or one that was taken up again.
#[derive(Debug)]
pub(crate) struct Run {
    /// Whether it went on with what a saved session had open.
    pub(crate) is_resumed: bool,
    /// Whether the conversation was taken from the store before, which may have less than was shown.
    pub(crate) is_reopened: bool,
    /// Its events as JSON.
    pub(crate) events: Vec<Value>,
    /// The conversation after it.
    pub(crate) snapshot: String,
}

/// A tool did what it was told.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) input: Value,
}

impl Record {
    /// Of a script of which nothing is known but what went wrong.
    pub(crate) fn of_problem(problem: String) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// As a client in another language tells it.
    pub(crate) fn from_json(told: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let run = |run: &Value| Run {
            is_resumed: run["isResumed"] == true,
            is_reopened: run["isReopened"] == true,
            events: list(&run["events"]),
            snapshot: text(&run["snapshot"]),
        };
        Self {
            runs: list(&told["runs"]).iter().map(run).collect(),
            performed: list(&told["performed"]).into_iter().map(|input| Performed { input }).collect(),
            problems: list(&told["problems"]).iter().map(text).collect(),
        }
    }
}
