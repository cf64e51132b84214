//! The flags of `serve` that are about NATS, and the connection that they ask for.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use clap::Args;

use crate::config::Config;
use crate::log::note;

/// How servers are served over NATS. Secrets come from files or the environment, never from the command line.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "NATS")]
pub(crate) struct NatsArguments {
    /// Serves the servers of --nats-server over NATS too: the address of a NATS server, or several with commas between.
    #[arg(long, env = "CRABLET_NATS_URL", requires = "nats_servers", hide_env_values = true)]
    pub(crate) nats: Option<String>,
    /// The name of a server in the configuration file that everyone who may publish to its subject can use. May be given
    /// several times.
    #[arg(long = "nats-server", requires = "nats")]
    pub(crate) nats_servers: Vec<String>,
    /// A server, of those of --nats-server, that keeps what it knows of a client: it is served in sessions only, each of which
    /// stays with one process. May be given several times.
    #[arg(long = "nats-stateful", requires = "nats")]
    pub(crate) nats_stateful: Vec<String>,
    /// What the subjects begin with: a server is at PREFIX.NAME.
    #[arg(long, default_value = "mcp", requires = "nats")]
    pub(crate) nats_prefix: String,
    /// The queue group: of the shims in one, a call reaches one.
    #[arg(long, default_value = "crablet-shim", requires = "nats")]
    pub(crate) nats_queue: String,
    /// A credentials file (JWT and nkey).
    #[arg(long, env = "CRABLET_NATS_CREDS", requires = "nats", group = "nats_identity")]
    nats_creds: Option<PathBuf>,
    /// A file that holds the seed of an nkey.
    #[arg(long, env = "CRABLET_NATS_NKEY", requires = "nats", group = "nats_identity")]
    nats_nkey: Option<PathBuf>,
    /// A file that holds a token. The variable CRABLET_NATS_TOKEN holds the token itself.
    #[arg(long, requires = "nats", group = "nats_identity")]
    nats_token_file: Option<PathBuf>,
    /// A user, whose password is in --nats-password-file or the variable CRABLET_NATS_PASSWORD.
    #[arg(long, env = "CRABLET_NATS_USER", requires = "nats", group = "nats_identity")]
    nats_user: Option<String>,
    /// A file that holds the password of --nats-user.
    #[arg(long, requires = "nats_user")]
    nats_password_file: Option<PathBuf>,
    /// A PEM file with the certificates that the NATS server's is checked against, beside those of the system.
    #[arg(long, requires = "nats")]
    nats_ca: Option<PathBuf>,
    /// A PEM file with the certificate that the shim shows to the NATS server.
    #[arg(long, requires_all = ["nats", "nats_key"])]
    nats_cert: Option<PathBuf>,
    /// A PEM file with the key of --nats-cert.
    #[arg(long, requires_all = ["nats", "nats_cert"])]
    nats_key: Option<PathBuf>,
    /// Begins TLS before the NATS server has said anything, for servers that are set up so (`handshake_first`).
    #[arg(long, requires = "nats")]
    nats_tls_first: bool,
}

/// Why nothing is served over NATS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NatsError {
    #[error("--nats-server names {0:?}, which the configuration file does not have; it has: {1}")]
    UnknownServer(String, String),
    #[error(
        "the server {0:?} cannot be served over NATS: its name is part of a subject there, and so has letters, digits, - and _ only"
    )]
    NameOfServer(String),
    #[error("--nats-prefix is {0:?}: a prefix has letters, digits, -, _ and single dots between them")]
    Prefix(String),
    #[error(
        "the NATS address holds a user or password, which every process of this machine can read there: use --nats-creds, \
         --nats-user with --nats-password-file, --nats-token-file or --nats-nkey"
    )]
    SecretInAddress,
    #[error("--nats-user has no password: give --nats-password-file, or the variable CRABLET_NATS_PASSWORD")]
    NoPassword,
    #[error("{file} cannot be used: {error}")]
    File { file: PathBuf, error: io::Error },
    #[error(
        "no connection to the NATS server: {0}; is it running there, and do the credentials and certificates fit? See docs/nats.md"
    )]
    Connect(async_nats::ConnectError),
    #[error("the NATS server does not let the shim serve {server:?}: {error}; see the permissions in docs/nats.md")]
    Serve { server: String, error: async_nats::Error },
    #[error("the NATS server let the shim in, and then did not answer within 5 s: is it overloaded?")]
    Unanswered,
    #[error("the NATS connection has failed: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

