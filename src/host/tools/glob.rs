use regex_lite::{Regex, RegexBuilder};

/// Which paths are wanted: `*` and `?` within a name, `**` across folders, `[abc]`, `{one,two}`. A glob without "/" is for
/// the name alone, in whichever folder.
#[derive(Debug)]
pub(super) struct Glob(Regex);

impl Glob {
    /// # Errors
    ///
    /// A message for the model when it is not a glob.
    pub(super) fn parse(glob: &str) -> Result<Self, String> {
        if glob.len() > MAX_GLOB {
            return Err(format!("the glob is longer than {MAX_GLOB} bytes"));
        }
        let anchored = glob.strip_prefix("./").unwrap_or(glob).trim_start_matches('/');
        let whole = if glob.contains('/') { anchored.to_owned() } else { format!("**/{glob}") };
        let pattern = format!("^(?:{})$", to_pattern(&whole));
        RegexBuilder::new(&pattern)
            .dot_matches_new_line(true)
            .size_limit(SIZE_LIMIT)
            .build()
            .map(Self)
            .map_err(|_| format!("{glob:?} is not a glob: write one such as \"*.ts\" or \"src/**/*.{{js,ts}}\""))
    }

    pub(super) fn fits(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

fn to_pattern(glob: &str) -> String {
    let (mut pattern, mut rest, mut depth) = (String::new(), glob, 0_u32);
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        match character {
            '*' if rest.starts_with("**/") => {
                pattern.push_str("(?:.*/)?");
                taken = 3;
            }
            '*' if rest.starts_with("**") => {
                pattern.push_str(".*");
                taken = rest.len() - rest.trim_start_matches('*').len();
            }
            '*' => pattern.push_str("[^/]*"),
            '?' => pattern.push_str("[^/]"),
            '[' => match rest.find(']').and_then(|end| rest.get(1..end)).filter(|set| is_set(set)) {
                Some(set) => {
                    let (negated, members) = set.strip_prefix(['!', '^']).map_or(("", set), |members| ("^", members));
                    pattern.push('[');
                    pattern.push_str(negated);
                    pattern.push_str(&members.replace('\\', "\\\\").replace('[', "\\[").replace('&', "\\&"));
                    pattern.push(']');
                    taken = set.len() + 2;
                }
                None => pattern.push_str("\\["),
            },
            '{' => {
                depth += 1;
                pattern.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                pattern.push(')');
            }
            ',' if depth > 0 => pattern.push('|'),
            other => pattern.push_str(&regex_lite::escape(other.encode_utf8(&mut [0; 4]))),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    pattern
}

/// Whether what stands between brackets is a set of characters.
fn is_set(set: &str) -> bool {
    !set.trim_start_matches(['!', '^']).is_empty() && !set.contains('/')
}

/// The longest glob taken, in bytes.
const MAX_GLOB: usize = 500;

/// The most memory of a compiled glob.
const SIZE_LIMIT: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs_are_those_of_a_shell() {
        let cases = [
            ("*.ts", "src/main.ts", true),
            ("*.ts", "main.tsx", false),
            ("src/*.ts", "src/main.ts", true),
            ("src/*.ts", "src/deep/main.ts", false),
            ("src/**/*.ts", "src/main.ts", true),
            ("src/**/*.ts", "src/deep/main.ts", true),
            ("src/**", "src/a/b", true),
            ("*.{js,ts}", "a.ts", true),
            ("[ab]?.md", "b1.md", true),
            ("[!ab].md", "b.md", false),
            ("a+(b).txt", "a+(b).txt", true),
            ("./a", "a", true),
        ];
        for (glob, path, fits) in cases {
            assert_eq!(Glob::parse(glob).unwrap().fits(path), fits, "{glob} on {path}");
        }
        assert!(Glob::parse("{a").is_err());
    }

    proptest! {
        #[test]
        fn any_glob_is_taken_or_refused(glob in "[\\[\\]{}*?!^,a/\\\\&é~.-]{0,30}", path in "[a/é.]{0,20}") {
            if let Ok(glob) = Glob::parse(&glob) {
                glob.fits(&path);
            }
        }
    }
}
