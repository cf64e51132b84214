//! One connection of the listening socket: requests one after another, none of which may hold it for nothing.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

use crate::http::AnswerBody;

/// Answers the requests of a connection until one side ends it or hands it to a WebSocket.
///
/// A peer that asks nothing is let go after [`HEAD_LIMIT`]. One that was answered may take [`KEEP_LIMIT`] over the head of its next
/// request: who is refused is told `Connection: close`, so that it has been let in.
pub(crate) async fn serve_requests<I, A>(stream: I, answer: impl Fn(Request<Incoming>) -> A)
where
    I: AsyncRead + AsyncWrite + Send + 'static,
    A: Future<Output = Response<AnswerBody>>,
{
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request| {
        has_asked.store(true, Ordering::Relaxed);
        let answer = answer(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    // A response that its client does not read must not be held for ever.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_LIMIT));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(KEEP_LIMIT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(Box::pin(stream)), service)
            .with_upgrades()
    );
    let first = poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Pending if has_asked.load(Ordering::Relaxed) => Poll::Ready(true),
        // A peer that speaks no HTTP is of no interest.
        polled => polled.map(|_end| false),
    });
    if timeout(HEAD_LIMIT, first).await == Ok(true) {
        drop(connection.await);
    }
}

/// How long a peer may take over the head of its first request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// How long a connection is kept for the next request: longer than the 90 s for which clients in Rust and Go keep one, and browsers
/// and Node less, so that it is the client that ends it and none writes into a socket that is just being closed.
const KEEP_LIMIT: Duration = Duration::from_secs(120);

/// The longest head of a request; hyper's smallest. Browsers send under 2 KiB.
const HEAD_BYTES: usize = 8192;

/// A client that takes nothing for so long counts as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(45);

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::http::empty;

    fn connect() -> DuplexStream {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve_requests(server, |_request| std::future::ready(empty(StatusCode::NO_CONTENT))));
        client
    }

    async fn ask(client: &mut DuplexStream) -> String {
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(client.read_u8().await.expect("the connection was closed"));
        }
        String::from_utf8(answer).unwrap()
    }

    /// How long it takes until the other side ends a connection.
    async fn end_of(client: &mut DuplexStream) -> Duration {
        let started = Instant::now();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_for_longer_than_clients_keep_it() {
        let mut client = connect();
        for _ in 0..3 {
            assert!(ask(&mut client).await.starts_with("HTTP/1.1 204"));
            sleep(Duration::from_secs(90)).await;
        }
        assert!(ask(&mut client).await.starts_with("HTTP/1.1 204"));
        assert_eq!(end_of(&mut client).await.as_secs(), KEEP_LIMIT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_nothing_is_let_go() {
        assert_eq!(end_of(&mut connect()).await.as_secs(), HEAD_LIMIT.as_secs());
        let mut slow = connect();
        slow.write_all(b"GET / HTTP/1.1\r\nX: y").await.unwrap();
        assert_eq!(end_of(&mut slow).await.as_secs(), HEAD_LIMIT.as_secs());
    }
}
