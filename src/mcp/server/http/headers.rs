use std::fmt;

use super::HEADER_MISMATCH;
use crate::jsonrpc::RpcError;

/// The headers of a request, as they came: names in any case, values as bytes, a name as often as it was sent. `Debug` shows the names
/// only, since values let callers in.
#[derive(Clone, Default)]
pub struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(headers: I) -> Self {
        Self(headers.into_iter().collect())
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl<'a> Headers<'a> {
    /// The values of a header that are ASCII.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.values(name).filter_map(ascii)
    }

    /// The value of a header that means nothing when it comes twice, or is not ASCII.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.once(name).ok().flatten()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// A header that may come once. White space around a value is not part of it.
    ///
    /// # Errors
    ///
    /// When it comes twice, or is not ASCII: then two readers could read it differently.
    pub(super) fn once(&self, name: &str) -> Result<Option<&'a str>, RpcError> {
        let mut values = self.values(name);
        match (values.next().map(ascii), values.next()) {
            (None, _) => Ok(None),
            (Some(Some(value)), None) => Ok(Some(value.trim())),
            _ => Err(RpcError::new(
                HEADER_MISMATCH,
                format!("the header {name} is there twice, or holds more than ASCII"),
            )),
        }
    }

    /// The names that begin so, in lower case.
    pub(super) fn names(&self, start: &str) -> Vec<String> {
        let names = self.0.iter().map(|(name, _)| name.to_ascii_lowercase());
        names.filter(|name| name.starts_with(start)).collect()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// What may stand in a header without being read in two ways.
fn ascii(value: &[u8]) -> Option<&str> {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    std::str::from_utf8(value).ok().filter(|_| value.iter().all(is_visible))
}
