//! Consent in the browser of whoever runs this program (RFC 8252, section 7.3).

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::error::{Error, ErrorKind};
use crate::host::BoxFuture;
use crate::host::mcp::Consent;

/// The path that people are sent back to.
const PATH: &str = "/callback";

/// The most bytes of a request's first line that are read: authorization codes are shorter.
const LINE_LIMIT: usize = 16 * 1024;

/// Asks a person with a page in their own browser, and receives the answer on a port of this machine that is open only
/// meanwhile.
#[derive(Clone)]
pub struct LoopbackConsent {
    port: u16,
    open: Arc<dyn Fn(&str) + Send + Sync>,
    listener: Arc<Mutex<Option<TcpListener>>>,
}

impl LoopbackConsent {
    /// Shows a page by calling this function with its address: to print it, or to open a browser. Pass the address to a
    /// program as an argument of its own, and never as part of a shell's command line.
    pub fn new(open: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { port: 0, open: Arc::new(open), listener: Arc::default() }
    }

    /// Prints the address to the error output.
    pub fn printing() -> Self {
        Self::new(|url| eprintln!("Open this page to go on: {url}"))
    }

    /// Listens on this port instead of any that is free: some authorization servers compare it.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }
}

impl Consent for LoopbackConsent {
    fn redirect_uri(&self) -> BoxFuture<'static, Result<String, Error>> {
        let consent = self.clone();
        Box::pin(async move {
            let unusable = |error: std::io::Error| {
                let message = format!("there is no port to receive the authorization on: {error}");
                Error::new(ErrorKind::Auth, message)
            };
            // The port of an authorization that came to nothing is free again.
            drop(consent.take_listener());
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, consent.port)).await.map_err(unusable)?;
            let address = listener.local_addr().map_err(unusable)?;
            *consent.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
            Ok(redirect_uri(address))
        })
    }

    fn ask(&self, url: String) -> BoxFuture<'static, Result<String, Error>> {
        let listener = self.take_listener();
        let open = self.open.clone();
        Box::pin(async move {
            let listener = listener.ok_or_else(|| Error::new(ErrorKind::Internal, "no port is open"))?;
            open(&url);
            receive(&listener, &url).await
        })
    }
}

impl LoopbackConsent {
    fn take_listener(&self) -> Option<TcpListener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for LoopbackConsent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoopbackConsent").field("port", &self.port).finish_non_exhaustive()
    }
}

fn redirect_uri(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// Waits for the browser to come back with the state that the page's address has. Others can reach the port too, and are
/// sent away.
async fn receive(listener: &TcpListener, url: &str) -> Result<String, Error> {
    let failed = |error: std::io::Error| Error::new(ErrorKind::Auth, format!("the port could not be read: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    let state = url.split(['?', '&']).find(|pair| pair.starts_with("state=")).unwrap_or("state=");
    loop {
        let (mut stream, _) = listener.accept().await.map_err(failed)?;
        // A browser that opens a connection ahead of need must not hold up the one that counts.
        let target = tokio::time::timeout(std::time::Duration::from_secs(5), target(&mut stream)).await;
        let target = target.ok().flatten().unwrap_or_default();
        let is_callback = target.starts_with(PATH) && target.split(['?', '&']).any(|pair| pair == state);
        let (status, text) = match is_callback {
            true => ("200 OK", "Done. You can close this page."),
            false => ("404 Not Found", "There is nothing here."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        // The person has done their part, whether or not they see that.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if is_callback {
            return Ok(format!("http://{address}{target}"));
        }
    }
}

/// The path and query of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(2).position(|pair| pair == b"\r\n") {
            let line = String::from_utf8_lossy(read.get(..end)?).into_owned();
            return line.strip_prefix("GET ")?.split(' ').next().map(str::to_owned);
        }
        if read.len() > LINE_LIMIT || stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}
