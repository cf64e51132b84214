//! The files of a folder of cases or recordings.

use std::fs;
use std::path::{Path, PathBuf};

/// The JSON files of a folder in the order of their names; none when there is no such folder.
pub(crate) fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
    let mut files = entries.unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}
