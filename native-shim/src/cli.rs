//! The commands, and what they print.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use crablet::mcp::transport::shim::{DEFAULT_PORT, PairingCode, http_path};
use crablet::native::now;
use crablet::native::process::GuardianCommand;

use crate::config::{Config, ConfigError};
use crate::consent::consent;
use crate::doctor::examine;
use crate::expose::{ConsentFile, Endpoint, Listening, Pages, expose, follow_consents, serve_agents};
use crate::extension::ExtensionId;
use crate::grants::{Exposure, Grant, GrantError, GrantFile, Kept, new_token};
use crate::http::HttpGrant;
use crate::install::{InstallArguments, InstallError, UninstallArguments, install, uninstall};
use crate::listener::{KeyFiles, Shim, bind};
use crate::log::note;
use crate::native_host::{NativeHost, serve_extension};
#[cfg(feature = "nats")]
use crate::nats::{NatsArguments, NatsError, NatsFront};
use crate::origin::{NotAnOrigin, Origin};
use crate::output;
use crate::pairings::{Pairing, PairingClient, PairingFile, Progress};
use crate::reload::follow_config;
use crate::sessions::Sessions;
use crate::signals::EndSignals;
use crate::state::{StateDirectory, StateError};

/// The first argument of a guardian. Not a command for people, and so not in the help.
pub(crate) const GUARD: &str = "guard";

const NAME: &str = env!("CARGO_BIN_NAME");

/// Version and commit.
const VERSION: &str = match env!("CRABLET_COMMIT").as_bytes() {
    [] => env!("CARGO_PKG_VERSION"),
    _ => concat!(env!("CARGO_PKG_VERSION"), " (", env!("CRABLET_COMMIT"), ")"),
};

/// Hands local stdio MCP servers to pages, extensions and workers over a loopback WebSocket.
#[derive(Debug, Parser)]
#[command(version = VERSION)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Where tokens and consents are kept. Default: `crablet` in `XDG_STATE_HOME`, or in the user's folder for such files.
    #[arg(long, global = true, env = "CRABLET_STATE_DIR")]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the servers of a configuration file until it is stopped.
    Serve(Box<Serve>),
    /// Says what is wrong with a set-up: reads the file and the tokens, and starts every server once.
    Doctor(Box<Doctor>),
    /// Makes a token for one or more origins and the named servers, and prints it.
    Grant(GrantArguments),
    /// Shows a code for a page, waits until it is typed there, and makes a token for that page's origin.
    Pair(PairArguments),
    /// Lists the tokens by their key ids.
    Tokens,
    /// Serves the tools of paired pages on standard input and output: for an agent such as Claude Code or Cursor to start.
    Expose,
    /// Lists the tools of pages that wait for consent, or agrees to some.
    Consent {
        /// The ids of tools to agree to, as the list shows them.
        ids: Vec<String>,
        /// Takes back what was agreed to instead.
        #[arg(long, requires = "ids")]
        withdraw: bool,
        /// Lists what was agreed to as well.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Lets a browser start the shim for extensions, which then need no port and no token.
    Install(InstallArguments),
    /// Takes that back from a browser, or from some extensions.
    Uninstall(UninstallArguments),
    /// What a browser starts for an extension: serves it over standard input and output.
    NativeMessaging(NativeMessaging),
    /// Prints completions for a shell, to be sourced.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Prints the manual page, for `man -l -`.
    Man,
    /// Takes a token back. Open connections that use it end within 20 seconds.
    Revoke {
        /// The part of the token before the dot.
        #[arg(allow_hyphen_values = true)]
        key_id: String,
    },
}

#[derive(Debug, Args)]
struct Serve {
    /// The mcpServers file.
    #[arg(long)]
    config: PathBuf,
    /// The TCP port on 127.0.0.1; 0 for any free one.
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Lets in only this origin of those that tokens name. May be given several times.
    #[arg(long = "origin")]
    origins: Vec<String>,
    /// How many seconds a process waits for a client that lost its connection.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,
    #[cfg(feature = "nats")]
    #[command(flatten)]
    nats: NatsArguments,
}

#[derive(Debug, Args)]
struct Doctor {
    /// The mcpServers file.
    #[arg(long)]
    config: PathBuf,
    /// The TCP port that the shim is to listen on.
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    #[cfg(feature = "nats")]
    #[command(flatten)]
    nats: NatsArguments,
}

#[derive(Debug, Args)]
struct NativeMessaging {
    /// The mcpServers file.
    #[arg(long)]
    config: PathBuf,
    /// What the browser passes on, by which it names the extension.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    browser_arguments: Vec<String>,
}

