//! Obtaining a token from crablet-shim with a code.

use crablet::host::mcp::pair;
use crablet::jsonrpc::Params;
use crablet::web::{WebHost, page_origin};
use js_sys::Function;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::mcp::{CancelHandle, McpHandle, json, settle};

#[wasm_bindgen]
impl McpHandle {
    /// Resolves with the JSON text of `McpPairing` of `src/js/mcp-pairing.ts`.
    pub fn pair(
        url: String,
        code: String,
        web_socket: Option<Function>,
        cancel: &CancelHandle,
        resolve: Function,
        reject: Function,
    ) {
        let host = web_socket.map_or_else(WebHost::new, WebHost::with_web_socket);
        settle(&cancel.0, resolve, reject, async move {
            let paired = pair(&host, &url, &code, &page_origin()).await?;
            let members = Params::new().with("token", &paired.token.reveal()).with("servers", &paired.servers);
            Ok(json(&members))
        });
    }
}
