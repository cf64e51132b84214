//! What must be gone when all scripts are over: sockets, files, tasks, processes. And memory that must not grow.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long what is on its way to its end may take, in steps of a tenth of a second: longer than the shim's grace and the
/// clean-up behind it.
pub(crate) const PATIENCE: u32 = 300;

/// How many files and sockets this process has open.
pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The resident memory of this process, in KiB.
pub(crate) fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// How many processes serve the ledger of this folder, guardians included.
pub(crate) fn servers(ledger: &Path) -> usize {
    let needle = ledger.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let command = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
    processes.map(command).filter(|command| String::from_utf8_lossy(command).contains(&needle)).count()
}

/// Waits until nothing is left over; otherwise says what is.
pub(crate) async fn left_over(files_before: usize, tasks: &AtomicUsize, ledger: &Path, patience: u32) -> Vec<String> {
    let mut left = Vec::new();
    for _ in 0..patience {
        let (files, tasks, servers) = (open_files(), tasks.load(Ordering::Relaxed), servers(ledger));
        left.clear();
        if files > files_before {
            left.push(format!("{files} files and sockets are open; {files_before} were before"));
        }
        if tasks > 0 {
            left.push(format!("{tasks} tasks of crablet are at work"));
        }
        if servers > 0 {
            left.push(format!("{servers} processes of MCP servers run"));
        }
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    left
}

/// Says that memory has grown; what is noise is a fifth and 16 MiB.
pub(crate) fn growth(warm: u64, end: u64) -> Option<String> {
    (end > warm + warm / 5 + (16 << 10)).then(|| format!("memory grew from {warm} KiB to {end} KiB"))
}
