//! Models: messages, requests and events in one form, and the wire protocols that turn them into bytes and back.
//!
#![cfg_attr(feature = "openai-chat", doc = "```")]
#![cfg_attr(not(feature = "openai-chat"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use crablet::model::{
//!     Assembler, Body, Content, EncodedCache, Message, MessageId, ModelRequest, Origin, ResponseHead, StopReason, UserMessage,
//!     openai_chat,
//! };
//!
//! # fn main() -> Result<(), crablet::Error> {
//! let hello = UserMessage { content: vec![Content::Text("Hello".into())], origin: Origin::Prompt };
//! let mut request = ModelRequest::new(openai_chat::compatible("http://localhost:11434/v1", "qwen3"));
//! request.messages.push(Arc::new(Message { id: MessageId::new("1"), body: Body::User(hello) }));
//!
//! let wire = openai_chat::WIRE;
//! let http = wire.encode(&request, &mut EncodedCache::default())?;
//! assert_eq!(http.url, "http://localhost:11434/v1/chat/completions");
//!
//! // The answer comes in pieces that are cut anywhere.
//! let mut decoder = wire.decoder(&request, &ResponseHead { status: 200, headers: Vec::new() });
//! let mut events = Vec::new();
//! decoder.push(br#"data: {"choices":[{"index":0,"delta":{"content":"Good mor"#, &mut events);
//! decoder.push(b"ning\"}}]}\n\n", &mut events);
//! decoder.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", &mut events);
//! decoder.push(b"data: [DONE]\n\n", &mut events);
//! decoder.finish(&mut events);
//!
//! let mut assembler = Assembler::new();
//! for event in &events {
//!     assembler.push(event);
//! }
//! assert_eq!(assembler.finish().stop_reason, StopReason::Stop);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(feature = "models"),
    allow(dead_code, reason = "what the wire protocols share is used by those that are compiled in")
)]

#[cfg(feature = "wires")]
mod answer;
#[cfg(feature = "anthropic")]
pub mod anthropic;
mod assembler;
#[cfg(feature = "azure")]
pub mod azure;
#[cfg(feature = "bedrock")]
pub mod bedrock;
#[cfg(feature = "wires")]
mod blocks;
#[cfg(feature = "wires")]
mod body;
#[cfg(feature = "catalog")]
pub mod catalog;
#[cfg(any(feature = "anthropic", feature = "bedrock"))]
mod claude;
#[cfg(feature = "wires")]
mod draft;
mod encoded;
mod event;
#[cfg(feature = "wires")]
mod failure;
#[cfg(any(feature = "anthropic", feature = "openai-chat", feature = "bedrock"))]
mod files;
#[cfg(feature = "gemini")]
pub mod gemini;
mod http;
mod message;
mod message_json;
mod names;
#[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
mod openai;
#[cfg(feature = "openai-chat")]
pub mod openai_chat;
#[cfg(feature = "openai-responses")]
pub mod openai_responses;
mod output;
mod prices;
mod request;
#[cfg(feature = "wires")]
mod retry_after;
#[cfg(any(feature = "anthropic", feature = "openai-chat"))]
mod scanner;
#[cfg(feature = "wires")]
mod tool_schema;
mod transcript;
#[cfg(feature = "vertex")]
pub mod vertex;
#[cfg(all(test, feature = "models"))]
mod work_tests;

pub use assembler::{Answer, Assembler};
#[cfg(feature = "catalog")]
pub use catalog::{Catalog, CatalogSource, ModelInfo};
pub use encoded::{EncodedCache, MAX_CACHE_BYTES};
pub use event::ModelEvent;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub(crate) use http::may_hold_key;
pub use http::{AwsKeys, Credentials, HttpRequest, ResponseHead};
#[cfg(feature = "host")]
pub(crate) use http::{secrets_of_headers, secrets_of_url};
pub use message::{
    AssistantMessage, Body, CallId, Content, File, FileData, Message, MessageId, ModelRef, Origin, Part, Source,
    StopReason, ToolCall, ToolInput, ToolMessage, ToolResult, Usage, UserMessage,
};
pub use message_json::MessageError;
pub(crate) use message_json::optional;
pub(crate) use names::hash;
pub use prices::{Counting, Dollars, LongPrices, Prices};
pub use request::{
    Access, CacheRetention, Effort, FileKinds, Model, ModelRequest, OutputSchema, Reasoning, RequestOptions,
    ToolChoice, ToolSpec,
};

use crate::error::Error;
use crate::time::Millis;

/// A wire protocol: how a request becomes HTTP and how the answer's bytes become events.
///
/// Implementations are stateless. A program that uses one links only that one.
pub trait Wire: Send + Sync {
    /// The name in snapshots, such as `anthropic`.
    fn name(&self) -> &'static str;

    /// The HTTP request for a model request. Holds no secret. The cache may be empty and changes no byte of the answer.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the request asks for what this wire cannot carry.
    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error>;

    /// Adds the credentials, at each attempt anew.
    ///
    /// # Errors
    ///
    /// `auth` when the credentials are of a kind that this wire cannot use.
    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, now: Millis) -> Result<(), Error>;

    /// What the counts of tokens leave out at this provider, and whether it says the cost itself.
    fn counting(&self, _provider: &str) -> Counting {
        Counting::default()
    }

    /// A decoder for the answer with this head, be it a stream, a whole JSON document or an error.
    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder>;
}

/// The wire protocol of this name, if this build has it.
pub fn wire_named(name: &str) -> Option<&'static dyn Wire> {
    match name {
        #[cfg(feature = "anthropic")]
        "anthropic" => Some(anthropic::WIRE),
        #[cfg(feature = "openai-chat")]
        "openai-chat" => Some(openai_chat::WIRE),
        #[cfg(feature = "azure")]
        "azure-responses" => Some(azure::RESPONSES),
        #[cfg(feature = "azure")]
        "azure-chat" => Some(azure::CHAT),
        #[cfg(feature = "vertex")]
        "vertex" => Some(vertex::WIRE),
        #[cfg(feature = "bedrock")]
        "bedrock" => Some(bedrock::WIRE),
        #[cfg(feature = "gemini")]
        "gemini" => Some(gemini::WIRE),
        #[cfg(feature = "openai-responses")]
        "openai-responses" => Some(openai_responses::WIRE),
        _ => None,
    }
}

/// Turns the bytes of one answer into events. How the bytes are cut into chunks makes no difference.
pub trait Decoder: Send {
    /// Takes the next bytes. Never panics; after the last event nothing more comes out.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>);

    /// The bytes are at their end. Makes sure that the last event is `Stop` or `Failed`.
    fn finish(&mut self, events: &mut Vec<ModelEvent>);
}
