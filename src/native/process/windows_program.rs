//! Which file the name of a program stands for on Windows, where what people call `npx` is the script `npx.cmd`, and the system by itself
//! adds no ending but `.exe`.

use std::path::{Path, PathBuf};

/// The file of a program: as it is named where its name has one of the endings that programs have, otherwise with the first of them that is
/// there, in the first of these directories that has one. `None` when there is none; a name with a directory in it is looked for there
/// only.
///
/// `endings` is the variable `PATHEXT`.
pub(super) fn find_program(
    name: &str,
    directories: impl IntoIterator<Item = PathBuf>,
    endings: Option<&str>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let endings = endings.filter(|endings| !endings.is_empty()).unwrap_or(USUAL_ENDINGS);
    let endings: Vec<&str> = endings.split(';').filter(|ending| ending.starts_with('.')).collect();
    let has_ending = endings.iter().any(|ending| {
        let start = name.len().saturating_sub(ending.len());
        name.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    });
    let mut names: Vec<String> = endings.iter().map(|ending| format!("{name}{ending}")).collect();
    if has_ending {
        names.insert(0, name.to_owned());
    }
    let in_directory = |directory: &Path| names.iter().map(|name| directory.join(name)).find(|file| is_file(file));
    if name.contains(['/', '\\', ':']) {
        return in_directory(Path::new(""));
    }
    directories.into_iter().find_map(|directory| in_directory(&directory))
}

/// What `PATHEXT` begins with on every Windows.
const USUAL_ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, endings: Option<&str>) -> Option<String> {
        // Where Node is installed, the script of a Unix shell lies beside that of Windows.
        let files = ["system/where.exe", "node/npx", "node/npx.CMD", "node/node.EXE", "own/npx.cmd", "own/serve.js"];
        let directories = ["system", "node", "own"].map(PathBuf::from);
        let is_file = |path: &Path| {
            let path = path.to_str().unwrap();
            files.iter().any(|file| file.eq_ignore_ascii_case(path))
        };
        let found = find_program(name, directories, endings, is_file);
        found.map(|path| path.to_str().unwrap().to_ascii_lowercase())
    }

    #[test]
    fn a_name_without_an_ending_is_the_program_that_a_shell_would_start() {
        for (name, file) in [
            ("npx", Some("node/npx.cmd")),
            ("npx.cmd", Some("node/npx.cmd")),
            ("NODE", Some("node/node.exe")),
            ("node.exe", Some("node/node.exe")),
            ("where", Some("system/where.exe")),
            ("own/npx", Some("own/npx.cmd")),
            ("serve.js", None),
            ("absent", None),
            ("", None),
        ] {
            assert_eq!(find(name, None).as_deref(), file, "{name}");
        }
    }

    #[test]
    fn the_endings_are_those_of_the_system() {
        assert_eq!(find("serve", Some(".EXE;.JS")).as_deref(), Some("own/serve.js"));
        assert_eq!(find("npx", Some(".EXE;.JS")), None);
        assert_eq!(find("npx", Some("")).as_deref(), Some("node/npx.cmd"));
        assert_eq!(find("é", Some(";CMD;.CMD")), None);
    }
}
