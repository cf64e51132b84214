//! Where each browser looks for the programs that extensions may start, and the manifests that name them there.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use crablet::json::Object;
use serde::Serialize;

use crate::extension::{BrowserFamily, ExtensionId};

/// A browser that starts programs for extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Browser {
    Chrome,
    Chromium,
    Edge,
    Brave,
    Firefox,
}

impl Browser {
    /// The browser that [`fmt::Display`] names so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|browser| browser.to_string() == name)
    }

    pub(crate) fn family(self) -> BrowserFamily {
        if self == Self::Firefox { BrowserFamily::Firefox } else { BrowserFamily::Chromium }
    }

    /// The folder of this user's manifests: that of the browser, or the one in a data directory of its own
    /// (`--user-data-dir`), which the Chromium family has.
    pub(crate) fn manifest_folder(self, places: &Places, data_directory: Option<&Path>) -> PathBuf {
        match data_directory {
            Some(directory) => directory.join("NativeMessagingHosts"),
            None => self.default_folder(places),
        }
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    fn default_folder(self, Places { home, config }: &Places) -> PathBuf {
        match self {
            Self::Chrome => config.join("google-chrome/NativeMessagingHosts"),
            Self::Chromium => config.join("chromium/NativeMessagingHosts"),
            Self::Edge => config.join("microsoft-edge/NativeMessagingHosts"),
            Self::Brave => config.join("BraveSoftware/Brave-Browser/NativeMessagingHosts"),
            Self::Firefox => home.join(".mozilla/native-messaging-hosts"),
        }
    }

    #[cfg(target_os = "macos")]
    fn default_folder(self, Places { config, .. }: &Places) -> PathBuf {
        match self {
            Self::Chrome => config.join("Google/Chrome/NativeMessagingHosts"),
            Self::Chromium => config.join("Chromium/NativeMessagingHosts"),
            Self::Edge => config.join("Microsoft Edge/NativeMessagingHosts"),
            Self::Brave => config.join("BraveSoftware/Brave-Browser/NativeMessagingHosts"),
            Self::Firefox => config.join("Mozilla/NativeMessagingHosts"),
        }
    }

    /// Any folder would do, one for each browser: the registry says where the manifest lies.
    #[cfg(windows)]
    fn default_folder(self, Places { config, .. }: &Places) -> PathBuf {
        config.join("crablet").join("native-messaging").join(self.to_string())
    }

    /// The key below `HKEY_CURRENT_USER` that has a key for each program.
    #[cfg(windows)]
    pub(crate) fn registry_key(self) -> &'static str {
        match self {
            Self::Chrome => "Software\\Google\\Chrome\\NativeMessagingHosts",
            Self::Chromium => "Software\\Chromium\\NativeMessagingHosts",
            Self::Edge => "Software\\Microsoft\\Edge\\NativeMessagingHosts",
            Self::Brave => "Software\\BraveSoftware\\Brave-Browser\\NativeMessagingHosts",
            Self::Firefox => "Software\\Mozilla\\NativeMessagingHosts",
        }
    }
}

impl fmt::Display for Browser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Chrome => "Chrome",
            Self::Chromium => "Chromium",
            Self::Edge => "Edge",
            Self::Brave => "Brave",
            Self::Firefox => "Firefox",
        })
    }
}

/// The directories of this user that browsers keep theirs in.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    #[cfg_attr(not(all(unix, not(target_os = "macos"))), expect(dead_code, reason = "one directory is enough here"))]
    home: PathBuf,
    /// What is for programs: `~/.config`, `~/Library/Application Support` or `%LOCALAPPDATA%`.
    config: PathBuf,
}

impl Places {
    /// Those of the environment; `None` without a home.
    pub(crate) fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" })?;
        let config = if cfg!(windows) {
            variable("LOCALAPPDATA")?
        } else if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Some(Self { home, config })
    }
}

/// What a browser reads: which program it is, and which extensions may start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The name that extensions call the program by; also that of the file.
    pub(crate) host: String,
    /// The program, which gets no arguments but the browser's own.
    pub(crate) program: PathBuf,
    /// In order and without repetition.
    pub(crate) extensions: Vec<ExtensionId>,
}

#[derive(Serialize)]
struct Members<'a> {
    name: &'a str,
    description: &'static str,
    path: &'a Path,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_origins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_extensions: Option<Vec<String>>,
}

impl Manifest {
    /// Where the manifest of a program lies in a folder.
    pub(crate) fn file(folder: &Path, host: &str) -> PathBuf {
        folder.join(format!("{host}.json"))
    }

    /// Reads a manifest; `None` when there is none, or one that this program did not write.
    pub(crate) fn read(folder: &Path, host: &str) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(Self::file(folder, host)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok(members) = Object::parse(&text) else { return Ok(None) };
        let listed = |name| members.read::<Vec<String>>(name).unwrap_or_default();
        let extensions = listed("allowed_origins").into_iter().chain(listed("allowed_extensions"));
        Ok(members.string("path").map(|program| Self {
            host: host.to_owned(),
            program: program.into(),
            extensions: extensions.filter_map(|id| ExtensionId::from_manifest(&id)).collect(),
        }))
    }

    /// Writes the manifest for a kind of browser.
    pub(crate) fn write(&self, folder: &Path, family: BrowserFamily) -> io::Result<PathBuf> {
        let ids: Vec<_> = self.extensions.iter().map(ExtensionId::in_manifest).collect();
        let (allowed_origins, allowed_extensions) = match family {
            BrowserFamily::Chromium => (Some(ids), None),
            BrowserFamily::Firefox => (None, Some(ids)),
        };
        let members = Members {
            name: &self.host,
            description: "Local MCP servers for this extension",
            path: &self.program,
            r#type: "stdio",
            allowed_origins,
            allowed_extensions,
        };
        fs::create_dir_all(folder)?;
        let file = Self::file(folder, &self.host);
        fs::write(&file, serde_json::to_string_pretty(&members)? + "\n")?;
        Ok(file)
    }
}

/// Whether a text is a name that browsers take for a program: words of small letters, digits and underscores with dots
/// between them.
pub(crate) fn is_host_name(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    text.len() <= MAX_HOST_NAME_BYTES && text.split('.').all(is_word)
}

/// The name that extensions call the shim by unless it was installed under another.
pub(crate) const HOST_NAME: &str = "dev.crablet.shim";

/// Short enough for a file name everywhere.
const MAX_HOST_NAME_BYTES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_browsers_take() {
        for name in [HOST_NAME, "shim", "a_1.b"] {
            assert!(is_host_name(name), "{name}");
        }
        for name in ["", ".", "a..b", "a.", "A", "a-b", "../x", "a/b", "a b", &"a".repeat(101)] {
            assert!(!is_host_name(name), "{name}");
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("crablet-manifest-{}", std::process::id()));
        for (family, ids, member) in [
            (BrowserFamily::Chromium, ["abcdefghijklmnopabcdefghijklmnop"], "allowed_origins"),
            (BrowserFamily::Firefox, ["notes@example.org"], "allowed_extensions"),
        ] {
            let manifest = Manifest {
                host: HOST_NAME.into(),
                program: "/usr/bin/shim \"x\"".into(),
                extensions: ids.iter().map(|id| ExtensionId::parse(id).unwrap()).collect(),
            };
            let file = manifest.write(&folder, family).unwrap();
            assert!(fs::read_to_string(file).unwrap().contains(member));
            assert_eq!(Manifest::read(&folder, HOST_NAME).unwrap().unwrap(), manifest);
        }
        assert_eq!(Manifest::read(&folder, "other").unwrap(), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
