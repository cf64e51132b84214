//! HTTP by hand: what a test sends is what goes over the wire, however wrong it is.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Shim;

/// A request that is about to be sent.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    /// A request with what every good one has.
    pub(crate) fn new(shim: &Shim, method: &'static str, server: &str, token: &str) -> Self {
        let headers = [
            ("host", format!("127.0.0.1:{}", shim.port)),
            ("authorization", format!("Bearer {token}")),
            ("accept", "application/json, text/event-stream".to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { method, path: format!("/mcp/{server}"), headers, body: String::new() }
    }

    /// A stateless request.
    pub(crate) fn stateless(shim: &Shim, server: &str, token: &str, id: Value, method: &str, params: Value) -> Self {
        let mut params = params;
        let meta = params["_meta"].as_object().cloned().unwrap_or_default();
        let mut whole = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} }
        });
        whole.as_object_mut().unwrap().extend(meta);
        params["_meta"] = whole;
        let name = params["name"].as_str().map(str::to_owned);
        let mut request = Self::new(shim, "POST", server, token)
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", method)
            .body(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        if let Some(name) = name {
            request = request.with("mcp-name", &name);
        }
        request
    }

    /// Sets a header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(present, _)| present != name);
        self
    }

    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = body.to_string();
        self
    }

    /// Sends it, and reads the head of the answer.
    pub(crate) async fn open(self, shim: &Shim) -> Response {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.headers.iter().any(|(name, _)| name == "content-length" || name == "transfer-encoding") {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("connection: close\r\n\r\n");
        let mut stream = TcpStream::connect(("127.0.0.1", shim.port)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses the head may close before the body has gone.
        let _ = stream.write_all(self.body.as_bytes()).await;
        Response::read(stream).await
    }

    /// Sends it, and reads the whole answer.
    pub(crate) async fn send(self, shim: &Shim) -> Response {
        let mut response = self.open(shim).await;
        while response.read_more().await {}
        response
    }
}

/// An answer, as far as it has come.
pub(crate) struct Response {
    stream: TcpStream,
    pub(crate) status: u16,
    pub(crate) head: String,
    received: Vec<u8>,
}

impl Response {
    async fn read(mut stream: TcpStream) -> Self {
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            let count = stream.read_buf(&mut received).await.unwrap();
            assert!(count > 0, "no head: {}", String::from_utf8_lossy(&received));
        };
        let body = received.split_off(end);
        let head = String::from_utf8(received).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { stream, status, head, received: body }
    }

    /// Reads on; `false` at the end.
    pub(crate) async fn read_more(&mut self) -> bool {
        self.stream.read_buf(&mut self.received).await.is_ok_and(|count| count > 0)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The bytes of the body that have come.
    pub(crate) fn text(&self) -> String {
        let mut rest = self.received.as_slice();
        if self.header("transfer-encoding") != Some("chunked") {
            return String::from_utf8_lossy(rest).into_owned();
        }
        let mut text = Vec::new();
        while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
            let Some(chunk) = rest.get(end + 2..end + 2 + size) else { break };
            text.extend_from_slice(chunk);
            rest = rest.get(end + 4 + size..).unwrap_or_default();
        }
        String::from_utf8(text).unwrap()
    }

    /// The JSON of an answer that is no stream.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|error| panic!("{error}: {}{}", self.head, self.text()))
    }

    /// The messages that have come, with the ids of their events, whichever way they came.
    pub(crate) fn messages(&self) -> Vec<(String, Value)> {
        if self.header("content-type") != Some("text/event-stream") {
            return vec![(String::new(), self.json())];
        }
        let text = self.text();
        let complete = text.rsplit_once("\n\n").map_or("", |(complete, _)| complete);
        let field = |event: &str, name: &str| -> Option<String> {
            event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start().to_owned())
        };
        let message = |event: &str| {
            let data = field(event, "data:").filter(|data| !data.is_empty())?;
            Some((field(event, "id:").unwrap_or_default(), serde_json::from_str(&data).unwrap()))
        };
        complete.split("\n\n").filter_map(message).collect()
    }

    /// Reads on until so many messages have come.
    pub(crate) async fn until(&mut self, count: usize) -> Vec<(String, Value)> {
        loop {
            let messages = self.messages();
            if messages.len() >= count {
                return messages;
            }
            assert!(self.read_more().await, "{count} messages do not come: {}{}", self.head, self.text());
        }
    }

    /// The last message of the whole answer.
    pub(crate) async fn last(mut self) -> Value {
        while self.read_more().await {}
        self.messages().pop().unwrap_or_else(|| panic!("no message: {}", self.head)).1
    }
}
