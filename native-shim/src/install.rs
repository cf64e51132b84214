//! `install` and `uninstall`: lets a browser start the shim for named extensions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use crablet::json::Object;
use crablet::native::now;
use serde::Serialize;

use crate::browser::{Browser, HOST_NAME, Manifest, Places, is_host_name};
use crate::config::{Config, ConfigError};
use crate::extension::ExtensionId;
use crate::grants::{Grant, GrantError, GrantFile, new_token};
use crate::launcher::Launcher;
use crate::output;
use crate::state::{PrivateFile, StateDirectory, StateError};

/// Where a browser finds the shim.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The browser.
    #[arg(long, value_enum)]
    browser: Browser,
    /// The name that extensions call the shim by, for several configurations beside one another.
    #[arg(long, default_value = HOST_NAME, value_parser = host_name)]
    host: String,
    /// The browser's data directory where it is not the usual one (its own option `--user-data-dir`).
    #[arg(long)]
    user_data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    #[command(flatten)]
    place: Place,
    /// The id of an extension that may start the shim. May be given several times.
    #[arg(long = "extension", required = true, value_parser = ExtensionId::parse)]
    extensions: Vec<ExtensionId>,
    /// A server that these extensions may use, and no other. Without one, what they may use stays as it is.
    #[arg(long = "server")]
    servers: Vec<String>,
    /// The mcpServers file.
    #[arg(long)]
    config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    #[command(flatten)]
    place: Place,
    /// Takes it from this extension only. Default: from all.
    #[arg(long = "extension", value_parser = ExtensionId::parse)]
    extensions: Vec<ExtensionId>,
}

