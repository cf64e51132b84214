//! What must hold whatever went wrong. One set for both builds: it reads only events, saved sessions and ledgers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crablet::agent::{Agent, Session, Status};
use crablet::model::Model;
use crablet::native::now;
use serde_json::Value;

use crate::ledger;
use crate::plan::{Boundary, Kind};
use crate::record::{Record, Run};
use crate::script::{Script, sound_key};
use crate::world::Course;

/// The promises that were broken, each as a sentence.
pub(crate) fn broken(record: &Record, course: &Course) -> Vec<String> {
    let mut judge = Judge { course, doubt: Doubt::of(course), broken: record.problems.clone() };
    let mut before = Vec::new();
    for (number, run) in record.runs.iter().enumerate() {
        let mut found = Vec::new();
        judge.judge_run(run, &mut before, &mut found);
        judge.broken.extend(found.into_iter().map(|what| format!("run {number}: {what}")));
    }
    judge.judge_ledger(record);
    match record.runs.last().and_then(|run| run.events.last()) {
        Some(end) if end["stopReason"] == "stop" && end.get("error").is_none_or(Value::is_null) => {}
        Some(end) => judge.broken.push(format!("the conversation did not go on without faults: it ended with {end}")),
        None => judge.broken.push("there was no run without faults".into()),
    }
    judge.broken
}

/// What may have been said wrong in a way that nobody can tell from the truth.
#[derive(Clone, Copy, Default)]
struct Doubt {
    /// The answers of the model.
    model: bool,
    /// What tools were asked, and what they said.
    tools: bool,
}

impl Doubt {
    fn of(course: &Course) -> Self {
        let met = |kind| course.injected.iter().any(|fault| fault.kind == kind);
        match course.plan.boundary {
            // Most of these protocols number nothing, so that what comes twice is two things.
            Boundary::Model => Self { model: met(Kind::Corrupt) || met(Kind::Duplicate), tools: false },
            Boundary::McpHttp | Boundary::Shim => Self { model: false, tools: met(Kind::Corrupt) },
            Boundary::Store => Self::default(),
        }
    }
}

struct Judge<'a> {
    course: &'a Course,
    doubt: Doubt,
    broken: Vec<String>,
}

impl Judge<'_> {
    fn judge_run(&self, run: &Run, before: &mut Vec<Value>, broken: &mut Vec<String>) {
        let ends = run.events.iter().filter(|event| event["type"] == "run-end").count();
        if ends != 1 || run.events.last().is_none_or(|event| event["type"] != "run-end") {
            broken.push(format!("{ends} run-end events, the last event is {:?}", run.events.last()));
        }
        let shown = Shown::of(run, broken);
        if self.course.plan.boundary == Boundary::Shim && !self.doubt.tools {
            for call in &shown.successes {
                let progress = shown.progress.get(call).map(Vec::as_slice).unwrap_or_default();
                if progress != ledger::REPORTS {
                    broken.push(format!("of the call {call} came the reports {progress:?}, and then its result"));
                }
            }
        }
        let history = match history(&run.snapshot) {
            Ok(history) => history,
            Err(error) => {
                broken.push(format!("the saved session cannot be restored: {error}"));
                return;
            }
        };
        self.judge_history(&history, broken);
        if !run.is_reopened {
            if !history.starts_with(before) {
                broken.push("what was in the history before the run is not there after it".into());
            } else if !run.is_resumed {
                let added: Vec<_> =
                    history[before.len()..].iter().filter(|message| message["role"] == "assistant").collect();
                if added != shown.messages.iter().collect::<Vec<_>>() {
                    broken.push(format!("shown were {:?}, kept are {added:?}", shown.messages));
                }
            }
        }
        *before = history;
    }

    /// Every call has one result, right behind it and in its place; every text is one that the model wrote, once.
    fn judge_history(&self, history: &[Value], broken: &mut Vec<String>) {
        for (number, message) in history.iter().enumerate().filter(|(_, message)| message["role"] == "assistant") {
            let calls: Vec<_> = parts(message, "tool-call").map(|call| &call["callId"]).collect();
            let results = history.get(number + 1).filter(|next| next["role"] == "tool");
            let results: Vec<_> = results
                .and_then(|next| next["content"].as_array())
                .into_iter()
                .flatten()
                .map(|result| &result["callId"])
                .collect();
            if calls != results {
                broken.push(format!("the calls {calls:?} have the results {results:?}"));
            }
            if !self.doubt.model && !is_said(&self.course.script, message) {
                broken.push(format!("the model never said {:?}", text(message)));
            }
        }
    }

    fn judge_ledger(&mut self, record: &Record) {
        let mut times = BTreeMap::<String, u32>::new();
        for performed in &record.performed {
            let Some(key) = sound_key(&performed.input) else {
                if !self.doubt.model && !self.doubt.tools {
                    self.broken.push(format!("a tool ran with an input that is not whole: {}", performed.input));
                }
                continue;
            };
            let (call, exchange) = key.rsplit_once('.').unwrap_or_default();
            *times.entry(call.to_owned()).or_default() += 1;
            let is_whole = exchange.parse().is_ok_and(|exchange| self.course.whole_answers.contains(&exchange));
            if !is_whole {
                self.broken.push(format!("the call {key} was performed, though its answer never came whole"));
            }
        }
        // A model that says a call twice asks for it twice.
        for (call, times) in times.iter().filter(|(_, times)| **times > 1 && !self.doubt.model) {
            self.broken.push(format!("the call {call} was performed {times} times"));
        }
        let done: BTreeSet<_> = record.performed.iter().filter_map(|performed| sound_key(&performed.input)).collect();
        let last = record.runs.last().and_then(|run| history(&run.snapshot).ok()).unwrap_or_default();
        for result in last
            .iter()
            .filter(|message| message["role"] == "tool")
            .filter_map(|message| message["content"].as_array())
            .flatten()
        {
            let said = result["output"].as_str().unwrap_or_default();
            if let Some(key) = said
                .strip_prefix("booked ")
                .filter(|_| result["isError"] == false && !self.doubt.model && !self.doubt.tools)
                && !done.contains(key)
            {
                self.broken.push(format!("a result says {said:?}, but nothing was done"));
            }
        }
    }
}

