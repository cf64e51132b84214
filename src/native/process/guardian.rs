use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, wait, waitid};

use super::control::{KILL, Report, TERMINATE, receive_descriptor};
use super::group::signal_group;

/// The whole life of a guardian: starts the server of this command line in a group of its own, passes orders and reports
/// between it and the program that started the guardian, and ends it with all its descendants when that program is
/// gone. Returns when nothing is left.
///
/// It is called by a program that [`GuardianCommand`](super::GuardianCommand) names, first thing in its `main`.
pub fn guardian_main(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    match guard(command_line.into_iter().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crablet guardian: {error}");
            ExitCode::FAILURE
        }
    }
}

fn guard(command_line: Vec<OsString>) -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let server_input = receive_descriptor(&control)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let server = match start(&command_line, server_input) {
        Ok(server) => server,
        Err(error) => return report(&control, &Report::failed(&error)),
    };
    report(&control, &Report::Started(server.as_raw_nonzero().get()))?;
    // The server's output ends when the server closes it, not only when its guardian is gone too.
    rustix::stdio::dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?;
    let orders = control.try_clone()?;
    thread::spawn(move || follow_orders(orders, server));
    // The server stays a zombie until everything else is gone, so that its group's number cannot pass to another group.
    let ended = wait_for(server)?;
    // A program that is gone no longer reads this, and nothing else depends on it.
    let _ = report(&control, &ended);
    sweep(server);
    Ok(())
}

fn start(command_line: &[OsString], input: OwnedFd) -> io::Result<Pid> {
    let (program, arguments) = command_line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program).args(arguments).stdin(Stdio::from(input)).process_group(0).spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("a process id of 0"))
}

fn report(control: &UnixStream, report: &Report) -> io::Result<()> {
    let mut control = control;
    control.write_all(report.to_line().as_bytes())
}

/// Does as told until the socket ends, which means that the program is gone.
fn follow_orders(mut orders: UnixStream, server: Pid) {
    let mut order = [0];
    loop {
        match orders.read(&mut order) {
            Ok(1) if order == TERMINATE => signal_group(server, Signal::TERM),
            Ok(1) if order == KILL => signal_group(server, Signal::KILL),
            Ok(1) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    signal_group(server, Signal::TERM);
    thread::sleep(LAST_CHANCE);
    signal_group(server, Signal::KILL);
}

/// Waits until the server has ended, and buries descendants that were handed to the guardian meanwhile.
fn wait_for(server: Pid) -> io::Result<Report> {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // The server itself is left unburied.
        let ended = waitid(WaitId::Pid(server), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)?;
        if let Some(status) = ended {
            return Ok(ending(status.exit_status(), status.terminating_signal()));
        }
        if let Some((id, status)) = wait(WaitOptions::NOHANG)?
            && id == server
        {
            return Ok(ending(status.exit_status(), status.terminating_signal()));
        }
    }
}

fn ending(code: Option<i32>, signal: Option<i32>) -> Report {
    code.map_or_else(|| Report::Signalled(signal.unwrap_or_default()), Report::Exited)
}

/// Ends whatever the server left: its group, and on Linux those descendants too that left the group, since they are
/// handed to the guardian when their parents end.
fn sweep(server: Pid) {
    for _ in 0..SWEEPS {
        signal_group(server, Signal::KILL);
        #[cfg(target_os = "linux")]
        for orphan in descendants::own_children().filter(|child| *child != server) {
            let _ = rustix::process::kill_process(orphan, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // Nothing is left.
                Err(_) => return,
            }
        }
        thread::sleep(SWEEP_PAUSE);
    }
}

#[cfg(target_os = "linux")]
mod descendants {
    use std::fs;

    use rustix::process::{Pid, getpid};

    /// The processes whose parent is this one, read from the process table.
    pub(super) fn own_children() -> impl Iterator<Item = Pid> {
        let own = getpid();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let id = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            (parent(&stat)? == own.as_raw_nonzero().get()).then_some(id)
        })
    }

    /// The parent in a line of `/proc/<id>/stat`: the second field after the name, which stands in parentheses and may
    /// hold any character.
    fn parent(stat: &str) -> Option<i32> {
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_parent_is_found_behind_any_name() {
            assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
            assert_eq!(parent("12"), None);
        }
    }
}

/// Between SIGTERM and SIGKILL when the program that wanted the server is gone: the server has also seen its input
/// close, and nobody is left to wait for it.
const LAST_CHANCE: Duration = Duration::from_millis(500);

/// How often and how long apart the table is looked through; a descendant may start another while it is being ended.
const SWEEPS: u32 = 200;
const SWEEP_PAUSE: Duration = Duration::from_millis(5);
