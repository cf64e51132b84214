//! Reads the lines of a saved session up to the last checkpoint that is whole.

use std::borrow::Cow;

use super::journal::Sizes;
use super::session::RestoreError;
use crate::json::{Object, read_string};

/// The texts of the entries.
pub(super) fn split(text: &str) -> Vec<Cow<'_, str>> {
    text.split('\n').skip(1).filter(|line| !line.trim().is_empty()).map(text_of_line).collect()
}

/// The text of an entry, which stands in its line as a JSON text where its raw JSON has line feeds.
pub(crate) fn text_of_line(line: &str) -> Cow<'_, str> {
    read_string(line).map_or(Cow::Borrowed(line), Cow::Owned)
}

/// The entries that count.
#[derive(Debug)]
pub(super) struct Lines<'text> {
    pub(super) entries: Vec<Object<'text>>,
    pub(super) sizes: Sizes,
    /// Whether nothing stood behind them.
    pub(super) is_whole: bool,
}

impl<'text> Lines<'text> {
    /// Reads the entries. Whatever stands behind the last state was not saved to its end and is void.
    ///
    /// # Errors
    ///
    /// When a line that is not the last is no JSON object.
    pub(super) fn read(texts: &'text [Cow<'text, str>]) -> Result<Self, RestoreError> {
        let mut entries = Vec::with_capacity(texts.len());
        let mut sizes = Sizes::default();
        let mut committed = 0;
        for (number, text) in texts.iter().enumerate() {
            let entry = match Object::parse(text) {
                Ok(entry) => entry,
                // The process or the disk ended in the middle of it.
                Err(_) if number + 1 == texts.len() => break,
                Err(error) => return Err(RestoreError::Malformed(format!("entry {}: {error}", number + 1))),
            };
            let kind = entry.string("type").unwrap_or_default();
            let size = text.len() + 1;
            sizes.all += size;
            entries.push(entry);
            // What is said of the open step is said again when it is over.
            if matches!(kind.as_str(), "result" | "within") {
                sizes.dead += size;
            }
            if kind == "state" {
                sizes.dead += std::mem::replace(&mut sizes.state, size);
                committed = entries.len();
            }
        }
        let is_whole = committed == texts.len();
        entries.truncate(committed);
        Ok(Self { entries, sizes, is_whole })
    }
}
