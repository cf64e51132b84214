//! The event stream parser, as JavaScript holds it.

use crablet::sse::SseParser;
use crablet::{Error, ErrorKind};
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::thrown::thrown;

/// A parser of `text/event-stream`.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct SseHandle(SseParser);

#[wasm_bindgen]
impl SseHandle {
    /// A parser at the beginning of a stream.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes; gives the events that are complete, as the JSON text of a list.
    pub fn push(&mut self, bytes: &[u8]) -> Result<String, JsValue> {
        self.0.push(bytes);
        let mut events = Vec::new();
        loop {
            match self.0.next_event() {
                Ok(Some(event)) => {
                    let (event, data, id) = (event.name.to_owned(), event.data.to_owned(), event.id.map(str::to_owned));
                    events.push(Dispatched { event, data, id, last_event_id: String::new(), retry: None });
                }
                Ok(None) => break,
                Err(error) => return Err(thrown(Error::new(ErrorKind::MalformedStream, error.to_string()))),
            }
            if let Some(event) = events.last_mut() {
                event.last_event_id = self.0.last_event_id().to_owned();
                event.retry = self.0.retry();
            }
        }
        Ok(serde_json::to_string(&events).unwrap_or_default())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dispatched {
    event: String,
    data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    last_event_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<u64>,
}
