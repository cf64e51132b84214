use thiserror::Error;

/// A path that does not stay below the root of a file store. The message is for the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidPath {
    /// Longer than any project's paths.
    #[error("the path is longer than {MAX_PATH} bytes")]
    TooLong,
    /// A line break, a zero byte or the like.
    #[error("the path {0:?} holds a control character")]
    ControlCharacter(String),
    /// What Windows separates folders with.
    #[error("the path {0:?} holds a backslash: separate folders with \"/\"")]
    Backslash(String),
    /// A path from the root of the machine.
    #[error("the path {0:?} is absolute: write it relative to the root of these files, such as \"folder/file.txt\"")]
    Absolute(String),
    /// A path with `..`.
    #[error("the path {0:?} leads upwards: \"..\" is not allowed, stay below the root")]
    Upwards(String),
}

/// The one way to write a path: names with "/" between them, and nothing for the root.
///
/// Every path that a model writes goes through here, so that none leads out of a store.
///
/// # Errors
///
/// For a path with `..`, an absolute one, and one with a backslash or a control character.
pub fn normal_path(path: &str) -> Result<String, InvalidPath> {
    let told = || path.to_owned();
    if path.len() > MAX_PATH {
        return Err(InvalidPath::TooLong);
    }
    if path.contains(char::is_control) {
        return Err(InvalidPath::ControlCharacter(told()));
    }
    if path.contains('\\') {
        return Err(InvalidPath::Backslash(told()));
    }
    if path.starts_with('/') || is_drive(path) {
        return Err(InvalidPath::Absolute(told()));
    }
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    if names.contains(&"..") {
        return Err(InvalidPath::Upwards(told()));
    }
    Ok(names.join("/"))
}

/// Whether a path begins with the letter of a Windows drive.
fn is_drive(path: &str) -> bool {
    let mut characters = path.chars();
    characters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && characters.next() == Some(':')
}

/// The longest path taken, in bytes: more than any project has.
const MAX_PATH: usize = 1_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_paths_are_refused() {
        for path in
            ["../a", "a/../../b", "..", "a/..", "/etc/passwd", "//a", "C:\\a", "c:/a", "a\\..\\b", "a\0b", "a\nb"]
        {
            assert!(normal_path(path).is_err(), "{path:?}");
        }
        assert_eq!(normal_path(&"x/".repeat(600)), Err(InvalidPath::TooLong));
    }

    #[test]
    fn a_path_has_one_form() {
        for (path, normal) in [("", ""), (".", ""), ("a//b/./c/", "a/b/c"), ("...", "..."), ("a b/ü", "a b/ü")] {
            assert_eq!(normal_path(path).as_deref(), Ok(normal));
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_stays_below_the_root(path in "[./\\\\a:c\u{0}-\u{1f}]{0,20}") {
            if let Ok(normal) = normal_path(&path) {
                prop_assert!(!normal.starts_with('/') && normal.split('/').all(|name| name != ".."));
                prop_assert_eq!(normal_path(&normal), Ok(normal.clone()));
            }
        }
    }
}
