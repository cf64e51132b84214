//! One upgraded socket of a client that comes to be paired: its request, and the answer if it knows the code.

use std::time::Duration;

use crablet::mcp::transport::shim::PairRequest;
use crablet::native::now;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::gate::PairingAdmission;
use crate::grants::{Grant, GrantFile};
use crate::log::note;
use crate::origin::Origin;
use crate::pairings::{Match, PairingFile};

/// Serves a socket to its end. Who does not know the code sees it closed.
pub(crate) async fn serve_pairing<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    admission: PairingAdmission,
    pairings: &PairingFile,
    grants: &GrantFile,
) {
    if let Ok(Some(Ok(Message::Binary(frame)))) = timeout(REQUEST_LIMIT, socket.next()).await
        && let Some(request) = PairRequest::parse(&frame)
    {
        match pair(&request, &admission, pairings, grants) {
            // A client that is gone before it reads this has a token that it does not know; `tokens` lists it.
            Ok(Some(frame)) => drop(socket.send(Message::Binary(frame.into())).await),
            Ok(None) => note("a pairing was tried with a wrong code"),
            Err(error) => note(format!("a pairing failed: {error}")),
        }
    }
    drop(timeout(REQUEST_LIMIT, socket.close(None)).await);
}

fn pair(
    request: &PairRequest,
    admission: &PairingAdmission,
    pairings: &PairingFile,
    grants: &GrantFile,
) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    let PairingAdmission { origin, authority, .. } = admission;
    let (mut key_id, mut nonce) = ([0; 9], [0; 16]);
    getrandom::fill(&mut key_id)?;
    getrandom::fill(&mut nonce)?;
    let origins = origin.iter().map(|origin| Origin::parse(origin)).collect::<Result<Vec<_>, _>>()?;
    let redeemed = pairings.redeem(request, origin.as_deref(), authority, (key_id, nonce), now())?;
    let Some(Match { answer, token, servers, exposes }) = redeemed else { return Ok(None) };
    grants.add(Grant { exposes, ..Grant::new(token, origins, servers, now()) })?;
    Ok(Some(answer.to_frame()))
}

/// Both sides are on one machine, and the person has typed the code already.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
