//! What a recorded request asks for, in crablet's own types, so that crablet can be made to ask the same.
//!
//! Bodies are compared by shape: which members, of which types, in which order. What is free to differ is taken out of both:
//! members that are null or a default, ids that nobody needs, the older of two documented forms, and texts.

use std::sync::Arc;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    CacheRetention, Content, File, FileData, Message, Model, ModelRequest, Part, Reasoning, RequestOptions, ToolCall,
    ToolChoice, ToolSpec, anthropic, bedrock, gemini, openai_responses,
};
use serde_json::{Map, Value, json};

use super::intent::{assistant, call, raw, result, results, text, tool, user};

/// A request that asks for what this body asks for, or what crablet has no type for.
pub(crate) fn request(wire: &str, provider: &str, path: &str, body: &Value) -> Result<ModelRequest, &'static str> {
    let id = body["model"].as_str().map_or_else(|| model_in(path), str::to_owned);
    let mut asked = Asked {
        wire: wire.to_owned(),
        model: match wire {
            "anthropic" => anthropic::model(id),
            "gemini" => gemini::model(id),
            "bedrock" => bedrock::model("us-east-1", id),
            "openai-responses" => openai_responses::model(id),
            _ => openai_chat::model(Profile::from_name(provider), id),
        },
        instructions: None,
        messages: Vec::new(),
        tools: Vec::new(),
        options: RequestOptions::default(),
        is_next: false,
    };
    asked.conversation(body)?;
    asked.tools(body)?;
    asked.settings(body)?;
    Ok(ModelRequest {
        model: asked.model,
        instructions: asked.instructions.map(Into::into),
        messages: asked.messages,
        tools: asked.tools.into(),
        options: asked.options.into(),
    })
}

fn model_in(path: &str) -> String {
    let behind = path.rsplit_once("models/").or_else(|| path.rsplit_once("model/")).map_or("m", |(_, behind)| behind);
    let end = behind.find([':', '/']).unwrap_or(behind.len());
    if behind.contains("/converse") { behind.split('/').next().unwrap_or("m") } else { &behind[..end] }.to_owned()
}

struct Asked {
    wire: String,
    model: Model,
    instructions: Option<String>,
    messages: Vec<Arc<Message>>,
    tools: Vec<ToolSpec>,
    options: RequestOptions,
    /// Whether the next thing that the user says begins a message.
    is_next: bool,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn words(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        parts => list(parts).iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn kept(value: &Value, names: &[&str]) -> Option<crablet::json::RawJson> {
    let members: Map<_, _> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone()))).collect();
    (!members.is_empty()).then(|| raw(&Value::Object(members).to_string()))
}