impl NatsArguments {
    /// Checks the names that are parts of subjects, and that the configuration has the servers.
    pub(super) fn check_names(&self, config: &Config) -> Result<(), NatsError> {
        if !self.nats_prefix.split('.').all(is_token) {
            return Err(NatsError::Prefix(self.nats_prefix.clone()));
        }
        for name in self.nats_servers.iter().chain(&self.nats_stateful) {
            if !config.servers.contains_key(name) {
                return Err(NatsError::UnknownServer(name.clone(), config.names()));
            }
            if !is_token(name) {
                return Err(NatsError::NameOfServer(name.clone()));
            }
        }
        Ok(())
    }

    /// Connects, and goes on trying for ever once a connection has stood.
    pub(super) async fn connect(&self, url: &str) -> Result<Client, NatsError> {
        self.connect_with(url, ConnectOptions::new().event_callback(report)).await
    }

    /// Connects as [`connect`](Self::connect) does, with another listener to what happens on the connection.
    pub(super) async fn connect_with(&self, url: &str, options: ConnectOptions) -> Result<Client, NatsError> {
        if url.contains('@') {
            return Err(NatsError::SecretInAddress);
        }
        let mut options = options.name("crablet-shim").max_reconnects(None);
        options = self.identify(options).await?;
        if let Some(file) = &self.nats_ca {
            options = options.add_root_certificates(readable(file)?);
        }
        if let (Some(certificate), Some(key)) = (&self.nats_cert, &self.nats_key) {
            options = options.add_client_certificate(readable(certificate)?, readable(key)?);
        }
        if self.nats_ca.is_some() || self.nats_cert.is_some() {
            options = options.require_tls(true);
        }
        if self.nats_tls_first {
            options = options.tls_first();
        }
        options = options.connection_timeout(CONNECT_LIMIT);
        let addresses: Vec<&str> = url.split(',').map(str::trim).collect();
        options.connect(addresses).await.map_err(NatsError::Connect)
    }

    async fn identify(&self, options: ConnectOptions) -> Result<ConnectOptions, NatsError> {
        if let Some(file) = &self.nats_creds {
            let unusable = |error| NatsError::File { file: file.clone(), error };
            return options.credentials_file(file).await.map_err(unusable);
        }
        if let Some(file) = &self.nats_nkey {
            return Ok(options.nkey(secret_of(file)?));
        }
        if let Some(user) = &self.nats_user {
            let password = match &self.nats_password_file {
                Some(file) => secret_of(file)?,
                None => std::env::var("CRABLET_NATS_PASSWORD").map_err(|_| NatsError::NoPassword)?,
            };
            return Ok(options.user_and_password(user.clone(), password));
        }
        let token = match &self.nats_token_file {
            Some(file) => Some(secret_of(file)?),
            None => std::env::var("CRABLET_NATS_TOKEN").ok(),
        };
        Ok(match token {
            Some(token) => options.token(token),
            None => options,
        })
    }
}

/// Whether a text can be one token of a subject, and the name of a service.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// What is in a file, without the line end.
fn secret_of(file: &Path) -> Result<String, NatsError> {
    let text = std::fs::read_to_string(file).map_err(|error| NatsError::File { file: file.to_owned(), error })?;
    Ok(text.trim().to_owned())
}

/// The path of a file that is there: else the connection would fail without naming it.
fn readable(file: &Path) -> Result<PathBuf, NatsError> {
    match std::fs::File::open(file) {
        Ok(_) => Ok(file.to_owned()),
        Err(error) => Err(NatsError::File { file: file.to_owned(), error }),
    }
}

async fn report(event: Event) {
    match event {
        Event::Connected => {}
        Event::Disconnected => note("the connection to the NATS server is lost; it is tried again until it stands"),
        Event::SlowConsumer(_) => note("messages from the NATS server were lost: more came than the shim could take"),
        Event::ServerError(error) => note(format!("the NATS server refuses: {error}")),
        Event::ClientError(error) => note(format!("the NATS connection has an error: {error}")),
        _ => {}
    }
}

/// How long a connection may take, TLS and credentials included.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
