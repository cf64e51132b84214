//! The object that the last answer of a run shall be: read, checked, and asked for once more when it does not fit.

use std::fmt;
use std::sync::Arc;

use super::conversation::Conversation;
use super::effect::{HookId, HookQuestion};
use super::event::{EndReason, EventKind};
use super::input::{HookReply, InputError};
use super::run::{Phase, Run};
use super::timers::Purpose;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, Schema};
use crate::model::{Body, Content, Origin, OutputSchema, StopReason};
use crate::time::Millis;

/// That the last answer of a run shall be an object, and which.
#[derive(Clone, Debug)]
pub struct OutputDefinition {
    /// The object.
    pub schema: Arc<OutputSchema>,
    /// Whether the host has a validator of its own that is asked after the JSON Schema: see
    /// [`HookQuestion::ValidateOutput`].
    pub has_validator: bool,
    work: &'static dyn Work,
}

impl OutputDefinition {
    /// An object with this schema, which no other validator checks.
    pub fn new(schema: OutputSchema) -> Self {
        Self { schema: Arc::new(schema), has_validator: false, work: WORK }
    }
}

impl PartialEq for OutputDefinition {
    fn eq(&self, other: &Self) -> bool {
        (&self.schema, self.has_validator) == (&other.schema, other.has_validator)
    }
}

/// The object that a run works towards. Part of the run: it is the same when another agent takes the run up.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) schema: Arc<OutputSchema>,
    compiled: Schema,
    /// How often it was asked for again.
    pub(super) repairs: u32,
    /// The object, once it is there.
    result: Option<RawJson>,
    work: &'static dyn Work,
}

/// What a run does for its object. Reached by way of the definition and of the [`Output`] that it begins, so that a program whose
/// agents answer with text links nothing of it.
trait Work: fmt::Debug + Send + Sync {
    fn begin(&self, schema: Arc<OutputSchema>) -> Result<Output, String>;
    fn report_unchecked(&self, run: &mut Run, conversation: &mut Conversation, now: Millis);
    fn conclude(&self, run: &mut Run, conversation: &mut Conversation, now: Millis, end: EndReason);
    fn validated(&self, run: &mut Run, conversation: &mut Conversation, now: Millis, reply: Result<HookReply, String>);
    fn missing(&self, output: &Output, end: EndReason) -> Option<Error>;
}

const WORK: &dyn Work = &ForAnObject;

#[derive(Debug)]
struct ForAnObject;

/// How often an answer that does not fit is asked for again. A model that fails twice mostly fails the third time too.
const MAX_REPAIRS: u32 = 1;

impl Output {
    /// # Errors
    ///
    /// What is wrong with the schema.
    pub(super) fn new(schema: Arc<OutputSchema>, repairs: u32) -> Result<Self, String> {
        let compiled = Schema::compile(&schema.schema).map_err(|error| error.to_string())?;
        let is_object = Object::parse(schema.schema.as_str())
            .is_ok_and(|root| root.string("type").as_deref() == Some("object") || root.get("properties").is_some());
        if !is_object {
            return Err("its root must be of type object; give the value a name in an object".to_owned());
        }
        Ok(Self { schema, compiled, repairs, result: None, work: WORK })
    }

    /// The object of an answer, or what is wrong with it.
    fn read(&self, text: &str) -> Result<RawJson, String> {
        let text = text.trim();
        let error = match RawJson::parse(text) {
            Ok(whole) => return self.fit(whole),
            Err(error) => error,
        };
        // Models that are not held to JSON put it into a fence, say a word before it, or think aloud about another one first.
        let found = objects_in(text);
        let fitting = found.iter().rev().find_map(|object| self.fit(object.clone()).ok());
        match (fitting, found.into_iter().max_by_key(|object| object.as_str().len())) {
            (Some(object), _) => Ok(object),
            (None, Some(object)) => self.fit(object),
            (None, None) if text.is_empty() => Err("It is empty.".to_owned()),
            (None, None) => Err(format!("It is not valid JSON: {error}.")),
        }
    }

    /// A value as the object that was asked for, or what is wrong with it.
    fn fit(&self, value: RawJson) -> Result<RawJson, String> {
        // The sentences of the check are about the input of a tool.
        let checked = self.compiled.check(&value).map_err(|problems| problems.replace("The input ", "The object "))?;
        let object = checked.unwrap_or(value);
        if Object::parse(object.as_str()).is_err() {
            return Err("It is no JSON object.".to_owned());
        }
        Ok(object)
    }
}

