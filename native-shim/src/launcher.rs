//! The small script that a browser starts: a manifest can name a program only, without arguments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the script starts.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// This program.
    pub(crate) program: PathBuf,
    pub(crate) state_directory: PathBuf,
    /// The mcpServers file.
    pub(crate) config: PathBuf,
}

impl Launcher {
    /// Where the script lies for a name that extensions call.
    pub(crate) fn file(state_directory: &Path, host: &str) -> PathBuf {
        state_directory.join("native-messaging").join(format!("{host}{}", if cfg!(windows) { ".bat" } else { "" }))
    }

    /// Writes the script for a name, for this user only.
    pub(crate) fn write(&self, host: &str) -> io::Result<PathBuf> {
        let file = Self::file(&self.state_directory, host);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, self.text()?)?;
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(file)
    }

    /// The script.
    #[cfg(unix)]
    pub(crate) fn text(&self) -> io::Result<String> {
        let quoted = |path: &Path| Ok::<_, io::Error>(format!("'{}'", as_text(path)?.replace('\'', r"'\''")));
        Ok(format!(
            "#!/bin/sh\n# Written by `crablet-shim install`.\nexec {} --state-dir {} native-messaging --config {} \"$@\"\n",
            quoted(&self.program)?,
            quoted(&self.state_directory)?,
            quoted(&self.config)?
        ))
    }

    /// The script. A path on Windows holds no quotation marks.
    #[cfg(windows)]
    pub(crate) fn text(&self) -> io::Result<String> {
        let quoted = |path: &Path| Ok::<_, io::Error>(format!("\"{}\"", as_text(path)?.replace('%', "%%")));
        Ok(format!(
            "@echo off\r\nrem Written by `crablet-shim install`.\r\n{} --state-dir {} native-messaging --config {} %*\r\n",
            quoted(&self.program)?,
            quoted(&self.state_directory)?,
            quoted(&self.config)?
        ))
    }
}

fn as_text(path: &Path) -> io::Result<&str> {
    let is_plain = |text: &&str| !text.contains(['\n', '\r']);
    path.to_str().filter(is_plain).ok_or_else(|| {
        let message = format!("the path {path:?} is not plain text, so that no script can name it; choose another");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_with_quotes_and_blanks_are_arguments() {
        let folder = std::env::temp_dir().join(format!("crablet launcher'$HOME`x`-{}", std::process::id()));
        let launcher = Launcher {
            program: "/bin/echo".into(),
            state_directory: folder.clone(),
            config: folder.join("a \"b\" 'c' $d.json"),
        };
        let script = launcher.write("dev.crablet.shim").unwrap();
        let output = std::process::Command::new(script).args(["x y", "$z"]).output().unwrap();
        let config = launcher.config.display();
        let expected = format!("--state-dir {} native-messaging --config {config} x y $z\n", folder.display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_no_script_can_name_is_refused() {
        let launcher = Launcher { program: "/bin/a\nb".into(), state_directory: "/".into(), config: "/c".into() };
        assert_eq!(launcher.text().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
