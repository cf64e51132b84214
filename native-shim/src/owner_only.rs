//! Files that only their owner can read: by their mode on Unix. On Windows the user's local application data, where they
//! lie, is closed to others.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a directory, and those above it.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let mut directory = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
    directory.recursive(true).create(path)
}

/// Opens a file for writing, and makes it when there is none. What it holds stays.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(false).open(path)
}

/// Whether others can read a file.
pub(crate) fn is_exposed(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0;
    #[cfg(windows)]
    {
        let _ = metadata;
        false
    }
}
