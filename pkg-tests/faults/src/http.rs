//! As much HTTP/1.1 as a proxy needs that must be able to break it anywhere.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest line of a head, and the longest body, in bytes: nothing in a script comes near.
const LONGEST_LINE: u64 = 64 << 10;
const LONGEST_BODY: usize = 64 << 20;

pub(crate) type Connection = BufReader<TcpStream>;

/// A first line and headers, names in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; `None` when the connection ends before one.
    pub(crate) async fn read(connection: &mut Connection) -> io::Result<Option<Self>> {
        let Some(first) = line(connection).await? else { return Ok(None) };
        let mut headers = Vec::new();
        while let Some(header) = line(connection).await?.filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once(':').unwrap_or((&header, ""));
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Some(Self { first, headers }))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(own, _)| own != name);
    }

    pub(crate) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// The path of a request, without its query.
    pub(crate) fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default()
    }

    /// The status of an answer.
    pub(crate) fn status(&self) -> u16 {
        self.first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{}\r\n{}\r\n", self.first, headers.collect::<String>()).into_bytes()
    }

    /// Reads the body that follows this head of a request.
    pub(crate) async fn body_of_request(&self, connection: &mut Connection) -> io::Result<Vec<u8>> {
        if self.is_chunked() {
            return whole_chunked(connection).await;
        }
        match self.length() {
            Some(length) => exactly(connection, length).await,
            None => Ok(Vec::new()),
        }
    }

    /// Reads the body that follows this head of an answer.
    pub(crate) async fn body_of_answer(&self, connection: &mut Connection) -> io::Result<Vec<u8>> {
        if self.is_chunked() {
            return whole_chunked(connection).await;
        }
        match self.length() {
            Some(length) => exactly(connection, length).await,
            None if matches!(self.status(), 100..200 | 204 | 304) => Ok(Vec::new()),
            None => {
                let mut body = Vec::new();
                connection.take(LONGEST_BODY as u64).read_to_end(&mut body).await?;
                Ok(body)
            }
        }
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"))
    }

    fn length(&self) -> Option<usize> {
        self.header("content-length")?.parse().ok()
    }
}

async fn line(connection: &mut Connection) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    (&mut *connection).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

async fn exactly(connection: &mut Connection, length: usize) -> io::Result<Vec<u8>> {
    if length > LONGEST_BODY {
        return Err(io::Error::other("a body is too long"));
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    Ok(body)
}

async fn whole_chunked(connection: &mut Connection) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(connection).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16);
        let size = size.map_err(|_| io::Error::other("a chunk has no size"))?;
        body.extend(exactly(connection, size).await?);
        line(connection).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Writes a chunk of a body; an empty one ends the body.
pub(crate) async fn write_chunk(connection: &mut Connection, bytes: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    connection.write_all(&chunk).await?;
    connection.flush().await
}

/// Writes a whole small answer.
pub(crate) async fn write_answer(
    connection: &mut Connection,
    status: &str,
    media: &str,
    body: &[u8],
) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n", body.len());
    connection.write_all(&[head.as_bytes(), body].concat()).await?;
    connection.flush().await
}

/// Waits until the other side has gone; what it still says is dropped.
pub(crate) async fn until_closed(connection: &mut Connection) {
    let mut waste = [0; 256];
    while connection.read(&mut waste).await.is_ok_and(|read| read > 0) {}
}
