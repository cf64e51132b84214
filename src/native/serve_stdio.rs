//! An MCP server on the standard input and output of this program.

use std::io::{self, BufRead, Write};
use std::thread;
use std::time::Duration;

use futures_channel::{mpsc, oneshot};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::host::mcp::{McpServer, ServerControl, send};

/// The longest message of a client, in bytes; the rest of a longer line is skipped and the client told.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// How long calls that are at work when the client closes its side may take to end.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// Serves the program that started this one, over standard input and output, until that closes standard input. Nothing else
/// should print to standard output, since not every client skips what is no message; standard error is free for people to read.
///
/// Calls run beside one another. Those at work when standard input closes get two more seconds.
///
/// # Errors
///
/// When standard output cannot be written.
pub async fn serve_stdio(server: &McpServer) -> io::Result<()> {
    serve_stdio_with(server, drop).await
}

/// As [`serve_stdio`], and first hands out the control by which what is served is changed.
///
/// # Errors
///
/// When standard output cannot be written.
pub async fn serve_stdio_with(server: &McpServer, control: impl FnOnce(ServerControl)) -> io::Result<()> {
    let (mut came, lines) = mpsc::channel(0);
    let (closed, input_ended) = oneshot::channel();
    // Reading standard input blocks, and cannot be stopped: a thread of its own ends with the program.
    let runtime = Handle::current();
    thread::spawn(move || {
        read_lines(&mut io::stdin().lock(), |line| runtime.block_on(send(&mut came, line)));
        drop(came);
        let _is_over = closed.send(());
    });
    let (out, going) = mpsc::channel(0);
    let (written, writing_ended) = oneshot::channel();
    let runtime = Handle::current();
    thread::spawn(move || written.send(write_lines(&runtime, going)));

    let (serving, handle) = server.serve(lines, out);
    control(handle);
    let too_late = Box::pin(async {
        let _ended = input_ended.await;
        sleep(LAST_CALLS).await;
    });
    if let Either::Right((_, serving)) = select(serving, too_late).await {
        drop(serving);
    }
    writing_ended.await.unwrap_or(Ok(()))
}

/// Gives each line until the end, or until one is not taken. Of a line that is too long only its beginning is given, which
/// is no JSON, so that the client hears of it.
fn read_lines(input: &mut impl BufRead, mut take: impl FnMut(String) -> bool) {
    let mut line = Vec::new();
    loop {
        let read = match input.fill_buf() {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => &[],
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        let piece = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let (count, is_over) = (piece.len() + usize::from(end.is_some()), read.is_empty());
        input.consume(count);
        if end.is_some() || is_over {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_start_matches('\u{feff}').trim();
            if !text.is_empty() && !take(text.to_owned()) {
                return;
            }
            line.clear();
        }
        if is_over {
            return;
        }
    }
}

fn write_lines(runtime: &Handle, mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(mut line) = runtime.block_on(lines.next()) {
        line.push('\n');
        // Locked for this line only: a function that prints would wait for ever, and its runtime with it.
        let mut output = io::stdout().lock();
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        read_lines(&mut &*text, |line| {
            lines.push(line);
            true
        });
        lines
    }

    #[test]
    fn lines_are_cut_at_newlines_and_nowhere_else() {
        assert_eq!(
            lines(b"\xef\xbb\xbf{\"a\":1}\r\n\n{}\n\xff\n{\"last\":2}"),
            ["{\"a\":1}", "{}", "\u{fffd}", "{\"last\":2}"]
        );
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn of_a_line_that_is_too_long_the_beginning_is_given() {
        let mut text = vec![b'['; MAX_LINE_BYTES + 10];
        text.extend_from_slice(b"\n{}\n");
        let lines = lines(&text);
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "{}"));
    }

    #[test]
    fn reading_ends_when_nobody_takes_lines() {
        let mut count = 0;
        read_lines(&mut &b"a\nb\nc\n"[..], |_| {
            count += 1;
            count < 2
        });
        assert_eq!(count, 2);
    }
}
