//! A chat in a page, in Rust alone: the agent, its tool and the page's own behaviour are compiled to WebAssembly.

#![cfg(target_arch = "wasm32")]

use crablet::agent::{Agent, EventKind, ToolDefinition};
use crablet::host::Runner;
use crablet::json::RawJson;
use crablet::model::openai_chat;
use crablet::web::WebHost;
use crablet::{Error, ErrorKind};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::spawn_local;
use web_sys::{Document, Element, Event, HtmlInputElement};

#[derive(serde::Deserialize)]
struct Nothing {}

/// Runs when the module is loaded: answers the question whenever the form is sent.
#[wasm_bindgen(start)]
fn start() -> Result<(), JsValue> {
    let document = web_sys::window().and_then(|window| window.document()).ok_or("this is no page")?;
    let form = element(&document, "form")?;
    let place = document.clone();
    let asked = Closure::<dyn Fn(Event)>::new(move |event: Event| {
        event.prevent_default();
        let document = place.clone();
        spawn_local(async move {
            let Ok(answer) = element(&document, "answer") else { return };
            answer.set_text_content(Some("…"));
            if let Err(error) = ask(&document, &answer).await {
                answer.set_text_content(Some(&format!("{}: {error}", error.kind())));
            }
        });
    });
    form.add_event_listener_with_callback("submit", asked.as_ref().unchecked_ref())?;
    // The page needs it for as long as it is there.
    asked.forget();
    element(&document, "ask")?.remove_attribute("disabled")
}

/// Asks the model and shows the answer as it comes.
async fn ask(document: &Document, answer: &Element) -> Result<(), Error> {
    let agent = agent(&value(document, "address")?, &value(document, "model")?)?;
    let mut run = agent.conversation()?.send(value(document, "question")?)?;
    let mut text = String::new();
    let mut failure = None;
    while let Some(events) = run.next().await {
        for event in events {
            match event.kind {
                EventKind::TextDelta(_, delta) => text.push_str(&delta),
                EventKind::TextEnd(_) => text.push('\n'),
                EventKind::ToolCall { tool_name, .. } => text.push_str(&format!("[{tool_name}]\n")),
                EventKind::RunEnd(end) => failure = end.error,
                _ => {}
            }
        }
        answer.set_text_content(Some(&text));
    }
    failure.map_or(Ok(()), Err)
}

/// The agent, with one tool that asks the browser.
fn agent(address: &str, model: &str) -> Result<Runner<WebHost>, Error> {
    let schema = RawJson::parse(r#"{"type": "object", "properties": {}}"#).map_err(invalid)?;
    let time = ToolDefinition::new("local_time", "The date and time where the user is", schema);
    Ok(Runner::new(WebHost::new(), Agent::new(openai_chat::compatible(address, model)))
        .instructions("Answer briefly.")
        .tool(time, async |_: Nothing, _| String::from(js_sys::Date::new_0().to_string())))
}

fn value(document: &Document, id: &str) -> Result<String, Error> {
    let field = element(document, id).ok().and_then(|element| element.dyn_into::<HtmlInputElement>().ok());
    field.map(|field| field.value()).ok_or_else(|| invalid(format!("the page has no field #{id}")))
}

fn element(document: &Document, id: &str) -> Result<Element, JsValue> {
    document.get_element_by_id(id).ok_or_else(|| JsValue::from_str(&format!("the page has no #{id}")))
}

fn invalid(reason: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidInput, reason.to_string())
}
