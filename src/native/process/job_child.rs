//! A process on Windows: the first of a job object, which ends all its processes when its handle is closed. The system
//! closes the handle also when this program is killed, so that no guardian is needed.

use std::io;
use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::Command;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::child::{Ending, Started, Stop};
use super::command::ServerCommand;

/// Starts a process. It is put into its job before it runs, so that nothing it starts is outside.
pub(super) async fn start(command: &ServerCommand) -> io::Result<Started> {
    let mut process = Command::from(command.to_command());
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = CommandWrap::from(process);
    // A program without a console, such as one that a browser started, would get a window for each child.
    job.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(KillOnDrop).wrap(JobObject);
    let mut child = job.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    Ok(Started { child: Child(child), stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) })
}

/// The job. Dropping it ends all its processes.
pub(super) struct Child(Box<dyn ChildWrapper>);

impl Child {
    /// Waits until the process has ended. May be dropped and called again until it gives an ending.
    pub(super) async fn ended(&mut self) -> Ending {
        // The job itself would wait for every process in it.
        let status = self.0.inner_mut().wait().await;
        // Whatever it left has no purpose any more and may hold its pipes open.
        drop(self.0.start_kill());
        status.map_or_else(|error| Ending::Unknown(error.to_string()), Ending::from)
    }

    /// The job has no one to look after what is left: the system does.
    pub(super) async fn bury(&self) {}

    /// Ends the job. A process without a window has no gentler end than that of its input, which came before.
    pub(super) async fn stop(&mut self, _stop: Stop) {
        // A job that is empty already is what was wanted.
        drop(self.0.start_kill());
    }
}
