//! Where browsers on Windows look for the manifests of native messaging hosts: keys of this user in the registry.

use std::io;
use std::path::Path;

use windows_registry::CURRENT_USER;

use crate::browser::Browser;

/// Says where the manifest of a host lies, and gives the key.
pub(crate) fn register(browser: Browser, host: &str, manifest: &Path) -> io::Result<String> {
    let path = key(browser, host);
    let manifest = manifest.display().to_string();
    CURRENT_USER.create(&path).and_then(|key| key.set_string("", &manifest)).map_err(io::Error::from)?;
    Ok(format!("HKEY_CURRENT_USER\\{path}"))
}

/// Removes the key of a host, and gives it.
pub(crate) fn unregister(browser: Browser, host: &str) -> io::Result<String> {
    let path = key(browser, host);
    CURRENT_USER.remove_tree(&path).map_err(io::Error::from)?;
    Ok(format!("HKEY_CURRENT_USER\\{path}"))
}

fn key(browser: Browser, host: &str) -> String {
    format!("{}\\{host}", browser.registry_key())
}
