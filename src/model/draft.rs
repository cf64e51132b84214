//! A request on its way to the body of a wire: what all of them read of it, and what all of them refuse.

use std::sync::Arc;

use super::body::{invalid, tool_list};
use super::encoded::{EncodedCache, OpenCache};
use super::message::{Body, Content, File, ModelRef};
use super::request::{ModelRequest, RequestOptions, ToolChoice};
use super::transcript::{Reader, Rules, Turn};
use crate::error::Error;
use crate::json::{Object, RawJson, quoted};

/// A checked request, with what earlier ones left in the cache.
#[derive(Debug)]
pub(super) struct Draft<'request> {
    request: &'request ModelRequest,
    /// The settings.
    pub(super) options: &'request RequestOptions,
    /// The provider's name of the model.
    pub(super) id: &'request str,
    model: ModelRef,
    rules: Rules,
    cache: OpenCache<'request>,
}

impl<'request> Draft<'request> {
    pub(super) fn new(
        request: &'request ModelRequest,
        rules: Rules,
        cache: &'request mut EncodedCache,
    ) -> Result<Self, Error> {
        check(request)?;
        Ok(Self {
            request,
            options: &request.options,
            id: &request.model.id,
            model: request.model.reference(),
            rules,
            cache: cache.open(&request.model, rules),
        })
    }

    /// The system prompt, unless it is blank, which some services refuse.
    pub(super) fn instructions(&self) -> Option<&'request str> {
        self.request.instructions.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// The encoded turns.
    pub(super) fn turns(&mut self, encode: &dyn Fn(&Turn<'_>) -> String) -> Result<Vec<Arc<str>>, Error> {
        let reader = Reader { model: &self.model, files: self.request.model.files, rules: self.rules };
        self.cache.turns(&self.request.messages, &reader, encode)
    }

    /// The tools, of which the wire writes the functions.
    pub(super) fn tools(&mut self, write: &dyn Fn(&str, &str) -> String) -> Result<Tools, Error> {
        let own = &self.options.provider_tools;
        let functions = self.cache.tools(&self.request.tools, own, &|| {
            let replaced: Vec<_> = own.iter().filter_map(name_of).collect();
            tool_list(&mut self.request.tools.iter().filter(|tool| !replaced.contains(&tool.name)), write)
        })?;
        Ok(Tools { functions, own: own.iter().map(|tool| tool.as_str().into()).collect() })
    }

    /// Refuses a prompt with a file that the wire cannot carry. In older messages and in results the model reads a note in
    /// its place: a conversation goes on although it once had such a file.
    pub(super) fn check_files(&self, encode: &dyn Fn(&File) -> Result<String, Error>) -> Result<(), Error> {
        let Some(Body::User(prompt)) = self.request.messages.last().map(|message| &message.body) else { return Ok(()) };
        for content in &prompt.content {
            if let Content::File(file) = content
                && self.request.model.files.contains(file)
            {
                encode(file)?;
            }
        }
        Ok(())
    }

    /// The names of the tools that were called in the history, as they are sent.
    #[cfg(feature = "bedrock")]
    pub(super) fn called_tools(&self) -> Vec<String> {
        let mut names = Vec::new();
        for message in &self.request.messages {
            let Body::Assistant(assistant) = &message.body else { continue };
            for call in assistant.tool_calls() {
                let name = super::names::wire_tool_name(&call.tool_name).into_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}

/// The tools of a request, as they are sent.
#[derive(Debug)]
pub(super) struct Tools {
    /// The functions, separated by commas.
    pub(super) functions: Arc<str>,
    /// Those that the provider runs.
    pub(super) own: Vec<Arc<str>>,
}

impl Tools {
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.own.is_empty()
    }

    /// All as elements of one list.
    pub(super) fn elements(mut self) -> Vec<Arc<str>> {
        self.own.insert(0, self.functions);
        self.own
    }
}

fn name_of(tool: &RawJson) -> Option<String> {
    Object::parse(tool.as_str()).ok()?.string("name")
}

/// Refuses what no wire can carry.
fn check(request: &ModelRequest) -> Result<(), Error> {
    let options = &request.options;
    let is_off = |value: Option<f64>, limit: f64| value.is_some_and(|value| !(0.0..=limit).contains(&value));
    if is_off(options.temperature, 2.0) {
        return Err(invalid("the temperature must be a number from 0 to 2"));
    }
    if is_off(options.top_p, 1.0) {
        return Err(invalid("top-p must be a number from 0 to 1"));
    }
    if options.provider_tools.iter().any(|tool| !tool.as_str().trim_start().starts_with('{')) {
        return Err(invalid("a tool of the provider must be a JSON object in the form of its protocol"));
    }
    let is_known = |name: &str| {
        request.tools.iter().any(|tool| tool.name == name)
            || options.provider_tools.iter().any(|tool| name_of(tool).as_deref() == Some(name))
    };
    match &options.tool_choice {
        Some(ToolChoice::Tool(name)) if !is_known(name) => {
            Err(invalid(format!("the tool choice names {}, which is none of the tools of this request", quoted(name))))
        }
        Some(ToolChoice::Required) if request.tools.is_empty() && options.provider_tools.is_empty() => {
            Err(invalid("the tool choice demands a call, but the request has no tools"))
        }
        _ => Ok(()),
    }
}

/// Refuses a temperature above 1, for wires that take none.
#[cfg(any(feature = "anthropic", feature = "bedrock"))]
pub(super) fn refuse_heat(options: &RequestOptions) -> Result<(), Error> {
    if options.temperature.is_none_or(|temperature| temperature <= 1.0) {
        return Ok(());
    }
    Err(invalid("this provider takes a temperature from 0 to 1"))
}

/// Refuses content cached beforehand, for wires that have none.
pub(super) fn refuse_cached_content(options: &RequestOptions) -> Result<(), Error> {
    if options.cached_content.is_none() {
        return Ok(());
    }
    Err(invalid("only Gemini and Vertex have content that is cached beforehand; leave cached_content out"))
}

/// Refuses the demand for one call at a time, for wires that cannot make it.
#[cfg(any(feature = "gemini", feature = "bedrock"))]
pub(super) fn refuse_single_calls(options: &RequestOptions) -> Result<(), Error> {
    if options.parallel_tool_calls != Some(false) {
        return Ok(());
    }
    let told = "this provider cannot be told to make one call at a time; leave the setting out and make the tools \
                sequential, so that parallel calls run one after the other";
    Err(invalid(told))
}
