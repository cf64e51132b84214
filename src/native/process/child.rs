//! What the platforms have in common about a process: its pipes, how it is ended, how it ended.

use std::process::ExitStatus;

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(unix)]
pub(super) use super::group_child::{Child, start};
#[cfg(windows)]
pub(super) use super::job_child::{Child, start};

/// A process that was started, and its three pipes.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

/// The ways to end a process and what it started, the gentle one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Terminate,
    Kill,
}

pub(super) enum Ending {
    Exited(i32),
    #[cfg_attr(windows, expect(dead_code, reason = "there are no signals there"))]
    Signalled(i32),
    Unknown(String),
}

impl From<ExitStatus> for Ending {
    #[cfg(unix)]
    fn from(status: ExitStatus) -> Self {
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        match (status.code(), signal) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signalled(signal.unwrap_or_default()),
        }
    }

    #[cfg(windows)]
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Unknown("ended without a code".to_owned()), Self::Exited)
    }
}
