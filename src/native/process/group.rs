use rustix::process::{Pid, Signal, kill_process_group};

/// Sends a signal to every process of a group. That it fails when the group has just ended is what was wanted.
pub(super) fn signal_group(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}