impl Asked {
    fn conversation(&mut self, body: &Value) -> Result<(), &'static str> {
        match self.wire.as_str() {
            "openai-responses" => self.instructions = body["instructions"].as_str().map(str::to_owned),
            "gemini" => {
                let parts = &body["systemInstruction"]["parts"];
                self.instructions = Some(words(parts)).filter(|words| !words.is_empty());
            }
            "anthropic" | "bedrock" => {
                self.options.cache =
                    body["system"][0].get("cache_control").map(|marker| match marker["ttl"].as_str() {
                        Some("1h") => CacheRetention::Long,
                        _ => CacheRetention::Short,
                    });
                self.instructions = Some(words(&body["system"])).filter(|words| !words.is_empty());
            }
            _ => {}
        }
        let member = match self.wire.as_str() {
            "openai-responses" => "input",
            "gemini" => "contents",
            _ => "messages",
        };
        for turn in list(&body[member]) {
            self.is_next = true;
            match self.wire.as_str() {
                "openai-responses" => self.item(turn)?,
                "openai-chat" => self.chat_message(turn)?,
                "gemini" => self.blocks(turn["role"].as_str(), list(&turn["parts"]), Self::gemini_part)?,
                "bedrock" => self.blocks(turn["role"].as_str(), list(&turn["content"]), Self::bedrock_block)?,
                _ => self.blocks(turn["role"].as_str(), list(&turn["content"]), Self::anthropic_block)?,
            }
        }
        Ok(())
    }

    fn blocks(
        &mut self,
        role: Option<&str>,
        blocks: &[Value],
        read: fn(&mut Self, &str, &Value) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let role = match role {
            Some("assistant" | "model") => "assistant",
            Some("user") => "user",
            _ => return Err("instructions between the messages"),
        };
        blocks.iter().try_for_each(|block| read(self, role, block))
    }

    /// Adds to the message that the model is saying.
    fn say(&mut self, part: Part) {
        let id = self.messages.len().to_string();
        let mut content = match self.messages.pop() {
            Some(last) => match &last.body {
                crablet::model::Body::Assistant(spoken) => spoken.content.clone(),
                _ => {
                    self.messages.push(last);
                    Vec::new()
                }
            },
            None => Vec::new(),
        };
        content.push(part);
        self.messages.push(assistant(&id, &self.model, content));
    }

    fn hear(&mut self, content: Content) {
        let id = self.messages.len().to_string();
        let mut all = match self.messages.last().map(|last| last.body.clone()) {
            Some(crablet::model::Body::User(heard)) if !self.is_next => {
                self.messages.pop();
                heard.content
            }
            _ => Vec::new(),
        };
        self.is_next = false;
        all.push(content);
        self.messages.push(user(&id, all));
    }

    fn answer(&mut self, call_id: &str, content: Vec<Content>) {
        let id = self.messages.len().to_string();
        let mut all = match self.messages.last().map(|last| last.body.clone()) {
            Some(crablet::model::Body::Tool(answered)) => {
                self.messages.pop();
                answered.results
            }
            _ => Vec::new(),
        };
        all.push(result(call_id, "t", content, false));
        self.messages.push(results(&id, all));
    }

    fn calls(&mut self, id: &str, name: &str, input: &Value, replay: Option<crablet::json::RawJson>) {
        let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
        let Part::ToolCall(made) = call(id, name, &input) else { panic!("no call") };
        self.say(Part::ToolCall(ToolCall { replay, ..made }));
    }

    fn anthropic_block(&mut self, role: &str, block: &Value) -> Result<(), &'static str> {
        if block.get("cache_control").is_some() {
            return Err("a marker of the cache on a block");
        }
        let of = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match (role, block["type"].as_str().unwrap_or_default()) {
            ("user", "text") => self.hear(text(&of("text"))),
            ("user", "document") => {
                let source = &block["source"];
                if block["citations"]["enabled"] == true {
                    return Err("a document that shall be cited");
                }
                let data = match source["type"].as_str() {
                    Some("text") => {
                        // What matters is that it is text.
                        FileData::Base64("aGk=".into())
                    }
                    Some("url") => FileData::Url(source["url"].as_str().unwrap_or_default().to_owned()),
                    _ => return Err("a file that was stored beforehand"),
                };
                let media_type = source["media_type"].as_str().unwrap_or("application/pdf").to_owned();
                self.hear(Content::File(File { media_type, data, name: None }));
            }
            ("user", "tool_result") => self.answer(&of("tool_use_id"), vec![text(&words(&block["content"]))]),
            ("assistant", "text") => {
                self.say(Part::Text { text: of("text"), replay: kept(block, &["citations"]) });
            }
            ("assistant", "thinking") => {
                self.say(Part::Reasoning { text: of("thinking"), replay: kept(block, &["signature"]) });
            }
            ("assistant", "tool_use") => self.calls(&of("id"), &of("name"), &block["input"], None),
            _ => return Err("another block"),
        }
        Ok(())
    }

    fn gemini_part(&mut self, role: &str, part: &Value) -> Result<(), &'static str> {
        let replay = kept(part, &["thoughtSignature"]);
        if let Some(words) = part["text"].as_str() {
            match (role, part["thought"] == true) {
                ("user", _) => self.hear(text(words)),
                (_, true) => self.say(Part::Reasoning { text: words.into(), replay }),
                (_, false) => self.say(Part::Text { text: words.into(), replay }),
            }
        } else if let Some(function) = part.get("functionCall").filter(|function| !function.is_null()) {
            let name = function["name"].as_str().unwrap_or_default();
            let mut members = Map::new();
            for (member, value) in [("thoughtSignature", part.get("thoughtSignature")), ("id", function.get("id"))] {
                members.extend(value.map(|value| (member.to_owned(), value.clone())));
            }
            let replay = (!members.is_empty()).then(|| raw(&Value::Object(members).to_string()));
            self.calls(name, name, &function["args"], replay);
        } else if let Some(response) = part.get("functionResponse") {
            let mut content = vec![text(&response["response"].to_string())];
            for file in list(&response["parts"]) {
                let of = |name: &str| file["inlineData"][name].as_str().unwrap_or_default().to_owned();
                let data = FileData::Base64(of("data").into());
                content.push(Content::File(File { media_type: of("mimeType"), data, name: None }));
            }
            self.answer(response["name"].as_str().unwrap_or_default(), content);
        } else {
            return Err("another part");
        }
        Ok(())
    }

    fn bedrock_block(&mut self, role: &str, block: &Value) -> Result<(), &'static str> {
        if let Some(words) = block["text"].as_str() {
            if role == "user" {
                self.hear(text(words));
            } else {
                self.say(Part::Text { text: words.into(), replay: None });
            }
        } else if let Some(call) = block.get("toolUse") {
            let of = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
            self.calls(&of("toolUseId"), &of("name"), &call["input"], None);
        } else if let Some(answer) = block.get("toolResult") {
            let words = answer["content"][0].to_string();
            self.answer(answer["toolUseId"].as_str().unwrap_or_default(), vec![text(&words)]);
        } else if let Some(document) = block.get("document") {
            let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let media_type = if document["format"] == "txt" { "text/plain" } else { "application/pdf" };
            let data = FileData::Base64(of(&document["source"]["bytes"]).into());
            let name = Some(of(&document["name"]));
            self.hear(Content::File(File { media_type: media_type.into(), data, name }));
        } else {
            return Err("another block");
        }
        Ok(())
    }

    fn chat_message(&mut self, turn: &Value) -> Result<(), &'static str> {
        match turn["role"].as_str().unwrap_or_default() {
            "system" | "developer" if self.messages.is_empty() => self.instructions = Some(words(&turn["content"])),
            "user" => match &turn["content"] {
                Value::String(words) => {
                    let id = self.messages.len().to_string();
                    self.messages.push(user(&id, vec![text(words)]));
                }
                parts => {
                    let content = list(parts).iter().map(chat_part).collect::<Result<Vec<_>, _>>()?;
                    let id = self.messages.len().to_string();
                    self.messages.push(user(&id, content));
                }
            },
            "tool" => {
                self.answer(turn["tool_call_id"].as_str().unwrap_or_default(), vec![text(&words(&turn["content"]))])
            }
            "assistant" => {
                let is_known = Profile::from_name(&self.model.provider) != Profile::Custom;
                if turn.get("reasoning_content").is_some() && !is_known {
                    return Err("reasoning sent back to a server that may not want it");
                }
                if turn.get("reasoning_details").is_some() || turn.get("reasoning_content").is_some() {
                    let text = turn["reasoning_content"].as_str().unwrap_or("Hm.").to_owned();
                    self.say(Part::Reasoning { text, replay: kept(turn, &["reasoning_details"]) });
                }
                let said = words(&turn["content"]);
                if !said.is_empty() {
                    self.say(Part::Text { text: said, replay: None });
                }
                for made in list(&turn["tool_calls"]) {
                    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let function = &made["function"];
                    self.calls(&of(&made["id"]), &of(&function["name"]), &function["arguments"], None);
                }
            }
            _ => return Err("instructions between the messages"),
        }
        Ok(())
    }

    fn item(&mut self, item: &Value) -> Result<(), &'static str> {
        let of = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match (item["type"].as_str().unwrap_or_default(), item["role"].as_str().unwrap_or_default()) {
            ("message", "system") if self.messages.is_empty() => self.instructions = Some(words(&item["content"])),
            ("message", "user") => {
                let content = match &item["content"] {
                    Value::String(words) => vec![text(words)],
                    parts => list(parts).iter().map(|part| text(part["text"].as_str().unwrap_or_default())).collect(),
                };
                let id = self.messages.len().to_string();
                self.messages.push(user(&id, content));
            }
            ("message", "assistant") => self.say(Part::Text { text: words(&item["content"]), replay: None }),
            ("reasoning", _) => self.say(Part::Reasoning { text: String::new(), replay: Some(raw(&item.to_string())) }),
            ("function_call", _) => self.calls(&of("call_id"), &of("name"), &item["arguments"], None),
            ("function_call_output", _) => self.answer(&of("call_id"), vec![text(&of("output"))]),
            _ => return Err("another item"),
        }
        Ok(())
    }

    fn tools(&mut self, body: &Value) -> Result<(), &'static str> {
        let given = if self.wire == "bedrock" { &body["toolConfig"]["tools"] } else { &body["tools"] };
        let mut own = Vec::new();
        for given in list(given) {
            let functions = match self.wire.as_str() {
                "gemini" => list(&given["functionDeclarations"]).to_vec(),
                "openai-chat" => vec![given["function"].clone()],
                "bedrock" => vec![given["toolSpec"].clone()],
                "openai-responses" if given["type"] != "function" => Vec::new(),
                "anthropic" if given.get("input_schema").is_none() => Vec::new(),
                _ => vec![given.clone()],
            };
            if functions.is_empty() {
                own.push(raw(&without_nulls(given.clone()).to_string()));
            }
            for function in functions {
                if function.get("cache_control").is_some() {
                    return Err("a marker of the cache on a tool");
                }
                let schema = ["input_schema", "parameters", "inputSchema"].iter().find_map(|name| function.get(*name));
                let schema = schema.map_or(json!({}), |schema| schema.get("json").unwrap_or(schema).clone());
                let mut spec = tool(function["name"].as_str().unwrap_or_default(), &schema.to_string());
                spec.description = function["description"].as_str().unwrap_or_default().to_owned();
                self.tools.push(spec);
            }
        }
        self.options.provider_tools = own.into();
        Ok(())
    }

    fn settings(&mut self, body: &Value) -> Result<(), &'static str> {
        if body["tool_choice"]["type"] == "allowed_tools" {
            return Err("a choice of several tools");
        }
        if &*self.model.provider == "deepseek"
            && body.get("reasoning_effort").is_some()
            && body.get("thinking").is_none()
        {
            return Err("an effort without the switch before it");
        }
        let options = &mut self.options;
        let mut extra = Map::new();
        let settings = match self.wire.as_str() {
            "gemini" => &body["generationConfig"],
            "bedrock" => &body["inferenceConfig"],
            _ => body,
        };
        let first = |names: &[&str]| names.iter().find_map(|name| settings.get(*name).filter(|value| !value.is_null()));
        options.max_tokens =
            first(&["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"])
                .and_then(Value::as_u64);
        if let Some(temperature) = first(&["temperature"]) {
            options.temperature = Some(temperature.as_f64().ok_or("a temperature that is no number")?);
        }
        options.seed = first(&["seed", "random_seed"]).and_then(Value::as_u64);
        let stop = first(&["stop", "stop_sequences", "stopSequences"]).map_or(&[][..], list);
        options.stop = stop.iter().filter_map(|stop| stop.as_str().map(str::to_owned)).collect();
        options.parallel_tool_calls = body["parallel_tool_calls"].as_bool();
        options.tool_choice = choice(body);
        options.store = body["store"].as_bool().filter(|stores| *stores);
        let thinking = &settings["thinkingConfig"];
        options.reasoning = match (&body["thinking"]["type"], &thinking["thinkingBudget"], &thinking["thinkingLevel"]) {
            (_, Value::Number(budget), _) => budget.as_u64().map(Reasoning::Budget),
            (Value::String(kind), ..) if kind == "disabled" => Some(Reasoning::Off),
            (Value::String(kind), ..) if kind == "adaptive" => Some(effort("high")),
            (Value::String(_), ..) => {
                let budget = body["thinking"]["budget_tokens"].as_u64();
                Some(budget.map_or(Reasoning::Budget(8192), Reasoning::Budget))
            }
            (.., Value::String(level)) => Some(effort(level)),
            _ => {
                let asked = [&body["reasoning"]["effort"], &body["reasoning_effort"]];
                let budget = body["reasoning"]["max_tokens"].as_u64().map(Reasoning::Budget);
                budget.or_else(|| asked.into_iter().find_map(Value::as_str).map(effort))
            }
        };
        options.cached_content = body["cachedContent"].as_str().map(str::to_owned);
        const KNOWN: &[&str] = &[
            "model",
            "messages",
            "contents",
            "input",
            "system",
            "instructions",
            "systemInstruction",
            "tools",
            "toolConfig",
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "temperature",
            "seed",
            "random_seed",
            "stop",
            "stop_sequences",
            "parallel_tool_calls",
            "tool_choice",
            "store",
            "thinking",
            "reasoning",
            "reasoning_effort",
            "generationConfig",
            "inferenceConfig",
            "cachedContent",
            "stream",
            "stream_options",
            "include",
        ];
        for (name, value) in body.as_object().into_iter().flatten() {
            if !KNOWN.contains(&name.as_str()) && !value.is_null() {
                extra.insert(name.clone(), value.clone());
            }
        }
        if let Some(mut rest) = body["reasoning"].as_object().cloned() {
            rest.retain(|name, _| !matches!(name.as_str(), "effort" | "summary" | "max_tokens"));
            if !rest.is_empty() {
                extra.insert("reasoning".to_owned(), Value::Object(rest));
            }
        }
        if let Some(format) = settings.get("responseJsonSchema").filter(|_| self.wire == "gemini") {
            extra.insert(
                "generationConfig".to_owned(),
                json!({"responseJsonSchema": format, "responseMimeType": "application/json"}),
            );
        }
        if !extra.is_empty() {
            options.extra_body = Some(raw(&Value::Object(extra).to_string()));
        }
        Ok(())
    }
}

