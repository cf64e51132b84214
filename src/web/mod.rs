//! The host on the web platform: pages, workers of every kind, Node, Deno, Bun and workerd.
//!
//! Everything is taken from `globalThis` when it is used, and nothing at start-up: `fetch`, `ReadableStream`,
//! `AbortController`, `WebSocket`, `setTimeout`, `crypto.getRandomValues` and `Date.now`.

mod fetch;
mod rejection;
#[cfg(feature = "oauth")]
mod signing;
mod socket;

use std::future::Future;
#[cfg(feature = "oauth")]
use std::sync::Arc;

use gloo_timers::future::TimeoutFuture;
use js_sys::Function;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::spawn_local;

pub use fetch::WebBody;
pub use rejection::{error_from_rejection, message_of_rejection};
pub use socket::WebSocketConnection;

use crate::error::{Error, ErrorKind};
#[cfg(feature = "oauth")]
use crate::host::SigningKey;
use crate::host::{BoxFuture, Host};
use crate::model::{HttpRequest, ResponseHead};
use crate::time::Millis;

/// The web platform as a [`Host`].
#[derive(Clone, Debug, Default)]
pub struct WebHost {
    fetch: Option<Function>,
    web_socket: Option<Function>,
}

impl WebHost {
    /// The host with the platform's own `fetch`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The host with a `fetch` of the caller, called as `fetch(url, init)`. It must follow the platform's contract:
    /// a promise of a `Response`, rejected when `init.signal` aborts.
    pub fn with_fetch(fetch: Function) -> Self {
        Self { fetch: Some(fetch), ..Self::default() }
    }

    /// The host with a `WebSocket` class of the caller, for platforms that have none. It must follow the platform's contract.
    pub fn with_web_socket(class: Function) -> Self {
        Self { web_socket: Some(class), ..Self::default() }
    }
}

impl Host for WebHost {
    type Body = WebBody;
    type Socket = WebSocketConnection;

    fn fetch(&self, request: HttpRequest) -> impl Future<Output = Result<(ResponseHead, Self::Body), Error>> + 'static {
        fetch::fetch(self.fetch.clone(), request)
    }

    fn connect(
        &self,
        url: String,
        protocols: Vec<String>,
    ) -> impl Future<Output = Result<Self::Socket, Error>> + 'static {
        socket::connect(self.web_socket.clone(), url, protocols)
    }

    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + 'static {
        sleep(milliseconds)
    }

    fn now(&self) -> Millis {
        // The clock of the platform is a whole number of milliseconds that f64 holds exactly.
        Millis(date_now() as u64)
    }

    fn random(&self) -> Result<[u8; 16], Error> {
        let mut bytes = [0; 16];
        get_random_values(&mut bytes).map_err(|_| {
            Error::new(
                ErrorKind::Internal,
                "this platform has no crypto.getRandomValues, or does not allow it here; call crablet inside a handler",
            )
        })?;
        Ok(bytes)
    }

    #[cfg(feature = "oauth")]
    fn signing_key(
        &self,
        key: Option<crate::mcp::client::auth::PrivateKey>,
    ) -> BoxFuture<'static, Result<Arc<dyn SigningKey>, Error>> {
        Box::pin(signing::signing_key(key))
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        // Boxed, so that what runs a task is in the module once and not for each kind of task.
        let future: BoxFuture<'static, ()> = Box::pin(future);
        spawn_local(future);
    }
}

async fn sleep(milliseconds: u64) {
    let mut left = milliseconds;
    while left > 0 {
        let turn = left.min(MAX_TIMEOUT.into());
        TimeoutFuture::new(u32::try_from(turn).unwrap_or(MAX_TIMEOUT)).await;
        left -= turn;
    }
}

/// The origin that the platform sends with a WebSocket handshake; empty where it sends none, as in Node and workerd.
pub fn page_origin() -> String {
    property(&js_sys::global(), "origin").as_string().unwrap_or_default()
}

/// `setTimeout` takes a signed 32-bit number; a longer delay would fire at once, so longer waits are re-armed.
const MAX_TIMEOUT: u32 = i32::MAX as u32;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn get_random_values(bytes: &mut [u8]) -> Result<(), JsValue>;
}

/// A property of a foreign value, or `undefined` when it has none or throws.
fn property(value: &JsValue, name: &str) -> JsValue {
    if !value.is_object() && !value.is_function() {
        return JsValue::UNDEFINED;
    }
    js_sys::Reflect::get(value.unchecked_ref(), &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}