/// Why a browser cannot be told of the shim.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("crablet-shim: {0}")]
    State(#[from] StateError),
    #[error("crablet-shim: {0}")]
    Grant(#[from] GrantError),
    #[error("crablet-shim: {extension} is no id of an extension in {browser}")]
    OtherFamily { extension: ExtensionId, browser: Browser },
    #[error("crablet-shim: {browser} has no --user-data-dir; its manifests lie in one folder for all profiles")]
    NoDataDirectory { browser: Browser },
    #[error("crablet-shim: the configuration has no server {server:?}; it has: {names}")]
    UnknownServer { server: String, names: String },
    #[error("crablet-shim: no home directory is known, which browsers keep their settings in; set HOME")]
    NoHome,
    #[error("crablet-shim: {}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("crablet-shim: {0}")]
    System(#[from] io::Error),
    #[error("crablet-shim: the system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// Tells a browser of the shim, and prints what was written. Doing it twice changes nothing.
pub(crate) fn install(arguments: InstallArguments, state: &StateDirectory) -> Result<(), InstallError> {
    let InstallArguments { place, extensions, mut servers, config } = arguments;
    let grants = GrantFile::of(state);
    let browser = place.browser;
    let folder = place.folder()?;
    if let Some(extension) = extensions.iter().find(|extension| extension.family() != browser.family()) {
        return Err(InstallError::OtherFamily { extension: extension.clone(), browser });
    }
    let offered = Config::read(&config)?;
    servers.sort();
    servers.dedup();
    if let Some(server) = servers.iter().find(|server| !offered.servers.contains_key(*server)) {
        return Err(InstallError::UnknownServer { server: server.clone(), names: offered.names() });
    }
    let launcher = Launcher {
        program: std::env::current_exe()?,
        state_directory: std::path::absolute(state.path())?,
        config: std::path::absolute(config)?,
    };
    let failed = |file: &Path, error| InstallError::File { file: file.to_owned(), error };
    let installation = Installation { browser, host: place.host, folder };
    Installation::list(state).change("installations", Installation::read, |all| {
        all.retain(|other| *other != installation);
        all.push(installation.clone());
    })?;
    let Installation { host, folder, .. } = &installation;
    let program = launcher.write(host).map_err(|error| failed(&Launcher::file(state.path(), host), error))?;
    output::say(format_args!("wrote {}", program.display()));
    let before = Manifest::read(folder, host).map_err(|error| failed(folder, error))?;
    let mut allowed = before.map(|manifest| manifest.extensions).unwrap_or_default();
    allowed.extend(extensions.iter().cloned());
    allowed.sort();
    allowed.dedup();
    let manifest = Manifest { host: host.clone(), program, extensions: allowed };
    let file = manifest.write(folder, browser.family()).map_err(|error| failed(folder, error))?;
    output::say(format_args!("wrote {}", file.display()));
    #[cfg(windows)]
    output::say(format_args!("wrote {}", crate::registry::register(browser, host, &file)?));
    for extension in &extensions {
        if !servers.is_empty() {
            grants.allow_extension(extension, &servers, new_token()?, now())?;
        }
        output::say(format_args!(
            "{browser} starts the shim for {extension}, which may use: {}",
            servers_of(extension, &grants)?
        ));
    }
    Ok(())
}

/// Takes the shim from a browser or from some of its extensions, and prints what was removed.
pub(crate) fn uninstall(arguments: UninstallArguments, state: &StateDirectory) -> Result<(), InstallError> {
    let UninstallArguments { place, extensions } = arguments;
    let grants = GrantFile::<Grant>::of(state);
    let browser = place.browser;
    let installation = Installation { browser, folder: place.folder()?, host: place.host };
    let Installation { host, folder, .. } = &installation;
    let failed = |file: &Path, error| InstallError::File { file: file.to_owned(), error };
    let file = Manifest::file(folder, host);
    let manifest = Manifest::read(folder, host).map_err(|error| failed(folder, error))?;
    let goes = |extension: &ExtensionId| extensions.is_empty() || extensions.contains(extension);
    let listed = manifest.iter().flat_map(|manifest| manifest.extensions.iter().cloned());
    let (mut gone, stay): (Vec<_>, Vec<_>) = listed.partition(goes);
    match manifest {
        Some(manifest) if !stay.is_empty() => {
            let manifest = Manifest { extensions: stay, ..manifest };
            manifest.write(folder, browser.family()).map_err(|error| failed(&file, error))?;
            output::say(format_args!("wrote {}", file.display()));
        }
        manifest => {
            if manifest.is_some() {
                fs::remove_file(&file).map_err(|error| failed(&file, error))?;
                output::say(format_args!("removed {}", file.display()));
                #[cfg(windows)]
                output::say(format_args!("removed {}", crate::registry::unregister(browser, host)?));
            } else {
                output::say(format_args!("{} is not there", file.display()));
                // Somebody else removed it; what was granted is still there.
                gone.extend(extensions);
            }
            let is_other = |other: &Installation| *other != installation;
            Installation::list(state).change("installations", Installation::read, |all| all.retain(is_other))?;
        }
    }
    let others = Installation::all(state)?;
    if !others.iter().any(|other| other.host == *host) {
        let launcher = Launcher::file(state.path(), host);
        match fs::remove_file(&launcher) {
            Ok(()) => output::say(format_args!("removed {}", launcher.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&launcher, error)),
        }
    }
    // What an extension may use holds for every browser that still starts the shim for it.
    let still: Vec<_> = others.iter().filter_map(Installation::manifest).flat_map(|other| other.extensions).collect();
    for extension in gone.iter().filter(|extension| !still.contains(extension)) {
        grants.forget_extension(extension)?;
        output::say(format_args!("the extension {extension} may use nothing any more"));
    }
    Ok(())
}

/// The servers of an extension, as text.
pub(crate) fn servers_of(extension: &ExtensionId, grants: &GrantFile) -> Result<String, GrantError> {
    let granted = grants.read()?;
    let mut servers = granted.iter().filter(|grant| grant.extension.as_ref() == Some(extension));
    Ok(servers.next().map_or_else(|| "nothing yet (--server NAME)".to_owned(), |grant| grant.servers.join(", ")))
}

impl Place {
    fn folder(&self) -> Result<PathBuf, InstallError> {
        let browser = self.browser;
        let data_directory = match &self.user_data_dir {
            Some(_) if browser == Browser::Firefox || cfg!(windows) => {
                return Err(InstallError::NoDataDirectory { browser });
            }
            directory => directory.as_deref().map(std::path::absolute).transpose()?,
        };
        let places = Places::of_user().ok_or(InstallError::NoHome)?;
        Ok(browser.manifest_folder(&places, data_directory.as_deref()))
    }
}

/// That a browser was told of the shim, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Installation {
    #[serde(serialize_with = "browser_name")]
    pub(crate) browser: Browser,
    pub(crate) host: String,
    pub(crate) folder: PathBuf,
}

impl Installation {
    /// Those of this state directory.
    pub(crate) fn all(state: &StateDirectory) -> Result<Vec<Self>, StateError> {
        Self::list(state).read("installations", Self::read)
    }

    /// What the browser reads; `None` when it is gone or not to be read.
    pub(crate) fn manifest(&self) -> Option<Manifest> {
        Manifest::read(&self.folder, &self.host).ok().flatten()
    }

    fn list(state: &StateDirectory) -> PrivateFile {
        state.file("installations.json")
    }

    fn read(object: &Object<'_>) -> Option<Self> {
        Some(Self {
            browser: Browser::named(&object.string("browser")?)?,
            host: object.string("host")?,
            folder: object.string("folder")?.into(),
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn browser_name<S: serde::Serializer>(browser: &Browser, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(browser)
}

fn host_name(text: &str) -> Result<String, String> {
    let message = "not a name that browsers take: words of small letters, digits and _ with dots between them";
    if is_host_name(text) { Ok(text.to_owned()) } else { Err(message.to_owned()) }
}
