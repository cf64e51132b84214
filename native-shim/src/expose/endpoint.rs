//! Where `crablet-shim expose` finds the running shim: a Unix socket in the state directory, which only its owner can open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use tokio::net::{UnixListener, UnixStream};

use crate::state::StateDirectory;

/// The connection of an agent.
pub(crate) type AgentStream = UnixStream;

/// The place of the socket.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    directory: StateDirectory,
}

/// The listening socket. While it is there, no other shim of the same state directory has it.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    user: u32,
    path: PathBuf,
    _lock: File,
}

/// Why there is no way to a shim.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("no shim runs; start `crablet-shim serve`")]
    NotRunning,
    /// Somebody else may be at the other end.
    #[error("{} is not trusted: {why}", path.display())]
    Untrusted { path: PathBuf, why: &'static str },
    #[error("{}: {error}", path.display())]
    Broken { path: PathBuf, error: io::Error },
}

impl Endpoint {
    /// The place in this directory.
    pub(crate) fn of(directory: &StateDirectory) -> Self {
        Self { directory: directory.clone() }
    }

    /// Listens, or gives `None` when another shim does already.
    pub(crate) fn listen(&self) -> io::Result<Option<Listening>> {
        self.directory.create()?;
        // Held for as long as the program runs, so that what is left of a shim that was killed can be removed.
        let lock = self.directory.path().join("agents.lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let path = self.path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The directory, which nobody else can enter, covers the moment before the mode is set.
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(Some(Listening { listener, user: own_user()?, path, _lock: lock }))
    }

    /// Connects to the shim of this user.
    pub(crate) async fn connect(&self) -> Result<UnixStream, Unreachable> {
        let path = self.path();
        let user = own_user().map_err(|error| Unreachable::Broken { path: path.clone(), error })?;
        self.check(user)?;
        let stream = UnixStream::connect(&path).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Unreachable::NotRunning,
            _ => Unreachable::Broken { path: path.clone(), error },
        })?;
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == user => Ok(stream),
            Ok(_) => Err(Unreachable::Untrusted { path, why: "the program that listens there is another user's" }),
            Err(error) => Err(Unreachable::Broken { path, error }),
        }
    }

    /// Whether nobody else can have put the socket there.
    fn check(&self, user: u32) -> Result<(), Unreachable> {
        let untrusted = |path: PathBuf, why| Err(Unreachable::Untrusted { path, why });
        let look = |path: PathBuf| match fs::symlink_metadata(&path) {
            Ok(metadata) => Ok((path, metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unreachable::NotRunning),
            Err(error) => Err(Unreachable::Broken { path, error }),
        };
        // The directory may be reached over a link, which is the user's own affair; what it leads to counts.
        let directory = self.directory.path().to_owned();
        let found = fs::metadata(&directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Unreachable::NotRunning,
            _ => Unreachable::Broken { path: directory.clone(), error },
        })?;
        if found.uid() != user || found.mode() & 0o022 != 0 {
            return untrusted(directory, "others can write to the directory; run `chmod 700` on it");
        }
        let (path, socket) = look(self.path())?;
        if !socket.file_type().is_socket() {
            return untrusted(path, "it is no socket");
        }
        if socket.uid() != user || socket.mode() & 0o077 != 0 {
            return untrusted(path, "others can open it, or it is another user's");
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("agents.sock")
    }
}

impl Listening {
    /// The next program of this user that connects. Others are turned away.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The lock is still held, so that it is this shim's own.
        let _ = fs::remove_file(&self.path);
    }
}

/// The user that this program runs as, as the system sees it.
fn own_user() -> io::Result<u32> {
    let (own, _) = UnixStream::pair()?;
    Ok(own.peer_cred()?.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(name: &str) -> (StateDirectory, Endpoint) {
        let directory = StateDirectory::scratch(&format!("endpoint-{name}"));
        let endpoint = Endpoint::of(&directory);
        (directory, endpoint)
    }

    #[tokio::test]
    async fn only_its_owner_can_open_the_socket() {
        let (directory, endpoint) = place("mode");
        assert!(matches!(endpoint.connect().await, Err(Unreachable::NotRunning)));
        let listening = endpoint.listen().unwrap().unwrap();
        assert_eq!(fs::metadata(endpoint.path()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(directory.path()).unwrap().mode() & 0o777, 0o700);
        let (accepted, connected) = tokio::join!(listening.accept(), endpoint.connect());
        assert!(accepted.is_ok() && connected.is_ok());
        assert!(endpoint.listen().unwrap().is_none(), "a second shim leaves the first alone");
        drop(listening);
        assert!(matches!(endpoint.connect().await, Err(Unreachable::NotRunning)));
        assert!(endpoint.listen().unwrap().is_some());
        directory.remove();
    }

    #[tokio::test]
    async fn what_a_killed_shim_left_is_no_obstacle() {
        let (directory, endpoint) = place("stale");
        directory.create().unwrap();
        drop(std::os::unix::net::UnixListener::bind(endpoint.path()).unwrap());
        fs::set_permissions(endpoint.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(endpoint.connect().await, Err(Unreachable::NotRunning)));
        let _listening = endpoint.listen().unwrap().unwrap();
        assert!(endpoint.connect().await.is_ok());
        directory.remove();
    }

    #[tokio::test]
    async fn a_socket_that_others_may_have_made_is_refused() {
        let (directory, endpoint) = place("hostile");
        let _listening = endpoint.listen().unwrap().unwrap();
        let set_mode =
            |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(&endpoint.path(), 0o666);
        assert!(matches!(endpoint.connect().await, Err(Unreachable::Untrusted { .. })));
        set_mode(&endpoint.path(), 0o600);
        set_mode(directory.path(), 0o777);
        assert!(matches!(endpoint.connect().await, Err(Unreachable::Untrusted { .. })));
        set_mode(directory.path(), 0o700);
        assert!(endpoint.connect().await.is_ok());
        assert!(matches!(endpoint.check(own_user().unwrap() + 1), Err(Unreachable::Untrusted { .. })));

        let moved = directory.path().join("moved.sock");
        fs::rename(endpoint.path(), &moved).unwrap();
        symlink(&moved, endpoint.path()).unwrap();
        assert!(matches!(endpoint.connect().await, Err(Unreachable::Untrusted { .. })));
        fs::remove_file(endpoint.path()).unwrap();
        fs::write(endpoint.path(), "").unwrap();
        assert!(matches!(endpoint.connect().await, Err(Unreachable::Untrusted { .. })));
        directory.remove();
    }
}
