//! A real nats-server with JetStream and WebSocket, on free ports and in a folder of its own. Shared by the tests of the
//! crate and of the shim, which include this file by its path.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The server. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub(crate) struct NatsServer {
    /// `nats://127.0.0.1:PORT`.
    pub(crate) url: String,
    process: Child,
    folder: PathBuf,
}

impl NatsServer {
    /// A server; `config` is added to its configuration file, such as users and permissions.
    pub(crate) fn start(config: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("crablet-nats-{}-{number}", std::process::id()));
        let ports = folder.join("ports");
        std::fs::create_dir_all(&ports).unwrap();
        let text = format!(
            "listen: \"127.0.0.1:-1\"\nwebsocket {{ listen: \"127.0.0.1:-1\", no_tls: true }}\n\
             jetstream {{ store_dir: {:?} }}\nports_file_dir: {ports:?}\n{config}\n",
            folder.join("jetstream"),
        );
        let file = folder.join("nats.conf");
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = Command::new(program())
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nats-server is needed: scripts/setup.sh nats");
        let mut server = Self { url: String::new(), process, folder };
        server.url = server.wait_for_port(&ports);
        server
    }

    /// The server's folder, for files that a test wants beside it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn wait_for_port(&mut self, ports: &Path) -> String {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline && self.process.try_wait().unwrap().is_none() {
            let text =
                std::fs::read_dir(ports).unwrap().flatten().next().map(|file| std::fs::read_to_string(file.path()));
            if let Some(Ok(text)) = text
                && let Ok(found) = serde_json::from_str::<Value>(&text)
            {
                return found["nats"][0].as_str().unwrap().to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("nats-server did not start:\n{}", std::fs::read_to_string(self.folder.join("log")).unwrap_or_default());
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Packages put it where only root's PATH looks.
fn program() -> PathBuf {
    let installed = PathBuf::from("/usr/sbin/nats-server");
    match std::env::var_os("NATS_SERVER") {
        Some(program) => program.into(),
        None if installed.exists() => installed,
        None => "nats-server".into(),
    }
}

/// Only a server that does not start takes so long.
const LIMIT: Duration = Duration::from_secs(60);