/// The objects that stand in a text, those within others left out.
fn objects_in(text: &str) -> Vec<RawJson> {
    let mut found = Vec::new();
    let mut rest = text;
    for _ in 0..MAX_BRACES {
        let Some(object) = rest.find('{').and_then(|start| rest.get(start..)) else { break };
        let length = length_of_braces(object);
        let parsed = object.get(..length).and_then(|object| RawJson::parse(object).ok());
        // What is no object may have one in it.
        rest = object.get(if parsed.is_some() { length } else { 1 }..).unwrap_or_default();
        found.extend(parsed);
    }
    found
}

/// How far it is to the brace that closes the first one. Those in texts do not count.
fn length_of_braces(text: &str) -> usize {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' if !in_text => depth += 1,
            b'}' if !in_text => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// How many braces may begin the object. Each that does not costs a look at what follows, and a text with so many is prose or
/// code.
const MAX_BRACES: usize = 64;

impl Work for ForAnObject {
    fn begin(&self, schema: Arc<OutputSchema>) -> Result<Output, String> {
        Output::new(schema, 0)
    }

    fn report_unchecked(&self, run: &mut Run, conversation: &mut Conversation, now: Millis) {
        let has_validator = conversation.agent.output.as_ref().is_some_and(|output| output.has_validator);
        if let Some(output) = &run.output
            && !has_validator
            && !output.compiled.unsupported().is_empty()
        {
            let keywords = output.compiled.unsupported().to_vec();
            run.context(conversation, now).emit(EventKind::SchemaUnchecked { tool_name: None, keywords });
        }
    }

    fn conclude(&self, run: &mut Run, conversation: &mut Conversation, now: Millis, end: EndReason) {
        let Some(output) = &run.output else { return };
        let text = match conversation.history.last().map(|message| &message.body) {
            Some(Body::Assistant(answer)) => answer.text(),
            // An empty answer is not in the history.
            _ => String::new(),
        };
        match output.read(&text) {
            Ok(object) => {
                let hook = HookId(conversation.ids.number());
                run.validate_output(conversation, now, hook, object);
            }
            // Asked for again, it would be cut off again: the end says so.
            Err(_) if end == EndReason::Model(StopReason::Length) => run.end(conversation, now, end, None),
            Err(problem) => run.output_does_not_fit(conversation, now, &problem),
        }
    }

    fn validated(&self, run: &mut Run, conversation: &mut Conversation, now: Millis, reply: Result<HookReply, String>) {
        let Phase::ValidatingOutput { output, .. } = std::mem::replace(&mut run.phase, Phase::BetweenSteps) else {
            return;
        };
        run.context(conversation, now).clear_timer(&Purpose::StepHook);
        match reply {
            Ok(HookReply::Deny(problem)) | Err(problem) => run.output_does_not_fit(conversation, now, &problem),
            Ok(_) => run.output_fits(conversation, now, output),
        }
    }

    fn missing(&self, output: &Output, end: EndReason) -> Option<Error> {
        if output.result.is_some() {
            return None;
        }
        let (kind, message) = match end {
            EndReason::Limit => {
                (ErrorKind::Limit, "the run reached a limit before it gave the object that was asked for")
            }
            EndReason::Model(StopReason::Length) => {
                (ErrorKind::Limit, "the answer reached its output limit before the object was whole; raise the limit")
            }
            EndReason::Model(StopReason::Refusal | StopReason::ContentFilter) => {
                (ErrorKind::ContentFilter, "the model declined, or a filter stopped it, so there is no object")
            }
            _ => return None,
        };
        Some(Error::new(kind, message))
    }
}

impl Run {
    /// Takes up the object that the agent's runs shall end with.
    ///
    /// # Errors
    ///
    /// `InvalidOutput` when its schema cannot be used.
    pub(super) fn expected_output(conversation: &Conversation) -> Result<Option<Output>, InputError> {
        let definition = conversation.agent.output.as_ref();
        let output = definition.map(|definition| definition.work.begin(definition.schema.clone())).transpose();
        output.map_err(InputError::InvalidOutput)
    }

    /// Shows which keywords of the schema nobody checks.
    pub(super) fn report_unchecked_output(&mut self, conversation: &mut Conversation, now: Millis) {
        if let Some(work) = self.output_work() {
            work.report_unchecked(self, conversation, now);
        }
    }

    /// The last answer is there: ends the run with it, unless it shall be an object and is none yet.
    pub(super) fn conclude(&mut self, conversation: &mut Conversation, now: Millis, end: EndReason) {
        let is_answer = matches!(end, EndReason::Model(StopReason::Stop | StopReason::Length));
        match self.output_work().filter(|_| is_answer) {
            Some(work) => work.conclude(self, conversation, now, end),
            None => self.end(conversation, now, end, None),
        }
    }

    /// The host's validator answered.
    pub(super) fn output_validated(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        reply: Result<HookReply, String>,
    ) {
        match self.output_work() {
            Some(work) => work.validated(self, conversation, now, reply),
            None => self.end(conversation, now, EndReason::Model(StopReason::Stop), None),
        }
    }

    /// What a run that ends without its object says of it, unless it has failed otherwise or was stopped by a tool.
    pub(super) fn missing_output(&self, end: EndReason) -> Option<Error> {
        let output = self.output.as_ref()?;
        output.work.missing(output, end)
    }

    fn output_work(&self) -> Option<&'static dyn Work> {
        self.output.as_ref().map(|output| output.work)
    }

    /// Asks the host's validator about an object that fits the schema, where there is one.
    pub(super) fn validate_output(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        hook: HookId,
        output: RawJson,
    ) {
        if conversation.agent.output.as_ref().is_none_or(|output| !output.has_validator) {
            self.output_fits(conversation, now, output);
            return;
        }
        let question = HookQuestion::ValidateOutput { output: output.clone() };
        self.phase = Phase::ValidatingOutput { hook, output };
        self.put_question(conversation, now, hook, question);
    }

    /// The object, once it is there.
    pub(super) fn take_output(&mut self) -> Option<RawJson> {
        self.output.as_mut()?.result.take()
    }

    fn output_fits(&mut self, conversation: &mut Conversation, now: Millis, output: RawJson) {
        // They may have come while the validator was asked: then there will be another answer.
        if !conversation.steers.is_empty() || self.deliver_follow_up(conversation, now) {
            self.phase = Phase::BetweenSteps;
            return;
        }
        if let Some(expected) = &mut self.output {
            expected.result = Some(output);
        }
        self.end(conversation, now, EndReason::Model(StopReason::Stop), None);
    }

    fn output_does_not_fit(&mut self, conversation: &mut Conversation, now: Millis, problem: &str) {
        let Some(output) = self.output.as_mut().filter(|output| output.repairs < MAX_REPAIRS) else {
            let message =
                format!("the model's answer is not the object that was asked for, also after a correction: {problem}");
            let error = Error::new(ErrorKind::Protocol, message);
            self.end(conversation, now, EndReason::Model(StopReason::Error), Some(error));
            return;
        };
        output.repairs += 1;
        let told = format!(
            "Your answer is not the object that it must be:\n{problem}\nGive the whole object again, corrected."
        );
        let message = conversation.push_user(vec![Content::Text(told)], Origin::Nudge);
        self.context(conversation, now).emit(EventKind::MessageAdded(message));
        self.phase = Phase::BetweenSteps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> Output {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        Output::new(Arc::new(OutputSchema::new("o", RawJson::parse(schema).unwrap())), 0).unwrap()
    }

    #[test]
    fn objects_are_found_and_repaired() {
        for text in [
            r#"{"n":1}"#,
            " {\"n\": 1}\n",
            "```json\n{\"n\":\"1\"}\n```",
            "Here it is: {\"n\":1}. Done.",
            "In the form {n} that is {\"n\":1}.",
            "<think>Is it {\"n\":2}? No, {\"m\":[{}]}.</think>{\"n\":1}",
            "{\"n\":1}\n\nThe braces {} mean an object.",
            "{\"n\":1}}",
            "{{\"n\":1}}",
            "```\n{\"n\":2}\n```\nOr rather:\n```\n{\"n\":1}\n```",
            r#""{\"n\":1}""#,
        ] {
            let found = output().read(text).unwrap();
            assert_eq!(found.read::<serde_json::Value>().unwrap(), serde_json::json!({"n": 1}), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, problem) in [
            ("", "empty"),
            ("forty-two", "not valid JSON"),
            ("[1]", "type"),
            ("The set {1, 2} is no object.", "not valid JSON"),
            (r#"{"n":1"#, "not valid JSON"),
            (r#"{} and {"n":"x"}"#, "/n"),
            (r#"{"n":"x"}"#, "/n"),
            ("{}", "The object lacks the required member \"n\""),
        ] {
            let told = output().read(text).unwrap_err();
            assert!(told.contains(problem), "{text}: {told}");
        }
    }

    #[test]
    fn a_schema_must_be_one_of_an_object() {
        for schema in [r#"{"type":"array"}"#, "true", "1", r##"{"type":"object","$ref":"#/x"}"##] {
            let schema = OutputSchema::new("o", RawJson::parse(schema).unwrap());
            assert!(Output::new(Arc::new(schema), 0).is_err());
        }
    }
}
