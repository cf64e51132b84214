use std::fmt;
use std::pin::pin;

use futures_util::future::{Either, select};

use crate::error::{Error, ErrorKind};
use crate::host::{Host, Socket};
use crate::mcp::transport::shim::{
    PAIRING_PATH, PAIRING_SUBPROTOCOL, PairAnswer, PairContext, PairRequest, PairingCode, Token,
};
use crate::mcp::transport::websocket::loopback_authority;

/// What a pairing gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Paired {
    /// The token, to be kept where only this client can read it.
    pub token: Token,
    /// The servers that it opens.
    pub servers: Vec<String>,
}

impl fmt::Debug for Paired {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Paired").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// Obtains a token from the crablet-shim at an address such as `ws://127.0.0.1:6735`, with the code that `crablet-shim pair`
/// shows. The origin is the page's or extension's; empty for a program that sends none.
///
/// # Errors
///
/// `invalid-input` for what is no code or no address; `auth` when the code is wrong, used up or too old; `network` when no
/// shim is reached, or one that waits for no pairing; `protocol` when the other side does not know the code either;
/// `timeout` after 30 seconds.
pub async fn pair<H: Host>(host: &H, url: &str, code: &str, origin: &str) -> Result<Paired, Error> {
    match select(pin!(exchange(host, url, code, origin)), pin!(host.sleep(PAIRING_LIMIT))).await {
        Either::Left((paired, _)) => paired,
        Either::Right(_) => Err(Error::new(ErrorKind::Timeout, "the shim did not answer the pairing within 30 s")),
    }
}

async fn exchange<H: Host>(host: &H, url: &str, code: &str, origin: &str) -> Result<Paired, Error> {
    let code = PairingCode::parse(code)?;
    let authority = loopback_authority(url)?;
    let context = PairContext { authority: &authority, origin };
    let request = PairRequest::new(&code, host.random()?, context);
    let address = format!("{}{PAIRING_PATH}", url.trim_end_matches('/'));
    // Why a socket does not open, no browser tells.
    let connected = host.connect(address, vec![PAIRING_SUBPROTOCOL.to_owned()]).await;
    let mut socket = connected.map_err(|_| {
        let message = "no shim waits for a pairing there; run `crablet-shim serve` and `crablet-shim pair`, and check the \
                       address";
        Error::new(ErrorKind::Network, message)
    })?;
    socket.send(request.to_frame()).await?;
    let Some(frame) = socket.next().await? else {
        let message = "the shim does not know this code: it was mistyped, used already, or is too old; `crablet-shim pair` \
                       shows a new one";
        return Err(Error::new(ErrorKind::Auth, message));
    };
    let accepted = PairAnswer::parse(&frame).and_then(|answer| answer.accept(&code, &request, context));
    let (token, servers) = accepted.ok_or_else(|| {
        let message = "what answers at this address is not the shim that showed the code; nothing was paired";
        Error::new(ErrorKind::Protocol, message)
    })?;
    Ok(Paired { token, servers })
}

/// Both sides are on one machine.
const PAIRING_LIMIT: u64 = 30_000;
