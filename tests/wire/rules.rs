//! What each service demands of a body whatever was said, written from its documents and from what it is known to refuse.

use std::collections::BTreeSet;

use serde_json::Value;

/// The rules that this body breaks, in words.
pub(crate) fn broken(wire: &str, provider: &str, model: &str, body: &Value) -> Vec<String> {
    let mut broken = Broken::default();
    match wire {
        "anthropic" => anthropic(body, &mut broken),
        "openai-chat" | "azure-chat" => chat(provider, body, &mut broken),
        "openai-responses" | "azure-responses" => responses(body, &mut broken),
        "gemini" | "vertex" => gemini(model, body, &mut broken),
        "bedrock" => bedrock(body, &mut broken),
        other => panic!("no rules for {other}"),
    }
    broken.0
}

#[derive(Default)]
struct Broken(Vec<String>);

impl Broken {
    fn unless(&mut self, holds: bool, rule: impl Into<String>) {
        if !holds {
            self.0.push(rule.into());
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn all_different(ids: &[String], broken: &mut Broken) {
    broken.unless(ids.iter().collect::<BTreeSet<_>>().len() == ids.len(), format!("ids are used twice: {ids:?}"));
}

/// Messages API: roles, blocks, tool use, extended thinking, server tools; prefill is refused from 4.6 on.
fn anthropic(body: &Value, broken: &mut Broken) {
    // The service makes one message of neighbours of one role.
    let mut messages: Vec<(&str, Vec<&Value>)> = Vec::new();
    for message in list(&body["messages"]) {
        let role = text(&message["role"]);
        broken.unless(matches!(role, "user" | "assistant"), format!("the role {role}"));
        broken.unless(!list(&message["content"]).is_empty(), "a message without content");
        match messages.last_mut() {
            Some((last, blocks)) if *last == role => blocks.extend(list(&message["content"])),
            _ => messages.push((role, list(&message["content"]).iter().collect())),
        }
    }
    broken.unless(!messages.is_empty(), "no messages");
    broken.unless(body["max_tokens"].as_u64() > Some(0), "no limit");
    let mut ids = Vec::new();
    for (position, (role, blocks)) in messages.iter().enumerate() {
        let is_last = position + 1 == messages.len();
        let of = |kind: &str, member: &str, blocks: &[&Value]| -> Vec<String> {
            let of_kind = blocks.iter().filter(|block| block["type"] == kind);
            of_kind.map(|block| text(&block[member]).to_owned()).collect()
        };
        for block in blocks {
            let kind = text(&block["type"]);
            match kind {
                "text" => broken.unless(!is_blank(text(&block["text"])), "a blank text"),
                "thinking" => broken.unless(block["signature"].is_string(), "thinking without signature"),
                "tool_use" => {
                    broken.unless(is_word(text(&block["name"])), format!("the name {}", block["name"]));
                    broken.unless(is_word(text(&block["id"])), format!("the id {}", block["id"]));
                    broken.unless(block["input"].is_object(), "an input that is no object");
                }
                "image" => {
                    let source = &block["source"];
                    let media_type = text(&source["media_type"]);
                    let is_known = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media_type);
                    broken.unless(source["type"] == "url" || is_known, format!("an image of type {media_type}"));
                }
                _ => {}
            }
        }
        let uses = of("tool_use", "id", blocks);
        let results = of("tool_result", "tool_use_id", blocks);
        for failed in blocks.iter().filter(|block| block["is_error"] == true) {
            let content = list(&failed["content"]);
            let is_text = !content.is_empty() && content.iter().all(|part| part["type"] == "text");
            broken.unless(is_text, format!("a failed result that is not text: {failed}"));
        }
        if *role == "assistant" {
            let last = blocks.last().map_or("", |block| text(&block["type"]));
            broken.unless(!last.contains("thinking"), "the last block is thinking");
            let is_paused = blocks.iter().any(|block| !matches!(text(&block["type"]), "text" | "thinking"));
            broken.unless(!is_last || is_paused, "words put into the model's mouth");
            let answers = messages.get(position + 1).map(|(_, blocks)| of("tool_result", "tool_use_id", blocks));
            broken.unless(answers.unwrap_or_default() == uses, "calls and results differ");
            for block in blocks.iter().filter(|block| text(&block["type"]).ends_with("_tool_use")) {
                let is_answered = blocks.iter().any(|other| other["tool_use_id"] == block["id"]);
                broken.unless(is_answered || is_last, format!("{} without a result", block["type"]));
            }
        } else {
            let before = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
            broken.unless(before == results.len(), "something stands before the results");
            broken.unless(results.is_empty() || position > 0, "results without calls");
        }
        ids.extend(uses);
    }
    all_different(&ids, broken);
}

/// Chat Completions, and what Mistral, DeepSeek and text-only servers are stricter in.
fn chat(provider: &str, body: &Value, broken: &mut Broken) {
    let messages = list(&body["messages"]);
    broken.unless(!messages.is_empty(), "no messages");
    let mut open: Vec<String> = Vec::new();
    let mut ids = Vec::new();
    for message in messages {
        let role = text(&message["role"]);
        if role == "tool" {
            let id = text(&message["tool_call_id"]).to_owned();
            broken.unless(open.first() == Some(&id), format!("a result for {id}, while {open:?} wait"));
            broken.unless(message["content"].is_string(), "a result that is no text");
            open.retain(|waiting| *waiting != id);
            continue;
        }
        broken.unless(open.is_empty(), format!("{open:?} have no result"));
        match role {
            "system" | "developer" => broken.unless(!is_blank(text(&message["content"])), "blank instructions"),
            "user" => match &message["content"] {
                Value::String(words) => broken.unless(!is_blank(words), "a blank message"),
                parts => {
                    broken.unless(!list(parts).is_empty(), "a message without content");
                    for part in list(parts) {
                        let kind = text(&part["type"]);
                        let is_text_only = provider == "deepseek";
                        broken.unless(!is_text_only || kind == "text", format!("{kind} for a text-only server"));
                        broken.unless(kind != "text" || !is_blank(text(&part["text"])), "a blank part");
                        let is_bare = provider == "mistral";
                        broken.unless(kind != "input_audio" || part["input_audio"].is_string() == is_bare, "bad audio");
                        broken.unless(kind != "file" || provider != "mistral", "a file instead of a document_url");
                    }
                }
            },
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                let content = text(&message["content"]);
                broken.unless(!is_blank(content) || !calls.is_empty(), "the model says nothing");
                broken.unless(provider != "mistral" || message["content"].is_string(), "no content");
                for call in calls {
                    let id = text(&call["id"]);
                    let fits = if provider == "mistral" {
                        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
                    } else {
                        (1..=64).contains(&id.chars().count())
                    };
                    broken.unless(fits, format!("the id {id:?}"));
                    broken.unless(is_word(text(&call["function"]["name"])), format!("the name {call}"));
                    let arguments = serde_json::from_str::<Value>(text(&call["function"]["arguments"]));
                    broken.unless(arguments.is_ok_and(|value| value.is_object()), "arguments that are no object");
                    open.push(id.to_owned());
                    ids.push(id.to_owned());
                }
            }
            other => broken.unless(false, format!("the role {other}")),
        }
    }
    broken.unless(open.is_empty(), format!("{open:?} have no result"));
    for pair in messages.windows(2).filter(|_| provider == "llamacpp") {
        // Files of results follow in a message of their own.
        let is_twice = pair.iter().all(|message| message["role"] == "user");
        let has_files = pair[0]["content"].to_string().contains("Files from the result of");
        broken.unless(!is_twice || has_files, "the user speaks twice in a row");
    }
    let last = messages.last().map_or("", |message| text(&message["role"]));
    broken
        .unless(provider != "mistral" || matches!(last, "user" | "tool"), "Mistral does not go on with its own words");
    all_different(&ids, broken);
}

/// Responses: reasoning leads to something, each call has one output, nothing is named that is not stored.
fn responses(body: &Value, broken: &mut Broken) {
    let items = list(&body["input"]);
    broken.unless(!items.is_empty(), "no input");
    let mut calls = Vec::new();
    let mut outputs = Vec::new();
    for (position, item) in items.iter().enumerate() {
        match text(&item["type"]) {
            "message" => {
                broken.unless(item.get("id").is_none(), "a message with an id");
                match &item["content"] {
                    Value::String(words) => broken.unless(!is_blank(words), "a blank message"),
                    parts => {
                        broken.unless(!list(parts).is_empty(), "a message without content");
                        let is_blank = |part: &Value| part["type"] == "input_text" && is_blank(text(&part["text"]));
                        broken.unless(!list(parts).iter().any(is_blank), "a blank part");
                    }
                }
            }
            "reasoning" => {
                broken.unless(item["encrypted_content"].is_string(), "reasoning that is not encrypted");
                broken.unless(item["summary"].is_array(), "reasoning without summary");
                let next = items.get(position + 1);
                let leads = next.is_some_and(|next| next["role"] != "user" && next["type"] != "function_call_output");
                broken.unless(leads, "reasoning without the item that follows it");
            }
            "function_call" => {
                broken.unless(is_word(text(&item["name"])), format!("the name {}", item["name"]));
                broken.unless(item.get("id").is_none(), "a call with an id");
                let arguments = serde_json::from_str::<Value>(text(&item["arguments"]));
                broken.unless(arguments.is_ok_and(|value| value.is_object()), "arguments that are no object");
                calls.push(text(&item["call_id"]).to_owned());
            }
            "function_call_output" => {
                let id = text(&item["call_id"]).to_owned();
                broken.unless(calls.contains(&id), "an output before its call");
                outputs.push(id);
            }
            "computer_call" => broken.unless(false, "a call of the computer without its output"),
            _ => {}
        }
    }
    broken.unless(calls == outputs, format!("calls {calls:?} and outputs {outputs:?}"));
    broken.unless(calls.iter().all(|id| (1..=64).contains(&id.chars().count())), format!("ids {calls:?}"));
    all_different(&calls, broken);
}

/// `generateContent`: function calling, thought signatures.
fn gemini(model: &str, body: &Value, broken: &mut Broken) {
    let contents = list(&body["contents"]);
    let role = |position: usize| contents.get(position).map_or("", |content| text(&content["role"]));
    broken.unless(role(0) == "user", "the user does not speak first");
    broken.unless(role(contents.len().saturating_sub(1)) == "user", "the user does not speak last");
    for (position, content) in contents.iter().enumerate() {
        let parts = list(&content["parts"]);
        broken.unless(!parts.is_empty(), "a content without parts");
        let of = |member: &str, content: Option<&Value>| -> Vec<String> {
            let parts = content.map_or(&[][..], |content| list(&content["parts"]));
            parts.iter().filter_map(|part| Some(text(&part.get(member)?["name"]).to_owned())).collect()
        };
        for part in parts {
            let data = ["text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"];
            let data = data.iter().filter(|name| part.get(**name).is_some()).count();
            broken.unless(data == 1, format!("a part with {data} kinds of data: {part}"));
            let is_blank = part.get("text").is_some_and(|words| is_blank(text(words)));
            broken.unless(!is_blank || part.get("thoughtSignature").is_some(), "a blank text");
        }
        let calls = of("functionCall", Some(content));
        let answers = of("functionResponse", contents.get(position + 1));
        if role(position) == "model" {
            broken.unless(role(position + 1) != "model", "the model speaks twice");
            broken.unless(calls == answers, format!("calls {calls:?} and responses {answers:?}"));
            let first = parts.iter().find(|part| part.get("functionCall").is_some());
            let is_signed = first.is_none_or(|part| part["thoughtSignature"].is_string());
            broken.unless(is_signed || model.contains("gemini-2"), "a first call without signature");
        } else {
            broken.unless(calls.is_empty(), "the user makes calls");
            let is_before = role(position + 1) == "user" && !answers.is_empty();
            broken.unless(!is_before, "responses without calls");
        }
        broken.unless(calls.iter().all(|name| is_word(name)), format!("names {calls:?}"));
    }
}

/// Converse: roles alternate, each call is answered in the next message, tools are named where there are calls.
fn bedrock(body: &Value, broken: &mut Broken) {
    let messages = list(&body["messages"]);
    let mut ids = Vec::new();
    for (position, message) in messages.iter().enumerate() {
        let expected = if position % 2 == 0 { "user" } else { "assistant" };
        broken.unless(message["role"] == expected, format!("{} at place {position}", message["role"]));
        let blocks = list(&message["content"]);
        broken.unless(!blocks.is_empty(), "a message without content");
        let of = |member: &str, message: Option<&Value>| -> Vec<String> {
            let blocks = message.map_or(&[][..], |message| list(&message["content"]));
            blocks.iter().filter_map(|block| Some(text(&block.get(member)?["toolUseId"]).to_owned())).collect()
        };
        for block in blocks {
            broken.unless(!block.get("text").is_some_and(|words| is_blank(text(words))), "a blank text");
            if let Some(result) = block.get("toolResult") {
                broken.unless(!list(&result["content"]).is_empty(), "a result without content");
            }
            if let Some(call) = block.get("toolUse") {
                broken.unless(is_word(text(&call["name"])) && call["input"].is_object(), format!("the call {call}"));
                broken.unless(body["toolConfig"]["tools"].is_array(), "calls without tools");
            }
            if let Some(document) = block.get("document") {
                let name = text(&document["name"]);
                let fits = |character: char| character.is_ascii_alphanumeric() || "-()[] ".contains(character);
                broken.unless((1..=200).contains(&name.len()) && name.chars().all(fits), format!("the name {name}"));
                broken.unless(blocks.iter().any(|block| block.get("text").is_some()), "a document without text");
            }
            if let Some(image) = block.get("image") {
                let format = text(&image["format"]);
                broken.unless(["png", "jpeg", "gif", "webp"].contains(&format), format!("the image format {format}"));
            }
        }
        let calls = of("toolUse", Some(message));
        broken.unless(calls.iter().all(|id| is_word(id)), format!("ids {calls:?}"));
        if expected == "assistant" {
            let last = blocks.last().is_some_and(|block| block.get("reasoningContent").is_some());
            broken.unless(!last, "the last block is reasoning");
            let answers = of("toolResult", messages.get(position + 1));
            broken.unless(calls == answers, format!("calls {calls:?} and results {answers:?}"));
        }
        ids.extend(calls);
    }
    broken.unless(messages.len() % 2 == 1, "the user does not speak last");
    all_different(&ids, broken);
}
