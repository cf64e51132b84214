//! One call of a tool, passed on to whoever has the tool: progress and log messages come back while it is at work, and when
//! the caller gives it up it is cancelled there.

use std::sync::Arc;

use crablet::host::mcp::{Connection, OnProgress, ServerCall};
use crablet::json::{Object, RawJson};
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::server::{LogLevel, Outcome, Request};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, broadcast};

/// A log message of the other side, which does not say which call it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct LogMessage {
    level: LogLevel,
    logger: Option<String>,
    data: RawJson,
}

/// The log messages of one server for one agent, of which each is told by one of the calls that are at work.
#[derive(Clone, Debug)]
pub(crate) struct SharedLogs(Arc<Mutex<broadcast::Receiver<LogMessage>>>);

impl SharedLogs {
    pub(crate) fn of(logs: &broadcast::Sender<LogMessage>) -> Self {
        Self(Arc::new(Mutex::new(logs.subscribe())))
    }

    /// The next one; never when there are none any more.
    async fn next(&self) -> LogMessage {
        let mut logs = self.0.lock().await;
        loop {
            match logs.recv().await {
                Ok(message) => return message,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

/// How many log messages wait for a call; of more, the oldest are left out.
pub(crate) const LOG_QUEUE: usize = 64;

impl LogMessage {
    /// Reads what the other side notifies of, if it is a log message.
    pub(crate) fn read(event: &Event) -> Option<Self> {
        let Event::Notification { method, params: Some(params) } = event else { return None };
        let params = Object::parse(params.as_str()).ok().filter(|_| method == "notifications/message")?;
        Some(Self {
            level: LogLevel::from_name(&params.string("level")?)?,
            logger: params.string("logger"),
            data: params.raw("data")?,
        })
    }

    fn tell(self, call: &ServerCall) {
        call.log(self.level, self.logger.as_deref(), self.data);
    }
}

/// Passes a call on. Whatever keeps it from an answer is a failed result, which a model can read.
pub(crate) async fn relay(
    connection: &Connection,
    tool: &str,
    call: ServerCall,
    limits: CallOptions,
    logs: &SharedLogs,
) -> Outcome {
    let Request::Tool { arguments, .. } = &call.request else {
        return Outcome::Failed("this is not a call of a tool".to_owned());
    };
    let reporter = call.clone();
    let on_progress: Box<dyn OnProgress> = Box::new(move |report: Progress| {
        reporter.progress(report.progress, report.total, report.message.as_deref());
    });
    let answering = connection.call_tool(tool, arguments.clone(), limits, Some(on_progress));
    let mut answering = std::pin::pin!(answering);
    let answer = loop {
        tokio::select! {
            biased;
            message = logs.next() => message.tell(&call),
            answer = &mut answering => break answer,
        }
    };
    match answer {
        Ok(result) => Outcome::Tool(result),
        Err(error) => Outcome::Failed(error.message().to_owned()),
    }
}