#[derive(Debug, Args)]
#[group(id = "client", required = true, multiple = true)]
struct Client {
    /// The origin of the page or extension, such as `https://app.example` or `chrome-extension://ID`.
    #[arg(long = "origin", conflicts_with = "native")]
    origins: Vec<String>,
    /// For a program that is no browser and sends no origin.
    #[arg(long)]
    native: bool,
}

/// What a token opens.
#[derive(Debug, Args)]
struct Opens {
    /// The name of a server in the configuration file.
    #[arg(long = "server", required_unless_present = "expose")]
    servers: Vec<String>,
    /// Lets the page offer tools of its own to agents, by `crablet-shim expose`: those that it shows first, as they are then.
    #[arg(long)]
    expose: bool,
    /// With --expose: also tools that may destroy something, or do not say that they do not.
    #[arg(long, requires = "expose")]
    allow_destructive: bool,
    /// With --expose: also tools that are new or changed later, without asking.
    #[arg(long, requires = "expose")]
    accept_changes: bool,
}

impl Opens {
    fn exposure(&self) -> Option<Exposure> {
        let Self { allow_destructive, accept_changes, .. } = *self;
        self.expose.then_some(Exposure { allow_destructive, accept_changes })
    }

    /// In words, for the person who grants it.
    fn describe(&self) -> String {
        describe_opened(&self.servers, self.exposure())
    }
}

#[derive(Debug, Args)]
struct GrantArguments {
    #[command(flatten)]
    client: Client,
    /// Takes the token itself too, in the subprotocol `mcp.auth.TOKEN`, from clients that speak plain MCP over WebSocket. Whoever
    /// listens on the shim's port instead of it then gets the token.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    opens: Opens,
    /// For Streamable HTTP, where the token itself travels with every request. Such a token works there only.
    #[arg(long, conflicts_with_all = ["expose", "plain"], requires = "servers")]
    http: bool,
}

#[derive(Debug, Args)]
struct PairArguments {
    /// Takes the code from this origin only. Default: the page that it is typed into, whichever that is.
    #[arg(long, conflicts_with = "native")]
    origin: Option<String>,
    /// For a program that is no browser and sends no origin.
    #[arg(long)]
    native: bool,
    #[command(flatten)]
    opens: Opens,
}

/// Why a command failed, as what is printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("crablet-shim: {0}")]
    Grant(#[from] GrantError),
    #[error("crablet-shim: {0}")]
    State(#[from] StateError),
    #[error("crablet-shim: the code was not used in time, or wrong ones were tried too often; run the command again")]
    NotPaired,
    #[error("crablet-shim: {0}")]
    Origin(#[from] NotAnOrigin),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("crablet-shim: {0}")]
    NativeMessaging(String),
    #[cfg(feature = "nats")]
    #[error("crablet-shim: {0}")]
    Nats(#[from] NatsError),
    #[error("crablet-shim: problems found: {0}")]
    Problems(u32),
    #[error("crablet-shim: no tool has the id {0:?}; `crablet-shim consent --all` lists them")]
    UnknownTool(String),
    #[error("crablet-shim: no token has the key id {0:?}; `crablet-shim tokens` lists them")]
    UnknownToken(String),
    #[error(
        "crablet-shim: port {port} of 127.0.0.1 cannot be used: {error}; is the shim running already? --port takes another"
    )]
    Port { port: u16, error: io::Error },
    #[error("crablet-shim: {0}")]
    System(#[from] io::Error),
    #[error("crablet-shim: the system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// Runs a command to its end.
pub(crate) fn run(arguments: Arguments) -> Result<(), CommandError> {
    // Where packages are built there is no home, and none is needed to print a manual page.
    let state = || StateDirectory::locate(arguments.state_dir.clone());
    match arguments.command {
        Command::Serve(arguments) => runtime()?.block_on(serve(*arguments, &state()?)),
        Command::Doctor(arguments) => runtime()?.block_on(diagnose(*arguments, &state()?)),
        Command::Grant(arguments) => grant(arguments, &state()?),
        Command::Pair(arguments) => runtime()?.block_on(pair(arguments, &PairingFile::of(&state()?))),
        Command::Tokens => list(&state()?),
        Command::Expose => Ok(runtime()?.block_on(expose(Endpoint::of(&state()?)))?),
        Command::Consent { ids, withdraw, all } => consent(&ConsentFile::of(&state()?), ids, withdraw, all),
        Command::Install(arguments) => Ok(install(arguments, &state()?)?),
        Command::Uninstall(arguments) => Ok(uninstall(arguments, &state()?)?),
        Command::NativeMessaging(arguments) => runtime()?.block_on(serve_browser(arguments, GrantFile::of(&state()?))),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), NAME, &mut script);
            output::print(&script);
            Ok(())
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            output::print(&page);
            Ok(())
        }
        Command::Revoke { key_id } => revoke(key_id, &state()?),
    }
}

