//! The files of a folder of cases or recordings.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The JSON files of a folder in the order of their names; none when there is no such folder.
pub(crate) fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
    let mut files = entries.unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

/// Reads a file of JSON. Half a surrogate pair, which some hold and which is no text in Rust, reads as U+FFFD.
pub(crate) fn read_json(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    serde_json::from_str(&without_half_pairs(&text)).map_err(|error| format!("is not JSON: {error}"))
}

fn without_half_pairs(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        whole.push_str(before);
        whole.push('\\');
        let length = match (unit(escape), escape.get(5..).and_then(|behind| behind.strip_prefix('\\')).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 11,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str("ufffd");
                rest = &escape[5..];
                continue;
            }
            _ => escape.chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole + rest
}

/// The number of `uXXXX`.
fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}
