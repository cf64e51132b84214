//! An MCP server behind axum: what an HTTP server of any kind does with an `HttpHandler`.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use crablet::host::mcp::{HttpBody, HttpCall, HttpHandler, HttpResponse};
use crablet::mcp::server::http::Headers;
use crablet::native::NativeHost;
use futures_util::StreamExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// How long a body may take to come.
const BODY_LIMIT: Duration = Duration::from_secs(30);

/// Serves at `/mcp` until the program ends.
pub(crate) async fn serve(listener: TcpListener, handler: HttpHandler<NativeHost>) -> std::io::Result<()> {
    let app = Router::new().route("/mcp", any(move |request: Request| answer(handler.clone(), request)));
    axum::serve(listener, app).await
}

async fn answer(handler: HttpHandler<NativeHost>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let headers: Headers<'_> = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    if let Err(refused) = handler.check(head.method.as_str(), &headers) {
        return written(refused);
    }
    // A server for more than this machine looks at `authorization` here, and says who asks in `caller`.
    let body = match timeout(BODY_LIMIT, to_bytes(body, handler.max_body_bytes())).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    written(handler.handle(HttpCall { method: head.method.as_str(), headers, body: &body, caller: None }).await)
}

fn written(HttpResponse { status, headers, body }: HttpResponse) -> Response {
    let body = match body {
        HttpBody::Whole(text) => Body::from(text),
        // axum drops it when the client is gone, and so the handler hears of that.
        HttpBody::Events(events) => Body::from_stream(events.map(Ok::<_, Infallible>)),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, axum::response::AppendHeaders(headers), body).into_response()
}