fn chat_part(part: &Value) -> Result<Content, &'static str> {
    let file = |media_type: &str, address: &Value, name: Option<&str>| {
        let address = address.as_str().unwrap_or_default();
        let inside = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let (media_type, data) = match inside {
            Some((media_type, data)) => (media_type, FileData::Base64(data.into())),
            None => (media_type, FileData::Url(address.to_owned())),
        };
        Content::File(File { media_type: media_type.to_owned(), data, name: name.map(str::to_owned) })
    };
    Ok(match part["type"].as_str().unwrap_or_default() {
        "text" => text(part["text"].as_str().unwrap_or_default()),
        "image_url" => file("image/png", &part["image_url"]["url"], None),
        "video_url" => file("video/mp4", &part["video_url"]["url"], None),
        "document_url" => file("application/pdf", &part["document_url"], part["document_name"].as_str()),
        "file" => file("application/pdf", &part["file"]["file_data"], part["file"]["filename"].as_str()),
        "input_audio" => {
            let data = part["input_audio"]["data"].as_str().unwrap_or_default();
            Content::File(File { media_type: "audio/mp3".into(), data: FileData::Base64(data.into()), name: None })
        }
        _ => return Err("another part"),
    })
}

fn effort(word: &str) -> Reasoning {
    use crablet::model::Effort;
    match word {
        "none" => Reasoning::Off,
        "minimal" => Reasoning::Effort(Effort::Minimal),
        "low" => Reasoning::Effort(Effort::Low),
        "medium" => Reasoning::Effort(Effort::Medium),
        _ => Reasoning::Effort(Effort::High),
    }
}

