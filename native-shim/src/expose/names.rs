//! The names that agents call the tools of pages by: letters, digits, `_` and `-`, the same each time for the same origin,
//! page and tool.

use super::text::short_digest;

/// The longest name that is given. Agents put names of servers before it, and models take 64 characters in all.
pub(crate) const MAX_NAME: usize = 48;

/// What stands before the tools of one page: `app_example_k3f9`, and `app_example_k3f9-2` for the second page of that origin
/// that is open at the same time.
pub(crate) fn prefix(origin: Option<&str>, number: u32) -> String {
    let (scheme, host) = origin.and_then(|origin| origin.split_once("://")).unwrap_or(("program", ""));
    let host = host.strip_prefix("www.").unwrap_or(host);
    // Names of extensions are random letters.
    let shown = if matches!(scheme, "http" | "https") { host } else { scheme };
    let shown: String = letters(shown).chars().take(MAX_HOST).collect();
    let place = short_digest(&[origin.unwrap_or_default()], DIGEST);
    let which = if number > 1 { format!("-{number}") } else { String::new() };
    format!("{}_{place}{which}", shown.trim_matches('_'))
}

/// The name of a tool of a page.
pub(crate) fn tool_name(prefix: &str, tool: &str) -> String {
    let room = MAX_NAME.saturating_sub(prefix.len() + 1);
    let plain = letters(tool);
    if plain == tool && plain.len() <= room {
        return format!("{prefix}_{plain}");
    }
    let kept: String = plain.chars().take(room.saturating_sub(DIGEST + 1)).collect();
    format!("{prefix}_{kept}_{}", short_digest(&[tool], DIGEST))
}

fn letters(text: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    text.chars().map(|character| if allowed(character) { character } else { '_' }).collect()
}

/// As much of a host as tells one page from another.
const MAX_HOST: usize = 16;

/// Twenty bits: whose names meet all the same is withheld.
const DIGEST: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_tell_origins_pages_and_tools_apart() {
        let app = prefix(Some("https://app.example"), 1);
        assert!(app.starts_with("app_example_"), "{app}");
        let all = [
            app.clone(),
            prefix(Some("http://app.example"), 1),
            prefix(Some("https://app.example:444"), 1),
            prefix(Some("https://app.example"), 2),
            prefix(Some("https://app_example"), 1),
            prefix(None, 1),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{all:?}");
        }
        assert!(prefix(Some("chrome-extension://abcdef"), 1).starts_with("chrome-extension_"));
        assert_eq!(tool_name(&app, "search"), format!("{app}_search"));
        assert_ne!(tool_name(&app, "a.b"), tool_name(&app, "a_b"));
    }

    proptest! {
        #[test]
        fn any_name_becomes_a_valid_one(host in ".{0,80}", tool in ".{0,200}", number in 1u32..100) {
            let name = tool_name(&prefix(Some(&format!("https://{host}")), number), &tool);
            prop_assert!(name.len() <= MAX_NAME, "{}", name);
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        }
    }
}
