//! WebSockets over tokio-tungstenite.

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::error::{Error, ErrorKind};
use crate::host::Socket;

/// The largest frame and message taken, in bytes: MCP results with files in them are large, and one that is larger than
/// this would not fit a model's context in any form.
const MAX_MESSAGE_SIZE: usize = 64 << 20;

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    protocol: String,
    close_reason: Option<(u16, String)>,
}

impl WebSocket {
    pub(super) async fn open(url: String, protocols: Vec<String>) -> Result<Self, Error> {
        let invalid = |what: String| Error::new(ErrorKind::InvalidInput, what);
        let mut request = url
            .as_str()
            .into_client_request()
            .map_err(|error| invalid(format!("this is not the address of a WebSocket: {error}")))?;
        if !protocols.is_empty() {
            let value = HeaderValue::try_from(protocols.join(", "))
                .map_err(|_| invalid("a WebSocket subprotocol holds a character that is not allowed".to_owned()))?;
            request.headers_mut().insert("sec-websocket-protocol", value);
        }
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_SIZE)).max_frame_size(Some(MAX_MESSAGE_SIZE));
        let (stream, response) = connect_async_with_config(request, Some(config), true).await.map_err(|error| {
            let message = format!("no WebSocket to {authority}: {}", describe(&error));
            match error {
                SocketError::Http(answer) if matches!(answer.status().as_u16(), 401 | 403) => {
                    Error::new(ErrorKind::Auth, message).with_status(answer.status().as_u16())
                }
                SocketError::Http(answer) => {
                    Error::new(ErrorKind::Network, message).with_status(answer.status().as_u16())
                }
                _ => Error::new(ErrorKind::Network, message),
            }
        })?;
        let protocol = response.headers().get("sec-websocket-protocol").and_then(|value| value.to_str().ok());
        let protocol = protocol.unwrap_or_default().to_owned();
        Ok(Self { stream, protocol, close_reason: None })
    }
}

impl Socket for WebSocket {
    fn protocol(&self) -> &str {
        &self.protocol
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), Error> {
        self.stream.send(Message::Binary(frame.into())).await.map_err(|error| closed(&error))
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Binary(bytes))) => return Ok(Some(bytes.into())),
                Some(Ok(Message::Text(text))) => return Ok(Some(text.as_bytes().to_vec())),
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                    self.close_reason = Some(reason.unwrap_or((NO_STATUS, String::new())));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                None | Some(Err(SocketError::ConnectionClosed | SocketError::AlreadyClosed)) => return Ok(None),
                Some(Err(error)) => return Err(closed(&error)),
            }
        }
    }

    fn close_reason(&self) -> Option<(u16, String)> {
        self.close_reason.clone()
    }
}

/// The close code that stands for "none was given" (RFC 6455, section 7.1.5).
const NO_STATUS: u16 = 1005;

fn closed(error: &SocketError) -> Error {
    Error::new(ErrorKind::ConnectionClosed, format!("the WebSocket broke: {}", describe(error)))
}

fn describe(error: &SocketError) -> String {
    match error {
        SocketError::Http(response) => {
            format!("the server answered {} instead of upgrading", response.status().as_u16())
        }
        other => other.to_string(),
    }
}
