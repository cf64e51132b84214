//! What must be gone when all scripts are over: sockets, files, tasks, processes. And memory that must not grow.

use std::fs;
use std::path::Path;
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
fn servers(ledger: &Path) -> usize {
    let needle = ledger.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let command = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
    processes.map(command).filter(|command| String::from_utf8_lossy(command).contains(&needle)).count()
}

/// What is left of the scripts outside of the build: sockets of the proxies, processes of MCP servers.
pub(crate) fn around(files_before: usize, ledger: &Path) -> Vec<String> {
    let mut left = Vec::new();
    let (files, servers) = (open_files(), servers(ledger));
    if files > files_before {
        left.push(format!("{files} files and sockets are open; {files_before} were before"));
    }
    if servers > 0 {
        left.push(format!("{servers} processes of MCP servers run"));
    }
    left
}

/// Waits until nothing is left over; otherwise says what is.
pub(crate) async fn left_over(patience: u32, mut look: impl AsyncFnMut() -> Vec<String>) -> Vec<String> {
    for _ in 0..patience {
        if look().await.is_empty() {
            return Vec::new();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    look().await
}

/// Says that memory has grown; what is noise is a fifth and 16 MiB.
pub(crate) fn growth(warm: u64, end: u64) -> Option<String> {
    (end > warm + warm / 5 + (16 << 10)).then(|| format!("memory grew from {warm} KiB to {end} KiB"))
}
