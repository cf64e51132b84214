use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, OpenOptions};

use crate::error::{Error, ErrorKind};
use crate::host::BoxFuture;
use crate::host::tools::{FileEntry, FileError, FileKind, FileStore};

/// A folder of the machine.
///
/// The folder is opened once, and everything is found from that handle, one name after the other: no path and no symbolic
/// link leads out of it, also not one that another program puts there meanwhile. A link to something inside is followed.
/// Pipes and devices are not opened.
#[derive(Clone, Debug)]
pub struct FolderFiles(Arc<Dir>);

impl FolderFiles {
    /// Opens a folder, which must be there.
    ///
    /// # Errors
    ///
    /// `storage` when it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Dir::open_ambient_dir(path, ambient_authority()).map(|folder| Self(Arc::new(folder))).map_err(|error| {
            let message = format!("the folder {} cannot be opened: {error}", path.display());
            Error::new(ErrorKind::Storage, message)
        })
    }
}

impl FileStore for FolderFiles {
    fn list<'a>(&'a self, folder: &'a str, limit: usize) -> BoxFuture<'a, Result<Option<Vec<FileEntry>>, FileError>> {
        let (root, folder) = (self.0.clone(), folder.to_owned());
        Box::pin(blocking(move || list(&root, &folder, limit)))
    }

    fn read<'a>(&'a self, path: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, FileError>> {
        let (root, path) = (self.0.clone(), path.to_owned());
        Box::pin(blocking(move || read(&root, &path, max_bytes)))
    }

    fn write<'a>(&'a self, path: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<(), FileError>> {
        let (root, path) = (self.0.clone(), path.to_owned());
        Box::pin(blocking(move || write(&root, &path, &content)))
    }
}

fn list(root: &Dir, folder: &str, limit: usize) -> Result<Option<Vec<FileEntry>>, FileError> {
    let path = if folder.is_empty() { "." } else { folder };
    let Some(entries) = found(folder, root.read_dir(path))? else { return Ok(None) };
    let mut listed = Vec::new();
    for entry in entries.take(limit) {
        let entry = entry.map_err(|error| refused(folder, &error))?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() => FileKind::Folder,
            Ok(kind) if kind.is_file() => FileKind::File(entry.metadata().ok().map(|metadata| metadata.len())),
            _ => FileKind::Other,
        };
        listed.push(FileEntry { name: entry.file_name().to_string_lossy().into_owned(), kind });
    }
    Ok(Some(listed))
}

fn read(root: &Dir, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, FileError> {
    let Some(metadata) = found(path, root.metadata(path))? else { return Ok(None) };
    if !is_file(path, metadata.file_type())? {
        return Ok(None);
    }
    let Some(file) = found(path, root.open_with(path, &reading()))? else { return Ok(None) };
    // What was opened may be another thing than what was looked at.
    let metadata = file.metadata().map_err(|error| refused(path, &error))?;
    if !is_file(path, metadata.file_type())? {
        return Ok(None);
    }
    let too_large = |size| FileError::TooLarge { path: path.to_owned(), size, max_bytes };
    if metadata.len() > max_bytes {
        return Err(too_large(metadata.len()));
    }
    let mut content = Vec::new();
    // A file may grow while it is read.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).map_err(|error| refused(path, &error))?;
    let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if size > max_bytes { Err(too_large(size)) } else { Ok(Some(content)) }
}

fn write(root: &Dir, path: &str, content: &[u8]) -> Result<(), FileError> {
    let refused = |error| refused(path, &error);
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    if name.is_empty() {
        return Err(FileError::NoName);
    }
    let folder = if parents.is_empty() {
        root.try_clone().map_err(refused)?
    } else {
        match root.create_dir_all(parents).and_then(|()| root.open_dir(parents)) {
            Err(error) if matches!(error.kind(), IoErrorKind::NotADirectory | IoErrorKind::AlreadyExists) => {
                return Err(FileError::InTheWay(parents.to_owned()));
            }
            opened => opened.map_err(refused)?,
        }
    };
    let old = found(path, folder.symlink_metadata(name))?;
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(FileError::InTheWay(path.to_owned()));
    }
    // A new file in the place of the old one: in one step, and never through a link that was put there meanwhile.
    let draft = draft_name()?;
    let mut file = folder.open_with(&draft, OpenOptions::new().write(true).create_new(true)).map_err(refused)?;
    let permissions = old.map(|old| old.permissions());
    let written = (|| {
        file.write_all(content)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        folder.rename(&draft, &folder, name)
    })();
    written.map_err(|error| {
        let _already_gone = folder.remove_file(&draft);
        refused(error)
    })
}

/// Opens without waiting for the other end of a pipe that was put there meanwhile.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or_default());
    }
    options
}

/// Whether it is a file; `false` for a folder.
fn is_file(path: &str, kind: FileType) -> Result<bool, FileError> {
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(FileError::System(format!("{path} is neither a file nor a folder"))),
    }
}

/// What is not there, or stands below a file, is `None`.
fn found<T>(path: &str, asked: std::io::Result<T>) -> Result<Option<T>, FileError> {
    match asked {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(refused(path, &error)),
    }
}

fn refused(path: &str, error: &std::io::Error) -> FileError {
    // What the library itself refuses has no number of the system.
    if error.kind() == IoErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return FileError::Outside(path.to_owned());
    }
    FileError::System(error.kind().to_string())
}

fn draft_name() -> Result<String, FileError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| FileError::System(error.to_string()))?;
    Ok(format!(".crablet-{:016x}", u64::from_le_bytes(bytes)))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(FileError::System("the program is ending".to_owned())),
    }
}
