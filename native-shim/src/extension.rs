use std::fmt;

use serde::Serialize;

/// The id of a browser extension: 32 letters in browsers of the Chromium family, an address or a UUID in Firefox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct ExtensionId(String);

/// Why a text is not the id of an extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no id of an extension; in Chrome and its relatives it has 32 letters from a to p (chrome://extensions shows \
     it), in Firefox it is `browser_specific_settings.gecko.id` of manifest.json, such as notes@example.org or {{UUID}}"
)]
pub(crate) struct NotAnExtensionId(String);

/// The two kinds of browser, which write ids and manifests in ways of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrowserFamily {
    Chromium,
    Firefox,
}

impl ExtensionId {
    /// Reads an id: exactly one, no pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAnExtensionId> {
        if is_chromium_id(text) || is_address(text) || is_braced_uuid(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnExtensionId(text.to_owned()))
        }
    }

    /// The extension that a browser names in the arguments of the program it starts: Chromium passes
    /// `chrome-extension://ID/`, Firefox the path of the manifest and the id.
    pub(crate) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let (first, rest) = arguments.split_first()?;
        let id = match first.strip_prefix(CHROMIUM_SCHEME) {
            Some(rest) => rest.strip_suffix('/').filter(|id| is_chromium_id(id)),
            None => rest.first().map(String::as_str).filter(|id| !is_chromium_id(id)),
        };
        Self::parse(id?).ok()
    }

    /// The kind of browser that has extensions with such an id.
    pub(crate) fn family(&self) -> BrowserFamily {
        if is_chromium_id(&self.0) { BrowserFamily::Chromium } else { BrowserFamily::Firefox }
    }

    /// As a browser wants it in the manifest of a native messaging host.
    pub(crate) fn in_manifest(&self) -> String {
        match self.family() {
            BrowserFamily::Chromium => format!("{CHROMIUM_SCHEME}{}/", self.0),
            BrowserFamily::Firefox => self.0.clone(),
        }
    }

    /// Reads what [`ExtensionId::in_manifest`] wrote.
    pub(crate) fn from_manifest(text: &str) -> Option<Self> {
        let id = text.strip_prefix(CHROMIUM_SCHEME).and_then(|rest| rest.strip_suffix('/')).unwrap_or(text);
        Self::parse(id).ok()
    }

    /// The `Origin` of its pages; `None` in Firefox, where it is another one on each machine.
    pub(crate) fn origin(&self) -> Option<String> {
        (self.family() == BrowserFamily::Chromium).then(|| format!("{CHROMIUM_SCHEME}{}", self.0))
    }
}

impl fmt::Display for ExtensionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_chromium_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| (b'a'..=b'p').contains(&byte))
}

fn is_address(text: &str) -> bool {
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    text.len() <= MAX_FIREFOX_ID_BYTES
        && text.split_once('@').is_some_and(|(name, domain)| !domain.is_empty() && is_plain(name) && is_plain(domain))
}

fn is_braced_uuid(text: &str) -> bool {
    let Some(uuid) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return false };
    let groups: Vec<_> = uuid.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

const CHROMIUM_SCHEME: &str = "chrome-extension://";

/// What Firefox takes.
const MAX_FIREFOX_ID_BYTES: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    const CHROMIUM: &str = "abcdefghijklmnopabcdefghijklmnop";
    const UUID: &str = "{daf44bf7-a45e-4450-979c-91cf07434c3d}";

    #[test]
    fn an_id_is_exactly_one_extension() {
        for id in [CHROMIUM, UUID, "notes@example.org", "@notes"] {
            assert_eq!(ExtensionId::parse(id).unwrap().to_string(), id);
        }
        for text in [
            "",
            "*",
            "abcdefghijklmnopabcdefghijklmno",
            "abcdefghijklmnopabcdefghijklmnoq",
            "ABCDEFGHIJKLMNOPABCDEFGHIJKLMNOP",
            "chrome-extension://abcdefghijklmnopabcdefghijklmnop/",
            "notes@",
            "no tes@example.org",
            "a@b@c",
            "*@example.org",
            "{daf44bf7-a45e-4450-979c-91cf07434c3}",
            "{daf44bf7a45e4450979c91cf07434c3d----}",
        ] {
            assert!(ExtensionId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_browser_names_the_extension() {
        let told = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
            ExtensionId::from_arguments(&arguments).map(|id| id.to_string())
        };
        let origin = format!("chrome-extension://{CHROMIUM}/");
        assert_eq!(told(&[&origin]).as_deref(), Some(CHROMIUM));
        assert_eq!(told(&[&origin, "--parent-window=0"]).as_deref(), Some(CHROMIUM));
        assert_eq!(told(&["/home/me/host.json", "notes@example.org"]).as_deref(), Some("notes@example.org"));
        assert_eq!(told(&["/home/me/host.json", UUID]).as_deref(), Some(UUID));
        for arguments in [
            &[][..],
            &["/home/me/host.json"],
            &[CHROMIUM],
            &["/home/me/host.json", CHROMIUM],
            &["chrome-extension://notes@example.org/"],
            &["chrome-extension://*/"],
            &["https://app.example/"],
        ] {
            assert_eq!(told(arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn a_manifest_holds_what_its_browser_wants() {
        let written = |id| ExtensionId::parse(id).unwrap().in_manifest();
        assert_eq!(written(CHROMIUM), format!("chrome-extension://{CHROMIUM}/"));
        assert_eq!(written(UUID), UUID);
        for id in [CHROMIUM, UUID] {
            assert_eq!(ExtensionId::from_manifest(&written(id)).unwrap().to_string(), id);
        }
    }
}