fn revoke(key_id: String, state: &StateDirectory) -> Result<(), CommandError> {
    if GrantFile::<Grant>::of(state).revoke(&key_id)? || GrantFile::<HttpGrant>::of(state).revoke(&key_id)? {
        return Ok(ConsentFile::of(state).forget(&key_id)?);
    }
    Err(CommandError::UnknownToken(key_id))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn guardian() -> io::Result<GuardianCommand> {
    Ok(GuardianCommand { program: std::env::current_exe()?, arguments: vec![GUARD.into()] })
}

async fn diagnose(arguments: Doctor, state: &StateDirectory) -> Result<(), CommandError> {
    let Doctor { config, port, .. } = &arguments;
    #[cfg(feature = "nats")]
    let needs_token = arguments.nats.nats.is_none();
    #[cfg(not(feature = "nats"))]
    let needs_token = true;
    let problems = examine(config, *port, state, &guardian()?, needs_token).await;
    #[cfg(feature = "nats")]
    let problems = crate::nats::examine(&arguments.nats, config, problems).await;
    match problems.count() {
        0 => Ok(()),
        count => Err(CommandError::Problems(count)),
    }
}

async fn serve(arguments: Serve, state: &StateDirectory) -> Result<(), CommandError> {
    let config = Config::read(&arguments.config)?;
    config.remarks.iter().for_each(note);
    let origins = arguments.origins.iter().map(|origin| Origin::parse(origin)).collect::<Result<Vec<_>, _>>()?;
    let keys = KeyFiles::of(state);
    if keys.grants.read()?.is_empty() && keys.http_grants.read()?.is_empty() {
        note("no token has been granted yet, so that nobody can come in; see `crablet-shim pair --help`");
    }
    let failed = |error| CommandError::Port { port: arguments.port, error };
    let listener = bind(arguments.port).await.map_err(failed)?;
    let port = listener.local_addr()?.port();
    let names = config.names();
    let sessions = Sessions::new(guardian()?, Duration::from_secs(arguments.grace), keys.grants.clone());
    let origins = (!origins.is_empty()).then_some(origins);
    let pages = Pages::new(ConsentFile::of(state));
    let agents = listen_for_agents(state);
    let shim = Arc::new(Shim::new(config, port, origins, keys, sessions, Arc::clone(&pages)));
    let mut signals = EndSignals::listen()?;
    #[cfg(feature = "nats")]
    let nats = NatsFront::start(&arguments.nats, Arc::clone(&shim)).await?;
    output::say(format_args!("crablet-shim listens on ws://127.0.0.1:{port} and serves: {names}"));
    tokio::select! {
        () = Arc::clone(&shim).serve(listener) => {}
        () = follow_config(&shim, &arguments.config) => {}
        () = follow_consents(&pages) => {}
        () = agents_of(agents, Arc::clone(&pages)) => {}
        () = signals.received() => {}
    }
    #[cfg(feature = "nats")]
    if let Some(nats) = nats {
        tokio::select! {
            () = nats.drain() => {}
            // Who says it twice means it.
            () = signals.received() => {}
        }
    }
    shim.sessions.shut_down().await;
    Ok(())
}

async fn serve_browser(arguments: NativeMessaging, grants: GrantFile) -> Result<(), CommandError> {
    let NativeMessaging { config, browser_arguments } = arguments;
    // A browser that is gone comes back with a new process, so that nothing waits for it.
    let sessions = Sessions::new(guardian()?, Duration::ZERO, grants.clone());
    let extension = ExtensionId::from_arguments(&browser_arguments);
    let host = NativeHost { config, extension, grants, sessions };
    serve_extension(host).await.map_err(CommandError::NativeMessaging)
}

/// The way in for agents; `None` when another shim has it, or there can be none, which keeps no page from its servers.
fn listen_for_agents(state: &StateDirectory) -> Option<Listening> {
    match Endpoint::of(state).listen() {
        Ok(Some(listening)) => return Some(listening),
        Ok(None) => note(
            "another shim runs with this state directory: agents get the tools of the pages that are connected to that one",
        ),
        Err(error) => note(format!(
            "no socket for agents can be made in {} ({error}), so that `crablet-shim expose` does not find this shim; \
             --state-dir names another directory",
            state.path().display()
        )),
    }
    None
}

async fn agents_of(listening: Option<Listening>, pages: Arc<Pages>) {
    match listening {
        Some(listening) => serve_agents(listening, pages).await,
        None => std::future::pending().await,
    }
}

fn grant(arguments: GrantArguments, state: &StateDirectory) -> Result<(), CommandError> {
    let GrantArguments { client, plain, opens, http } = arguments;
    let origins = client.origins.iter().map(|origin| Origin::parse(origin)).collect::<Result<Vec<_>, _>>()?;
    let token = new_token()?;
    let (opened, exposes) = (opens.describe(), opens.exposure());
    if http {
        let paths = opens.servers.iter().map(|server| http_path(server)).collect::<Vec<_>>().join(", ");
        GrantFile::of(state).add(HttpGrant::new(&token, origins, opens.servers, now()))?;
        output::remark(format_args!(
            "This token goes into the header `Authorization: Bearer …` of requests to {paths}."
        ));
    } else {
        GrantFile::of(state).add(Grant {
            exposes,
            plain,
            ..Grant::new(token.clone(), origins, opens.servers, now())
        })?;
    }
    output::remark(format_args!("This token is shown once. Whoever has it can use: {opened}"));
    output::reveal(&token.reveal())?;
    Ok(())
}

async fn pair(arguments: PairArguments, pairings: &PairingFile) -> Result<(), CommandError> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    let client = match arguments.origin {
        Some(origin) => PairingClient::Origin(Origin::parse(&origin)?),
        None if arguments.native => PairingClient::Native,
        None => PairingClient::AnyOrigin,
    };
    let code = PairingCode::from_random(random);
    let opened = arguments.opens.describe();
    let exposes = arguments.opens.exposure();
    pairings.add(Pairing::new(code.clone(), client, arguments.opens.servers, exposes, now()), now())?;
    output::remark(format_args!(
        "Type this code into the page that shall use: {opened}. It is good for five minutes and one page:"
    ));
    output::reveal(&code.reveal())?;
    let outcome = tokio::select! {
        outcome = wait_for_use(pairings, &code) => outcome,
        // The code shall not outlive the command that shows it.
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| None).map_err(CommandError::System),
    };
    pairings.remove(&code)?;
    let client = outcome?.ok_or(CommandError::NotPaired)?;
    output::remark(format_args!("Paired with {client}, for: {opened}. `crablet-shim tokens` lists the new token."));
    Ok(())
}

