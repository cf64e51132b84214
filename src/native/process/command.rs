use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::redaction::SHORTEST_SECRET;

/// How to start a server.
#[derive(Clone)]
pub struct ServerCommand {
    /// The program: a path, or a name to be found in `PATH`. No shell is involved.
    pub program: String,
    /// Its arguments. `Debug` shows how many they are.
    pub arguments: Vec<String>,
    /// Environment variables beside those of [`ServerCommand::INHERITED`]. `Debug` shows their names only, and what the server prints
    /// for people is shown without their values, where these are no paths and have 8 bytes or more.
    pub environment: BTreeMap<String, String>,
    /// The working directory; this program's own when absent.
    pub directory: Option<PathBuf>,
    /// The program that ends the server should this program be killed. Not used on Windows, where the system does it.
    pub guardian: Option<GuardianCommand>,
    /// How long a server that is told to end may take before each stronger means: after its input closed, and again
    /// after SIGTERM. 2 s by default.
    pub patience: Duration,
}

/// How to start the program that calls `guardian_main`; the server's own command line is put
/// after its arguments.
#[derive(Clone, Debug)]
pub struct GuardianCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, such as `guard --`.
    pub arguments: Vec<OsString>,
}

impl ServerCommand {
    /// What a server inherits of this program's environment: enough to find programs, files and the user's language,
    /// and none of the keys and tokens that a shell tends to hold.
    #[cfg(unix)]
    pub const INHERITED: &[&str] = &[
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    ];

    /// What a server inherits of this program's environment: enough to find programs, files and the user's language,
    /// and none of the keys and tokens that a shell tends to hold.
    #[cfg(windows)]
    pub const INHERITED: &[&str] = &[
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
    ];

    /// A program with its arguments and nothing else.
    pub fn new(program: impl Into<String>, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            directory: None,
            guardian: None,
            patience: Duration::from_secs(2),
        }
    }

    /// The command line of the process to start: the guardian's with the server's behind it, or the server's.
    pub(super) fn to_command(&self) -> Command {
        let mut command = match self.guardian.as_ref().filter(|_| cfg!(unix)) {
            Some(guardian) => {
                let mut command = Command::new(&guardian.program);
                command.args(&guardian.arguments).arg(&self.program);
                command
            }
            None => Command::new(self.file()),
        };
        let inherited = Self::INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
        command.args(&self.arguments).env_clear().envs(inherited).envs(&self.environment);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// The program as the system finds it.
    #[cfg(unix)]
    fn file(&self) -> &str {
        &self.program
    }

    /// The program as the system finds it, which is the server's `PATH`, not this program's.
    #[cfg(windows)]
    fn file(&self) -> OsString {
        let given = self.environment.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
        let path = given.map(|(_, path)| path.into()).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let endings = std::env::var("PATHEXT").ok();
        let directories = std::env::split_paths(&path);
        super::windows_program::find_program(&self.program, directories, endings.as_deref(), Path::is_file)
            .map_or_else(|| self.program.clone().into(), PathBuf::into_os_string)
    }

    /// What must not be shown of the environment: a server that cannot log in often says with what it tried.
    pub(super) fn secrets(&self) -> Vec<String> {
        let values = self.environment.values();
        values.filter(|value| value.len() >= SHORTEST_SECRET && !Path::new(value).exists()).cloned().collect()
    }
}

impl fmt::Debug for ServerCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("directory", &self.directory)
            .field("guardian", &self.guardian)
            .field("patience", &self.patience)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_arguments_and_the_values_of_the_environment() {
        let mut command = ServerCommand::new("server", ["--token=secret"]);
        command.environment.insert("API_KEY".into(), "secret".into());
        let text = format!("{command:?}");
        assert!(text.contains("API_KEY") && !text.contains("secret"));
    }

    #[test]
    fn paths_and_short_values_of_the_environment_are_no_secrets() {
        let mut command = ServerCommand::new("server", [""; 0]);
        let values = [("KEY", "planted-key"), ("FOLDER", env!("CARGO_MANIFEST_DIR")), ("LEVEL", "debug")];
        command.environment.extend(values.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(command.secrets(), ["planted-key"]);
    }
}
