//! What a guardian and the program that started it say to each other over a socket, the guardian's standard input.
//!
//! First the program passes the server's standard input as a file descriptor, with one byte. Then each side sends lines:
//! the program orders, the guardian reports. The end of the program's side is the order to end everything.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The order to end the server's group in good order.
pub(super) const TERMINATE: &[u8] = b"t";

/// The order to end the server's group at once.
pub(super) const KILL: &[u8] = b"k";

/// What a guardian reports, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The server runs under this process id, which is also its group's.
    Started(i32),
    /// The server could not be started, and why: the system's number for it where there is one, and the sentence.
    Failed { number: Option<i32>, sentence: String },
    /// The server ended by itself with this code.
    Exited(i32),
    /// The server was ended by this signal.
    Signalled(i32),
}

impl Report {
    pub(super) fn failed(error: &io::Error) -> Self {
        Self::Failed { number: error.raw_os_error(), sentence: error.to_string() }
    }

    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Started(id) => format!("started {id}\n"),
            Self::Failed { number, sentence } => {
                format!("failed {} {}\n", number.unwrap_or_default(), sentence.replace(['\n', '\r'], " "))
            }
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signalled(signal) => format!("signalled {signal}\n"),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ')?;
        match word {
            "started" => rest.parse().ok().map(Self::Started),
            "failed" => {
                let (number, sentence) = rest.split_once(' ')?;
                let number = number.parse().ok().filter(|number| *number != 0);
                Some(Self::Failed { number, sentence: sentence.to_owned() })
            }
            "exited" => rest.parse().ok().map(Self::Exited),
            "signalled" => rest.parse().ok().map(Self::Signalled),
            _ => None,
        }
    }
}

pub(super) fn send_descriptor(socket: impl AsFd, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("a file descriptor does not fit into a control message"));
    }
    sendmsg(socket, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
    Ok(())
}

pub(super) fn receive_descriptor(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(descriptor) = descriptors.next()
        {
            fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
            return Ok(descriptor);
        }
    }
    Err(io::Error::other("no file descriptor came; a guardian is started by crablet only, not by hand"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back_as_they_were() {
        let failed = |number| Report::Failed { number, sentence: "no such file".into() };
        for report in [Report::Started(17), failed(Some(2)), failed(None), Report::Exited(3), Report::Signalled(9)] {
            assert_eq!(Report::parse(&report.to_line()), Some(report));
        }
        let failed = Report::Failed { number: None, sentence: "a\nexited 0".into() };
        assert_eq!(failed.to_line(), "failed 0 a exited 0\n");
        assert_eq!(Report::parse("exited x"), None);
        assert_eq!(Report::parse(""), None);
    }
}