/// Who used a code, or `None` when it is worth nothing any more.
async fn wait_for_use(pairings: &PairingFile, code: &PairingCode) -> Result<Option<String>, CommandError> {
    loop {
        match pairings.progress(code, now())? {
            Progress::Waiting => tokio::time::sleep(LOOK_INTERVAL).await,
            Progress::Paired(client) => return Ok(Some(client)),
            Progress::Over => return Ok(None),
        }
    }
}

fn list(state: &StateDirectory) -> Result<(), CommandError> {
    let (grants, http_grants) = (GrantFile::<Grant>::of(state).read()?, GrantFile::<HttpGrant>::of(state).read()?);
    if grants.is_empty() && http_grants.is_empty() {
        output::remark(format_args!("No tokens; see `crablet-shim grant --help`."));
    }
    for grant in grants {
        output::say(format_args!(
            "{}  {}  for {}",
            grant.token.key_id(),
            describe_opened(&grant.servers, grant.exposes),
            grant.holder()
        ));
    }
    for grant in http_grants {
        output::say(format_args!(
            "{}  {}  for {}, over HTTP",
            grant.key_id(),
            grant.servers.join(", "),
            grant.holder()
        ));
    }
    Ok(())
}

/// What a token opens, in words.
fn describe_opened(servers: &[String], exposes: Option<Exposure>) -> String {
    let offering = exposes.map(|Exposure { allow_destructive, accept_changes }| {
        let kinds = [(allow_destructive, "destructive ones"), (accept_changes, "changed ones")];
        let kinds: Vec<&str> = kinds.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, kind)| kind).collect();
        match kinds.as_slice() {
            [] => "[offers tools]".to_owned(),
            kinds => format!("[offers tools, {} too]", kinds.join(" and ")),
        }
    });
    servers.iter().cloned().chain(offering).collect::<Vec<_>>().join(", ")
}

/// How often a waiting `pair` looks at its file: at once for a person, nothing for the machine.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
