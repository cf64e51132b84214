//! Variables in the values of the configuration file, in the forms that Claude Code, Cursor and VS Code know: `${NAME}`,
//! `${NAME:-default}`, `${env:NAME}` and `${userHome}`.

/// What variables stand for.
#[derive(Clone, Copy)]
pub(crate) struct Variables<'a> {
    /// An environment variable by its name.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
}

/// A value after its variables were replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// The environment variables that are not set and have no default; they stay in the text as they were written.
    pub(crate) unset: Vec<String>,
    /// The `${input:…}` that only an editor could ask its user for; they stay in the text too.
    pub(crate) inputs: Vec<String>,
}

impl Variables<'static> {
    /// Those of this program's own environment.
    pub(crate) const OF_PROGRAM: Self = Self { environment: &|name| std::env::var(name).ok() };
}

impl Variables<'_> {
    /// Replaces the variables in a value, once: what they stand for is not looked through again. `${…}` of another form, such as a shell
    /// has it, stays.
    pub(crate) fn expand(&self, value: &str) -> Expanded {
        let mut expanded = Expanded::default();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.text.push_str(before);
            let Some((inner, behind)) = after.split_once('}') else {
                rest = rest.get(before.len()..).unwrap_or_default();
                break;
            };
            match self.replace(inner, &mut expanded) {
                Some(text) => expanded.text.push_str(&text),
                None => {
                    // What stands in it may begin with a variable of its own.
                    expanded.text.push_str("${");
                    rest = after;
                    continue;
                }
            }
            rest = behind;
        }
        expanded.text.push_str(rest);
        expanded
    }

    /// A path whose `~` at the start is the home directory of the user.
    pub(crate) fn at_home(&self, path: String) -> String {
        let below = path.strip_prefix('~').filter(|below| below.is_empty() || below.starts_with(['/', '\\']));
        match (below, self.home()) {
            (Some(below), Some(home)) => home + below,
            _ => path,
        }
    }

    fn home(&self) -> Option<String> {
        (self.environment)(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).filter(|home| !home.is_empty())
    }

    /// What a variable stands for; `None` when it stays as it is.
    fn replace(&self, inner: &str, expanded: &mut Expanded) -> Option<String> {
        if let Some(input) = inner.strip_prefix("input:") {
            expanded.inputs.push(input.to_owned());
            return None;
        }
        if inner == "userHome" {
            return self.home();
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner.strip_prefix("env:").unwrap_or(inner), None),
        };
        if !is_name(name) {
            return None;
        }
        let value = (self.environment)(name);
        match default {
            // As in a shell, an empty one counts as none here.
            Some(default) => Some(value.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())),
            None => {
                if value.is_none() {
                    expanded.unset.push(name.to_owned());
                }
                value
            }
        }
    }
}

/// Whether a text may be the name of an environment variable; on Windows some have parentheses.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_()".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        let known =
            [("KEY", "secret"), ("EMPTY", ""), ("HOME", "/home/me"), ("USERPROFILE", "/home/me"), ("TWICE", "${KEY}")];
        known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    const VARIABLES: Variables<'static> = Variables { environment: &environment };

    #[test]
    fn variables_are_replaced_by_what_they_stand_for() {
        for (value, expected) in [
            ("", ""),
            ("plain $KEY", "plain $KEY"),
            ("${KEY}", "secret"),
            ("a ${env:KEY}/${KEY}.", "a secret/secret."),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${ABSENT:-}", ""),
            ("${ABSENT:-http://x:1/}", "http://x:1/"),
            ("${KEY:-x}", "secret"),
            ("${userHome}/notes", "/home/me/notes"),
            ("${TWICE}", "${KEY}"),
        ] {
            let expanded = VARIABLES.expand(value);
            assert_eq!((expanded.text.as_str(), expanded.unset.len()), (expected, 0), "{value}");
        }
    }

    #[test]
    fn what_is_not_known_stays_and_is_told() {
        let expanded = VARIABLES.expand("${ABSENT} ${env:GONE} ${input:token} ${KEY}");
        assert_eq!(expanded.text, "${ABSENT} ${env:GONE} ${input:token} secret");
        assert_eq!((expanded.unset, expanded.inputs), (vec!["ABSENT".into(), "GONE".into()], vec!["token".into()]));
        for value in ["${x%.js}", "${#x}", "${x:0:3}", "${", "${KEY", "a}", "${}", "${1}", "$${"] {
            let expected = Expanded { text: value.to_owned(), ..Expanded::default() };
            assert_eq!(VARIABLES.expand(value), expected, "{value}");
        }
        assert_eq!(VARIABLES.expand("${x%${KEY}}").text, "${x%secret}");
    }

    #[test]
    fn a_tilde_is_the_home_directory_at_the_start_of_a_path_only() {
        for (path, expected) in [("~", "/home/me"), ("~/x", "/home/me/x"), ("~you/x", "~you/x"), ("/a/~/b", "/a/~/b")] {
            assert_eq!(VARIABLES.at_home(path.to_owned()), expected);
        }
        let homeless = Variables { environment: &|_| None };
        assert_eq!(homeless.at_home("~/x".to_owned()), "~/x");
    }

    proptest! {
        #[test]
        fn a_value_without_variables_stays(value in "[$a{}: é]{0,20}") {
            let homeless = Variables { environment: &|_| None };
            let expanded = homeless.expand(&value);
            prop_assert!(expanded.text == value || value.contains(":-"));
        }
    }
}
