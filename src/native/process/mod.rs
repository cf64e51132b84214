//! The processes of stdio MCP servers, started, watched and ended with all their descendants.
//!
//! A [`ServerProcess`] is three queues around one child: messages in, events out, log lines aside. The child runs in its
//! own process group. It ends when its input is dropped: its standard input closes, and if that is not enough the group
//! gets SIGTERM and then SIGKILL.
//!
//! What a crash of this program leaves behind is the business of a guardian: a small process between this one and the
//! child that notices the end of this one and ends the child. It is a program that calls [`guardian_main`], such as
//! `crablet-shim guard`, named in [`ServerCommand::guardian`]. Without one, a program that is killed leaves the end to
//! the server, which sees its input close.
//!
//! On Windows the child and all it starts are in a job object, which the system ends with this program; there is no
//! guardian, and none is needed.

mod child;
mod command;
mod command_output;
#[cfg(unix)]
mod control;
mod framer;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod group_child;
#[cfg(unix)]
mod guardian;
#[cfg(windows)]
mod job_child;
mod pipes;
mod queue;
mod server;
mod stderr;
#[cfg(any(windows, test))]
mod windows_program;

pub use command::{GuardianCommand, ServerCommand};
pub use command_output::{CommandOutput, OutputLimits, run_to_end};
pub use framer::{Line, LineFramer, MAX_LINE_BYTES};
#[cfg(unix)]
pub use guardian::guardian_main;
pub use queue::{QueueReceiver, QueueSender};
pub use server::{
    ExitReport, LogLine, LogSource, ProcessEvent, ProcessInput, ProcessOutput, ReadyInput, ServerProcess,
};
