//! One scripted HTTP exchange: what the server answers, chunk by chunk.

use std::collections::VecDeque;
use std::future::pending;

use crablet::host::Body;
use crablet::model::ResponseHead;
use crablet::{Error, ErrorKind};

use super::{Observer, VirtualTime};

/// What a server answers to one request.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    head: Option<ResponseHead>,
    steps: VecDeque<Step>,
}

#[derive(Debug)]
enum Step {
    Chunk(Vec<u8>),
    Wait(u64),
    Jump(u64),
    Cut,
    Hang,
}

impl Exchange {
    /// An answer with this status and content type.
    pub(crate) fn new(status: u16, content_type: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { head: Some(ResponseHead { status, headers }), steps: VecDeque::new() }
    }

    /// A stream of events.
    pub(crate) fn stream() -> Self {
        Self::new(200, "text/event-stream")
    }

    /// No connection.
    pub(crate) fn unreachable() -> Self {
        Self::default()
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.as_mut().unwrap().headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends bytes as one chunk.
    pub(crate) fn chunk(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push_back(Step::Chunk(bytes.into()));
        self
    }

    /// Sends nothing for a while; as a first step, not even a head.
    pub(crate) fn wait(mut self, milliseconds: u64) -> Self {
        self.steps.push_back(Step::Wait(milliseconds));
        self
    }

    /// The machine sleeps: the clock jumps, and no timer fires on its way.
    pub(crate) fn jump(mut self, milliseconds: u64) -> Self {
        self.steps.push_back(Step::Jump(milliseconds));
        self
    }

    /// The connection breaks.
    pub(crate) fn cut(mut self) -> Self {
        self.steps.push_back(Step::Cut);
        self
    }

    /// Nothing more ever comes, and the connection stays open.
    pub(crate) fn hang(mut self) -> Self {
        self.steps.push_back(Step::Hang);
        self
    }

    pub(super) async fn perform(
        mut self,
        time: VirtualTime,
        observer: Observer,
    ) -> Result<(ResponseHead, ScriptedBody), Error> {
        let mut body = ScriptedBody { steps: VecDeque::new(), time, observer, complete: false };
        while let Some(Step::Wait(_) | Step::Hang) = self.steps.front() {
            match self.steps.pop_front() {
                Some(Step::Wait(milliseconds)) => body.time.sleep(milliseconds).await,
                _ => pending().await,
            }
        }
        let Some(head) = self.head else {
            body.complete = true;
            return Err(Error::new(ErrorKind::Network, "connection refused"));
        };
        body.steps = self.steps;
        Ok((head, body))
    }
}

/// The rest of an exchange.
pub(crate) struct ScriptedBody {
    steps: VecDeque<Step>,
    time: VirtualTime,
    observer: Observer,
    complete: bool,
}

impl Body for ScriptedBody {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            match self.steps.pop_front() {
                Some(Step::Chunk(bytes)) => {
                    self.observer.chunk_read();
                    return Ok(Some(bytes));
                }
                Some(Step::Wait(milliseconds)) => self.time.sleep(milliseconds).await,
                Some(Step::Jump(milliseconds)) => self.time.jump(milliseconds),
                Some(Step::Hang) => pending().await,
                Some(Step::Cut) => {
                    self.complete = true;
                    return Err(Error::new(ErrorKind::Network, "connection reset by peer"));
                }
                None => {
                    self.complete = true;
                    return Ok(None);
                }
            }
        }
    }
}

/// Dropped before its end: the server sees the connection close.
impl Drop for ScriptedBody {
    fn drop(&mut self) {
        if !self.complete {
            self.observer.aborted();
        }
    }
}
