//! The shim as a browser starts it for an extension: the servers of its configuration over standard input and output. It
//! ends when the browser closes its side, and its servers with it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crablet::mcp::transport::shim::{
    ClientProof, Frame, NATIVE_MESSAGING_TOKEN, NativeMessageReader, Token, server_proof,
};
use futures_util::{sink, stream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::config::Config;
use crate::extension::ExtensionId;
use crate::grants::GrantFile;
use crate::log::note;
use crate::native_messages::{ExtensionMessage, ShimMessage, frame_messages};
use crate::sessions::Sessions;
use crate::signals::EndSignals;
use crate::socket::{Client, Purpose, serve_frames};

/// What the host serves, and to whom.
#[derive(Debug)]
pub(crate) struct NativeHost {
    /// The mcpServers file, which is read anew for each connection.
    pub(crate) config: PathBuf,
    /// Which extension the browser says it is; `None` when it says nothing of the kind.
    pub(crate) extension: Option<ExtensionId>,
    pub(crate) grants: GrantFile,
    pub(crate) sessions: Sessions,
}

/// Serves the extension until the browser closes its side, this program is told to end, or something comes that is no
/// message. `Err` says which.
pub(crate) async fn serve_extension(host: NativeHost) -> Result<(), String> {
    let mut signals = EndSignals::listen().map_err(|error| error.to_string())?;
    let host = Arc::new(host);
    let (messages, mut incoming) = mpsc::channel(QUEUE);
    let (outgoing, to_write) = mpsc::channel(QUEUE);
    let (ended, input_ended) = oneshot::channel();
    let (is_writing, all_written) = oneshot::channel::<()>();
    // Both block and cannot be stopped: threads end with the program.
    thread::spawn(move || ended.send(read_messages(&mut io::stdin().lock(), &messages)));
    thread::spawn(move || {
        write_messages(&mut io::stdout().lock(), to_write);
        drop(is_writing);
    });
    let mut channels = Channels { host: Arc::clone(&host), outgoing: outgoing.clone(), open: HashMap::new() };
    let take = async {
        while let Some(message) = incoming.recv().await {
            channels.take(message).await;
        }
        std::future::pending().await
    };
    let outcome = tokio::select! {
        () = take => Ok(()),
        end = input_ended => end.unwrap_or(Ok(())),
        () = outgoing.closed() => Ok(()),
        () = signals.received() => Ok(()),
    };
    if let Err(reason) = &outcome {
        // The browser still listens, as far as can be known.
        drop(timeout(LAST_WORDS, outgoing.send(ShimMessage::Failed { reason }.to_bytes())).await);
    }
    drop((channels, outgoing));
    host.sessions.shut_down().await;
    // What is left to write is written, unless the browser takes nothing.
    drop(timeout(LAST_WORDS, all_written).await);
    outcome
}

/// The connections that share the browser's pipe.
struct Channels {
    host: Arc<NativeHost>,
    outgoing: mpsc::Sender<Vec<u8>>,
    open: HashMap<u32, mpsc::Sender<Frame>>,
}

impl Channels {
    async fn take(&mut self, message: ExtensionMessage) {
        match message {
            ExtensionMessage::Open { channel, server, protocols } => {
                self.open.retain(|_, frames| !frames.is_closed());
                match self.admit(channel, &server, &protocols) {
                    Ok((client, config)) => {
                        self.send(&ShimMessage::Open { channel }).await;
                        self.serve(channel, client, config);
                    }
                    Err(reason) => {
                        note(format!("refused a connection: {reason}"));
                        self.send(&ShimMessage::Refused { channel, reason: &reason }).await;
                    }
                }
            }
            ExtensionMessage::Frame { channel, frame } => {
                let Some(frames) = self.open.get(&channel) else { return };
                let taken = match Frame::decode(frame) {
                    Ok(frame) => frames.send(frame).await.is_ok(),
                    Err(_) => false,
                };
                if !taken {
                    self.open.remove(&channel);
                }
            }
            ExtensionMessage::Close { channel } => drop(self.open.remove(&channel)),
            ExtensionMessage::Unknown => {}
        }
    }

    /// Whether the extension may have this server. The error is a sentence for the extension's developer.
    fn admit(&self, channel: u32, server: &str, protocols: &[String]) -> Result<(Client, Config), String> {
        let NativeHost { config, extension, grants, .. } = &*self.host;
        if self.open.len() >= MAX_CHANNELS || self.open.contains_key(&channel) {
            return Err(format!("the channel {channel} is open, or {MAX_CHANNELS} others are"));
        }
        let extension = extension.as_ref().ok_or("the browser did not say which extension this is")?;
        let granted = grants.read().map_err(|error| error.to_string())?;
        let grant = granted
            .iter()
            .find(|grant| grant.extension.as_ref() == Some(extension) && grant.allows_server(server))
            .ok_or_else(|| {
                format!(
                    "the extension {extension} may not use the server {server:?}; `crablet-shim install --extension \
                     {extension} --server …` says what it may use, and `crablet-shim tokens` lists that"
                )
            })?;
        let config = Config::read(config).map_err(|error| error.to_string())?;
        let entry = config
            .servers
            .get(server)
            .ok_or_else(|| format!("the configuration has no server {server:?}; it has: {}", config.names()))?;
        let origin = extension.origin().unwrap_or_default();
        if !entry.origins.is_empty() && !entry.origins.iter().any(|allowed| allowed.matches(&origin)) {
            return Err(format!("\"origins\" of the server {server:?} leave out the extension {extension}"));
        }
        let proof = protocols.iter().find_map(|protocol| ClientProof::parse(protocol));
        let proof = proof.ok_or("no proof was offered, which every client of crablet.v1 does")?;
        let token = Token::parse(NATIVE_MESSAGING_TOKEN).map_err(|error| error.to_string())?;
        let client = Client {
            server: server.to_owned(),
            key_id: grant.token.key_id().to_owned(),
            proof: server_proof(&token, proof.nonce()),
        };
        Ok((client, config))
    }

    fn serve(&mut self, channel: u32, client: Client, config: Config) {
        let (frames, mut incoming) = mpsc::channel(QUEUE);
        self.open.insert(channel, frames);
        let (host, outgoing) = (Arc::clone(&self.host), self.outgoing.clone());
        tokio::spawn(async move {
            let Some(server) = config.servers.get(&client.server) else { return };
            let stream = stream::poll_fn(|context| incoming.poll_recv(context));
            let sink =
                sink::unfold(outgoing.clone(), move |outgoing: mpsc::Sender<Vec<u8>>, frame: Vec<u8>| async move {
                    for message in frame_messages(channel, &frame) {
                        outgoing.send(message).await?;
                    }
                    Ok::<_, mpsc::error::SendError<Vec<u8>>>(outgoing)
                });
            serve_frames(pin!(sink), stream, client, Purpose::Use(server), &host.sessions).await;
            drop(outgoing.send(ShimMessage::Close { channel }.to_bytes()).await);
        });
    }

    async fn send(&self, message: &ShimMessage<'_>) {
        // A browser that is gone is noticed by the writer.
        drop(self.outgoing.send(message.to_bytes()).await);
    }
}

/// Gives what the browser writes until it closes its side.
fn read_messages(input: &mut impl Read, messages: &mpsc::Sender<ExtensionMessage>) -> Result<(), String> {
    let (mut reader, mut buffer) = (NativeMessageReader::new(), vec![0; READ_BYTES]);
    loop {
        let count = match input.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("the browser cannot be heard: {error}")),
        };
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            let is_whole = reader.is_between_messages();
            return if is_whole { Ok(()) } else { Err("the browser ended in the middle of a message".to_owned()) };
        };
        reader.push(bytes);
        while let Some(message) = reader.next_message().map_err(|error| error.message().to_owned())? {
            if messages.blocking_send(ExtensionMessage::parse(&message)?).is_err() {
                return Ok(());
            }
        }
    }
}

/// Writes until nobody has anything to write, or the browser takes nothing more.
fn write_messages(output: &mut impl Write, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.blocking_recv() {
        if output.write_all(&message).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// Messages between the pipes and the channels, each way; one can have megabytes, so that there are few.
const QUEUE: usize = 4;

/// Far more servers than an extension connects to.
const MAX_CHANNELS: usize = 64;

const READ_BYTES: usize = 64 * 1024;

/// How long the browser may take over what was still to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);
