use thiserror::Error;

use crate::host::{BoxFuture, MaybeSend, MaybeSync};

/// Where the file tools work.
///
/// Paths are relative to the store's root, with "/" between names; "" is the root. The tools have checked them: no `..`,
/// no absolute path, no backslash. A store must see to what only it can know, such as symbolic links that lead out of it.
pub trait FileStore: MaybeSend + MaybeSync + 'static {
    /// What stands in a folder, at most `limit` entries in any order; `None` when there is no such folder.
    fn list<'a>(&'a self, folder: &'a str, limit: usize) -> BoxFuture<'a, Result<Option<Vec<FileEntry>>, FileError>>;

    /// The content of a file; `None` when there is no such file, and [`FileError::TooLarge`] when it has more bytes.
    fn read<'a>(&'a self, path: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, FileError>>;

    /// Replaces a file, or makes it with the folders that lead to it. Either the whole content is there afterwards or the
    /// old one.
    fn write<'a>(&'a self, path: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<(), FileError>>;
}

/// What stands in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name, without the folders above it.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file, and its size in bytes where that is known without reading it.
    File(Option<u64>),
    /// A folder.
    Folder,
    /// What can be neither read nor listed, such as a pipe, a device or a symbolic link.
    Other,
}

/// Why a store did not do as asked. The message is told to the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file is larger than what may be read of it.
    #[error("{path} has {size} bytes, and at most {max_bytes} are read of one file")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// Something of another kind stands in the way: a folder where a file is wanted, or a file where a folder is.
    #[error("{0} is in the way: it is there already, and of another kind")]
    InTheWay(String),
    /// The path leads out of the store.
    #[error("{0} leads out of these files")]
    Outside(String),
    /// These files can only be read.
    #[error("these files can only be read")]
    ReadOnly,
    /// There is no room.
    #[error("there is no room for {path}: all files together may have {max_bytes} bytes")]
    Full {
        /// The file.
        path: String,
        /// The limit.
        max_bytes: u64,
    },
    /// The path needs a name.
    #[error("a file needs a name")]
    NoName,
    /// What the system said. It names no path of the machine.
    #[error("the system refused: {0}")]
    System(String),
}
