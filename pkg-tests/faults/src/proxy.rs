//! The one listener in front of all real servers: the path says which script and which way it is.
//!
//! `/model/SEED/…` is the model, `/mcp/SEED` the MCP server over HTTP, `/shim/SEED/…` crablet-shim's WebSocket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};

use crate::http::{Head, write_answer};
use crate::mcp_proxy;
use crate::model_proxy::{self, Next};
use crate::shim_proxy;
use crate::world::World;

/// Listens at a port of its own until the runtime ends.
pub(crate) async fn listen(world: Arc<World>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let world = world.clone();
            // A connection that breaks is what this is for.
            tokio::spawn(async move { serve(&world, stream).await.ok() });
        }
    });
    Ok(address)
}

async fn serve(world: &World, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = BufReader::new(stream);
    while let Some(head) = Head::read(&mut connection).await? {
        let mut path = head.path().trim_start_matches('/').splitn(3, '/');
        let (way, seed) = (path.next().unwrap_or_default(), path.next().and_then(|seed| seed.parse().ok()));
        let next = match (way, seed) {
            ("mcp", Some(seed)) => mcp_proxy::relay(world, seed, head, &mut connection).await?,
            ("shim", Some(seed)) => return shim_proxy::relay(world, seed, head, connection).await,
            ("model", Some(seed)) => model_proxy::answer(world, seed, &head, &mut connection).await?,
            _ => {
                write_answer(&mut connection, "404 Not Found", "text/plain", b"no such way").await?;
                Next::Again
            }
        };
        if next == Next::Closed {
            return Ok(());
        }
    }
    Ok(())
}
