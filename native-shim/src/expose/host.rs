//! A host for connections that need nothing but time: no network is linked in for them.

use std::future::{Future, pending};
use std::time::Duration;

use crablet::host::{Body, Host, Socket};
use crablet::model::{HttpRequest, ResponseHead};
use crablet::{Error, ErrorKind, Millis};

/// Time, randomness and tasks of tokio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalHost;

/// What a host without a network never gives.
#[derive(Debug)]
pub(crate) enum Never {}

impl Host for LocalHost {
    type Body = Never;
    type Socket = Never;

    fn fetch(
        &self,
        _request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, Never), Error>> + Send + 'static {
        std::future::ready(Err(no_network()))
    }

    fn connect(
        &self,
        _url: String,
        _protocols: Vec<String>,
    ) -> impl Future<Output = Result<Never, Error>> + Send + 'static {
        std::future::ready(Err(no_network()))
    }

    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(Duration::from_millis(milliseconds))
    }

    fn now(&self) -> Millis {
        crablet::native::now()
    }

    fn random(&self) -> Result<[u8; 16], Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::new(ErrorKind::Internal, format!("the system gives no randomness: {error}")))?;
        Ok(bytes)
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(future);
    }
}

impl Body for Never {
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Error>> + Send {
        pending()
    }
}

impl Socket for Never {
    fn protocol(&self) -> &str {
        match *self {}
    }

    fn send(&mut self, _frame: Vec<u8>) -> impl Future<Output = Result<(), Error>> + Send {
        pending()
    }

    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Error>> + Send {
        pending()
    }

    fn close_reason(&self) -> Option<(u16, String)> {
        match *self {}
    }
}

fn no_network() -> Error {
    Error::new(ErrorKind::Internal, "this connection has no network")
}