fn choice(body: &Value) -> Option<ToolChoice> {
    let config = &body["toolConfig"]["functionCallingConfig"];
    let named = [
        &body["tool_choice"]["function"]["name"],
        &body["tool_choice"]["name"],
        &config["allowed_function_names"][0],
        &config["allowedFunctionNames"][0],
        &body["toolConfig"]["toolChoice"]["tool"]["name"],
    ];
    if let Some(name) = named.into_iter().find_map(Value::as_str) {
        return Some(ToolChoice::Tool(name.to_owned()));
    }
    if body["toolConfig"]["toolChoice"].get("any").is_some() {
        return Some(ToolChoice::Required);
    }
    let words = [&body["tool_choice"], &body["tool_choice"]["type"], &config["mode"]];
    match words.into_iter().find_map(Value::as_str)?.to_lowercase().as_str() {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        _ => Some(ToolChoice::Required),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(members.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// The shape of a body, without what is free to differ.
pub(crate) fn shape(wire: &str, body: &Value) -> Value {
    let mut body = without_nulls(body.clone());
    let Some(members) = body.as_object_mut() else { return Value::Null };
    // The marker of the whole body is newer than the recordings.
    for free in ["model", "stream", "stream_options", "include", "cache_control"] {
        members.remove(free);
    }
    if members.get("store") == Some(&json!(false)) {
        members.remove("store");
    }
    for config in ["generationConfig", "inferenceConfig"] {
        if members.get(config) == Some(&json!({})) {
            members.remove(config);
        }
    }
    // Both are accepted for the limit.
    for older in ["max_tokens", "max_completion_tokens"] {
        if let Some(limit) = members.remove(older) {
            members.insert("limit".to_owned(), limit);
        }
    }
    match wire {
        "openai-responses" => {
            let first = members["input"]
                .as_array_mut()
                .filter(|input| input.first().is_some_and(|item| item["role"] == "system"));
            if let Some(system) = first.map(|input| input.remove(0)) {
                members.insert("instructions".to_owned(), words(&system["content"]).into());
            }
            if members.get("instructions") == Some(&json!("")) {
                members.remove("instructions");
            }
            // Only what is encrypted can be sent back where nothing is stored.
            if let Some(input) = members["input"].as_array_mut() {
                input.retain(|item| item["type"] != "reasoning" || item.get("encrypted_content").is_some());
            }
            if let Some(reasoning) = members.get_mut("reasoning").and_then(Value::as_object_mut) {
                reasoning.remove("summary");
            }
        }
        "gemini" => {
            if let Some(instruction) = members.get_mut("systemInstruction").and_then(Value::as_object_mut) {
                instruction.remove("role");
            }
        }
        _ => {}
    }
    reduced(wire, "", &body)
}

fn reduced(wire: &str, name: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            if matches!(name, "parameters" | "input_schema" | "json" | "response" | "schema" | "parametersJsonSchema" | "args" | "input" if name != "input" || wire != "openai-responses")
            {
                return json!({});
            }
            let mut kept = Map::new();
            for (name, value) in members {
                let is_free = match name.as_str() {
                    "thought" => value == &json!(false),
                    "detail" | "status" | "strict" | "prefix" | "display" | "index" => true,
                    // Adaptive thinking has a default.
                    "effort" => wire == "anthropic",
                    // Items are named where they were stored.
                    "id" => wire == "openai-responses" && members.get("type") != Some(&json!("reasoning")),
                    // Not needed where it is encrypted.
                    "content" => members.get("type") == Some(&json!("reasoning")),
                    _ => false,
                };
                if is_free {
                    continue;
                }
                // The names of the older form.
                let name = match name.as_str() {
                    "parametersJsonSchema" => "parameters",
                    "allowed_function_names" => "allowedFunctionNames",
                    other => other,
                };
                kept.insert(name.to_owned(), reduced(wire, name, value));
            }
            let role = kept.get("role").cloned();
            if role == Some(json!("developer")) {
                kept.insert("role".to_owned(), json!("system"));
            }
            // One text is written as a text or as a list of one.
            if let Some(content) = kept.get_mut("content") {
                let is_one = content.as_array().is_some_and(|parts| {
                    parts.len() == 1 && matches!(parts[0]["type"].as_str(), Some("text" | "input_text" | "output_text"))
                });
                if is_one && matches!(wire, "openai-chat" | "openai-responses") {
                    *content = json!("text");
                }
            }
            if kept.get("output_config") == Some(&json!({})) {
                kept.remove("output_config");
            }
            // A result is JSON or text.
            if wire == "bedrock" && kept.len() == 1 && kept.contains_key("json") && name == "content" {
                return json!({"text": "text"});
            }
            Value::Object(kept)
        }
        Value::Array(values) => {
            // Thoughts are of use only with their signature.
            let is_sent = |part: &&Value| part["thought"] != true || part.get("thoughtSignature").is_some();
            values.iter().filter(is_sent).map(|value| reduced(wire, name, value)).collect()
        }
        Value::String(word) if matches!(name, "type" | "role" | "mode" | "format" | "effort" | "thinkingLevel") => {
            word.as_str().into()
        }
        Value::String(_) => json!("text"),
        Value::Number(_) => json!(0),
        other => other.clone(),
    }
}
