//! The least that a bridge between a WebSocket and a stdio server can do: no checks, no numbers, no limits, one thread.
//!
//! ```text
//! bare-relay PORT COMMAND
//! ```
//!
//! Each WebSocket on PORT gets a process of COMMAND; a text message is a line.

use std::error::Error;
use std::process::Stdio;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().ok_or("the first argument is the port")?.parse::<u16>()?;
    let command = arguments.next().ok_or("the second argument is the command")?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let command = command.clone();
        tokio::spawn(async move {
            if let Err(error) = relay(stream, command).await {
                eprintln!("{error}");
            }
        });
    }
}

async fn relay(stream: TcpStream, command: String) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    let limits = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
    let socket = tokio_tungstenite::accept_async_with_config(stream, Some(limits)).await?;
    let mut process = Command::new(command).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut input = process.stdin.take().ok_or("no standard input")?;
    let mut output = BufReader::with_capacity(64 * 1024, process.stdout.take().ok_or("no standard output")?);
    let (mut sink, mut source) = socket.split();
    let down = async {
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).await? == 0 {
                return Ok::<_, Box<dyn Error>>(());
            }
            line.truncate(line.trim_end().len());
            sink.send(Message::text(line)).await?;
        }
    };
    let up = async {
        while let Some(message) = source.next().await {
            if let Message::Text(text) = message? {
                let mut line = Vec::from(text.as_bytes());
                line.push(b'\n');
                input.write_all(&line).await?;
            }
        }
        Ok::<_, Box<dyn Error>>(())
    };
    tokio::select! {
        result = down => result,
        result = up => result,
    }
}

const MAX_BYTES: usize = 1 << 28;
