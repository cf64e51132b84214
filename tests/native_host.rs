//! The native host against real servers on loopback.
#![cfg(feature = "native")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body as Answer;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use crablet::ErrorKind;
use crablet::host::{Body, Host, Socket};
use crablet::model::HttpRequest;
use crablet::native::NativeHost;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn post_to(address: SocketAddr, path: &str) -> HttpRequest {
    HttpRequest {
        method: "POST",
        url: format!("http://{address}{path}"),
        headers: vec![("x-api-key".to_owned(), "secret".to_owned())],
        body: b"{}".to_vec(),
    }
}

#[tokio::test]
async fn a_body_arrives_chunk_by_chunk_while_the_server_still_writes() {
    let go_on = Arc::new(Notify::new());
    let released = go_on.clone();
    let router = Router::new().route(
        "/",
        post(async move || {
            let second = async move {
                released.notified().await;
                Ok::<_, std::io::Error>("second")
            };
            let first = futures_util::stream::iter([Ok("first")]);
            (StatusCode::CREATED, Answer::from_stream(first.chain(futures_util::stream::once(second))))
        }),
    );
    let address = serve(router).await;
    let (head, mut body) = NativeHost::new().unwrap().fetch(post_to(address, "/")).await.unwrap();
    assert_eq!(head.status, 201);
    assert_eq!(body.next().await.unwrap().unwrap(), b"first");
    go_on.notify_one();
    assert_eq!(body.next().await.unwrap().unwrap(), b"second");
    assert_eq!(body.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_key_follows_a_redirect_within_the_origin_and_never_to_another() {
    let leaked = Arc::new(AtomicBool::new(false));
    let seen = leaked.clone();
    let elsewhere = serve(Router::new().fallback(async move |headers: HeaderMap| {
        seen.store(headers.contains_key("x-api-key"), Ordering::SeqCst);
        "elsewhere"
    }))
    .await;
    let address = serve(
        Router::new()
            .route("/away", post(async move || redirect(format!("http://{elsewhere}/"))))
            .route("/here", post(async || redirect("/there".to_owned())))
            .route("/there", post(async |headers: HeaderMap| headers["x-api-key"].to_str().unwrap().to_owned()))
            .route("/loop", post(async || redirect("/loop".to_owned()))),
    )
    .await;
    let host = NativeHost::new().unwrap();

    let (head, _) = host.fetch(post_to(address, "/away")).await.unwrap();
    assert_eq!(head.status, 307, "the redirect itself is given back");
    assert!(!leaked.load(Ordering::SeqCst));

    let (head, mut body) = host.fetch(post_to(address, "/here")).await.unwrap();
    assert_eq!((head.status, body.next().await.unwrap().unwrap()), (200, b"secret".to_vec()));

    let (head, _) = host.fetch(post_to(address, "/loop")).await.unwrap();
    assert_eq!(head.status, 307, "a loop ends");
}

#[tokio::test]
async fn no_kind_of_redirect_takes_a_request_to_another_port_or_host() {
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    let elsewhere = serve(Router::new().fallback(async move || seen.store(true, Ordering::SeqCst))).await;
    let own_host = Router::new().route(
        "/{status}/{host}/{port}",
        axum::routing::any(
            async |axum::extract::Path((status, host, port)): axum::extract::Path<(u16, String, u16)>| {
                redirect_with(StatusCode::from_u16(status).unwrap(), format!("http://{host}:{port}/taken"))
            },
        ),
    );
    let own = Arc::new(AtomicBool::new(false));
    let followed = own.clone();
    let address = serve(own_host.route("/taken", get(async move || followed.store(true, Ordering::SeqCst)))).await;
    let host = NativeHost::new().unwrap();
    for status in [301, 302, 303, 307, 308] {
        for (name, port) in
            [("127.0.0.1", elsewhere.port()), ("localhost", elsewhere.port()), ("localhost", address.port())]
        {
            for request in ["POST", "GET"] {
                let mut request =
                    HttpRequest { method: request, ..post_to(address, &format!("/{status}/{name}/{port}")) };
                request.set_header("authorization", "Bearer secret");
                let (head, _) = host.fetch(request).await.unwrap();
                assert_eq!(head.status, status, "{name}: the redirect itself is given back");
                assert!(!asked.load(Ordering::SeqCst) && !own.load(Ordering::SeqCst), "{status} to {name}:{port}");
            }
        }
    }
}

fn redirect(to: String) -> (StatusCode, HeaderMap) {
    redirect_with(StatusCode::TEMPORARY_REDIRECT, to)
}

fn redirect_with(status: StatusCode, to: String) -> (StatusCode, HeaderMap) {
    (status, HeaderMap::from_iter([("location".parse().unwrap(), to.parse().unwrap())]))
}

#[tokio::test]
async fn an_unreachable_server_is_a_network_error_that_names_it_and_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut request = post_to(address, "/v1?key=secret");
    request.set_header("authorization", "Bearer secret");
    let error = NativeHost::new().unwrap().fetch(request).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.message().contains(&address.to_string()), "{error}");
    assert!(error.message().contains("refused"), "{error}");
    assert!(!error.message().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_says_why() {
    let host = NativeHost::new().unwrap();
    let request = HttpRequest { method: "GET", url: "no address".to_owned(), headers: vec![], body: vec![] };
    assert_eq!(host.fetch(request).await.err().unwrap().kind(), ErrorKind::InvalidInput);
    let mut request = post_to("127.0.0.1:1".parse().unwrap(), "/");
    request.set_header("authorization", "two\nlines of secret");
    let error = host.fetch(request).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(!error.message().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_dropped_body_closes_the_connection() {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let closed = Arc::new(Notify::new());
    let noticed = closed.clone();
    let router = Router::new().fallback(get(async move || {
        let guard = OnDrop(noticed);
        let endless = futures_util::stream::unfold(guard, |guard| async {
            tokio::task::yield_now().await;
            Some((Ok::<_, std::io::Error>("more"), guard))
        });
        Answer::from_stream(endless)
    }));
    let address = serve(router).await;
    let request = HttpRequest { method: "GET", url: format!("http://{address}/"), headers: vec![], body: vec![] };
    let (_, mut body) = NativeHost::new().unwrap().fetch(request).await.unwrap();
    assert!(body.next().await.unwrap().is_some());
    drop(body);
    closed.notified().await;
}

#[tokio::test]
async fn a_socket_speaks_the_chosen_protocol_and_tells_why_it_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        #[expect(clippy::result_large_err, reason = "tungstenite's own type")]
        let choose = |request: &Request, mut response: Response| {
            assert_eq!(request.headers()["sec-websocket-protocol"], "crablet.v1, mcp");
            response.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
            Ok(response)
        };
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, choose).await.unwrap();
        let echoed = socket.next().await.unwrap().unwrap();
        assert_eq!(echoed, Message::binary(b"ping".to_vec()));
        socket.send(Message::text("pong")).await.unwrap();
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code: 4001.into(), reason: "gone".into() };
        socket.close(Some(frame)).await.unwrap();
        while socket.next().await.is_some() {}
    });
    let host = NativeHost::new().unwrap();
    let protocols = vec!["crablet.v1".to_owned(), "mcp".to_owned()];
    let mut socket = host.connect(format!("ws://{address}/servers/x"), protocols).await.unwrap();
    assert_eq!(socket.protocol(), "mcp");
    socket.send(b"ping".to_vec()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), b"pong");
    assert_eq!(socket.next().await.unwrap(), None);
    assert_eq!(socket.close_reason(), Some((4001, "gone".to_owned())));
}

#[tokio::test]
async fn a_refused_upgrade_is_told_with_its_status() {
    let address = serve(Router::new().fallback(async || StatusCode::FORBIDDEN)).await;
    let error = NativeHost::new().unwrap().connect(format!("ws://{address}/"), vec![]).await.err().unwrap();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Auth, Some(403)));
}
