use std::fmt;
use std::sync::Arc;

/// Which commands run at once, which ask a person, and which never run.
///
/// - A command runs at once when it is *plain* (words of letters, digits and `_ . / : , @ % + = -`, nothing that a shell
///   treats as special) and begins with the words of an allowed one: `git status` allows `git status --short`, and neither
///   `git status; rm -r .` nor `git status $(rm -r .)`.
/// - A command never runs when a denied one's words stand anywhere in it. A shell has ways to write a word that this does
///   not see, so denying is a tripwire against mistakes and no border against a hostile model: leave [`ask`](Self::ask) as
///   what happens otherwise.
/// - Every other command asks, which is also the default for all of them.
#[derive(Clone)]
pub struct CommandPolicy(Kind);

#[derive(Clone)]
enum Kind {
    Rules { allowed: Vec<Words>, denied: Vec<Words>, otherwise: Decision },
    Function(Arc<dyn Fn(&str) -> Decision + Send + Sync>),
}

type Words = Vec<String>;

/// What is done about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs at once.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run; the reason is told to the model.
    Deny(String),
}

impl CommandPolicy {
    /// Every command asks, but for those that further calls allow or deny.
    pub fn ask() -> Self {
        Self::otherwise(Decision::Ask)
    }

    /// No command runs, but for those that [`allow`](Self::allow) names.
    pub fn deny_others() -> Self {
        Self::otherwise(Decision::Deny("this command is not on the list of allowed ones".to_owned()))
    }

    /// Every command runs at once, but for those that [`deny`](Self::deny) names. For machines that may be lost, such as a
    /// container.
    pub fn allow_others() -> Self {
        Self::otherwise(Decision::Allow)
    }

    /// A decision of your own about each command. It is asked more than once for one call, and must not panic.
    pub fn function(decide: impl Fn(&str) -> Decision + Send + Sync + 'static) -> Self {
        Self(Kind::Function(Arc::new(decide)))
    }

    /// Allows plain commands that begin with these words. Nothing to do for a policy that is a function.
    #[must_use]
    pub fn allow(mut self, command: &str) -> Self {
        if let Kind::Rules { allowed, .. } = &mut self.0 {
            allowed.push(words(command));
        }
        self
    }

    /// Denies commands that hold these words. Nothing to do for a policy that is a function.
    #[must_use]
    pub fn deny(mut self, command: &str) -> Self {
        if let Kind::Rules { denied, .. } = &mut self.0 {
            denied.push(words(command));
        }
        self
    }

    /// What is done about a command.
    pub fn decide(&self, command: &str) -> Decision {
        let (allowed, denied, otherwise) = match &self.0 {
            Kind::Function(decide) => return decide(command),
            Kind::Rules { allowed, denied, otherwise } => (allowed, denied, otherwise),
        };
        let pieces: Vec<&str> = command.split(is_separator).filter(|piece| !piece.is_empty()).collect();
        let holds = |words: &&Words| pieces.windows(words.len().max(1)).any(|window| is_denied(window, words));
        if let Some(denied) = denied.iter().find(holds) {
            return Decision::Deny(format!("commands with \"{}\" are not allowed", denied.join(" ")));
        }
        let begins = |words: &Words| {
            !words.is_empty() && command.split(' ').filter(|word| !word.is_empty()).take(words.len()).eq(words)
        };
        if command.chars().all(is_plain) && allowed.iter().any(begins) { Decision::Allow } else { otherwise.clone() }
    }

    fn otherwise(otherwise: Decision) -> Self {
        Self(Kind::Rules { allowed: Vec::new(), denied: Vec::new(), otherwise })
    }
}

impl fmt::Debug for CommandPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Function(_) => formatter.write_str("CommandPolicy::function"),
            Kind::Rules { allowed, denied, otherwise } => formatter
                .debug_struct("CommandPolicy")
                .field("allowed", allowed)
                .field("denied", denied)
                .field("otherwise", otherwise)
                .finish(),
        }
    }
}

/// Whether these pieces of a command are the denied words, the first of them also behind a path.
fn is_denied(pieces: &[&str], words: &[String]) -> bool {
    let matches = |(index, (piece, word)): (usize, (&&str, &String))| {
        *piece == word.as_str() || (index == 0 && piece.rsplit('/').next() == Some(word.as_str()))
    };
    !words.is_empty() && pieces.iter().zip(words).enumerate().all(matches)
}

fn words(command: &str) -> Words {
    command.split_whitespace().map(str::to_owned).collect()
}

/// What separates words, or stands where one can begin.
fn is_separator(character: char) -> bool {
    character.is_whitespace() || ";|&(){}<>`$\"'\\!".contains(character)
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || " _./:,@%+=-".contains(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_command_that_begins_as_allowed_runs() {
        let policy = CommandPolicy::ask().allow("git status").allow("ls");
        for allowed in ["git status", "git  status --short", "ls", "ls -la src/main.rs"] {
            assert_eq!(policy.decide(allowed), Decision::Allow, "{allowed}");
        }
        for asked in [
            "",
            "git",
            "git push",
            "git -c x status",
            "lsof",
            "git status; rm x",
            "git status && rm x",
            "ls | sh",
            "ls > x",
            "ls $(rm x)",
            "ls `rm x`",
            "ls\nrm x",
            "ls\trm",
            "FOO=1 ls",
            "ls *",
            "ls 'a'",
            "/bin/ls",
            "ls é",
        ] {
            assert_eq!(policy.decide(asked), Decision::Ask, "{asked}");
        }
    }

    #[test]
    fn a_denied_command_is_found_wherever_it_stands() {
        let policy = CommandPolicy::allow_others().deny("rm").deny("git push");
        for denied in
            ["rm x", "/bin/rm x", "ls; rm x", "ls && rm x", "$(rm x)", "ls|rm", "(rm x)", "git push -f", "cd a\nrm b"]
        {
            assert!(matches!(policy.decide(denied), Decision::Deny(_)), "{denied}");
        }
        for allowed in ["farm x", "rmdir x", "git pull", "push git", "git"] {
            assert_eq!(policy.decide(allowed), Decision::Allow, "{allowed}");
        }
        assert!(matches!(CommandPolicy::ask().allow("ls").deny("ls").decide("ls"), Decision::Deny(_)), "denying wins");
        assert!(matches!(CommandPolicy::deny_others().allow("ls").decide("id"), Decision::Deny(_)));
    }

    proptest! {
        #[test]
        fn what_is_allowed_holds_nothing_special(command in "ls[ a-z;|&$`()<>'\"\\\\\n*?#~!{}\\[\\]^-]{0,12}") {
            if CommandPolicy::ask().allow("ls").decide(&command) == Decision::Allow {
                let special = command.find(|character: char| ";|&$`()<>'\"\\\n*?#~!{}[]^".contains(character));
                prop_assert_eq!(special, None);
            }
        }
    }
}