/// What a run showed.
#[derive(Default)]
struct Shown {
    /// The answers, those of failed attempts left out.
    messages: Vec<Value>,
    /// The text since the step or its attempt began.
    text: String,
    /// Calls that are complete, and whether they have their result.
    calls: BTreeMap<String, bool>,
    /// Calls that the model has begun to write.
    written: BTreeSet<String>,
    started: BTreeSet<String>,
    progress: BTreeMap<String, Vec<u64>>,
    successes: BTreeSet<String>,
}

impl Shown {
    fn of(run: &Run, broken: &mut Vec<String>) -> Self {
        let mut shown = Self::default();
        for event in &run.events {
            shown.take(run, event, broken);
        }
        for (call, _) in shown.calls.iter().filter(|(_, is_answered)| !**is_answered) {
            broken.push(format!("the call {call} has no result"));
        }
        shown
    }

    fn take(&mut self, run: &Run, event: &Value, broken: &mut Vec<String>) {
        let call_id = event["callId"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "step-start" => self.text.clear(),
            "step-retry" => {
                self.text.clear();
                self.calls.retain(|_, is_answered| *is_answered);
            }
            "text-delta" => self.text.push_str(event["delta"].as_str().unwrap_or_default()),
            "tool-call" => {
                let earlier = self.calls.insert(call_id.clone(), false);
                broken.extend(earlier.map(|_| format!("the call {call_id} was shown twice")));
            }
            "tool-start" => {
                let is_first = self.started.insert(call_id.clone());
                broken.extend((!is_first).then(|| format!("the call {call_id} was started twice")));
            }
            "tool-progress" => {
                let progress = event["data"]["progress"].as_f64().unwrap_or_default() as u64;
                self.progress.entry(call_id).or_default().push(progress);
            }
            "tool-input-start" => {
                self.written.insert(call_id);
            }
            "tool-result" => match self.calls.insert(call_id.clone(), true) {
                Some(false) if event["isError"] == false => {
                    self.successes.insert(call_id);
                }
                Some(false) => {}
                // What a failed answer asked for is told that it is not run, without being prepared.
                None if run.is_resumed || (event["isError"] == true && self.written.contains(&call_id)) => {}
                None => broken.push(format!("a result came for {call_id}, which was never called")),
                Some(true) => broken.push(format!("the call {call_id} has a second result")),
            },
            "step-end" => self.end_step(run, &event["message"], broken),
            "run-end" if !event["message"].is_null() => self.end_step(run, &event["message"], broken),
            _ => {}
        }
    }

    fn end_step(&mut self, run: &Run, message: &Value, broken: &mut Vec<String>) {
        // The text of a step that a saved session had behind it was shown in another life.
        if self.text != text(message) && !(run.is_resumed && self.text.is_empty()) {
            broken.push(format!("shown was {:?}, kept is {:?}", self.text, text(message)));
        }
        self.text.clear();
        if message["content"].as_array().is_some_and(|content| !content.is_empty()) {
            self.messages.push(message.clone());
        }
    }
}

fn parts<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |part| part["type"] == kind)
}

fn text(message: &Value) -> String {
    parts(message, "text").filter_map(|part| part["text"].as_str()).collect()
}

/// More steps than any conversation of a script has.
const MOST_STEPS: usize = 60;

/// Whether the model of the script says this, whole unless the answer was cut short.
fn is_said(script: &Script, message: &Value) -> bool {
    let said = text(message);
    let is_whole = matches!(message["stopReason"].as_str(), Some("stop" | "tool-use"));
    (0..MOST_STEPS)
        .map(|step| script.text(step))
        .any(|whole| if is_whole { whole == said } else { whole.starts_with(&said) })
}

/// The messages of a saved session.
fn history(snapshot: &str) -> Result<Vec<Value>, String> {
    let agent = Arc::new(Agent::new(Model::function("nobody")));
    let session = Session::restore(snapshot, agent, now()).map_err(|error| error.to_string())?;
    if session.status() != Status::Idle {
        return Err(format!("it is {:?} after its run has ended", session.status()));
    }
    session
        .history()
        .iter()
        .map(|message| serde_json::to_value(&**message).map_err(|error| error.to_string()))
        .collect()
}
