use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::json::Object;
use crate::time::Millis;

/// The revision of the stateless era.
pub const STATELESS_VERSION: &str = "2026-07-28";

/// The two kinds of MCP revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` first, then requests within a session: revisions up to 2025-11-25.
    Handshake(Revision),
    /// Every request stands alone: revision 2026-07-28.
    Stateless,
}

impl Era {
    /// The name of the revision, as it is written in messages and headers.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Handshake(revision) => revision.as_str(),
            Self::Stateless => STATELESS_VERSION,
        }
    }
}

/// A handshake revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-10-07, published before the first release and still spoken by old servers.
    V2024_10_07,
    /// 2024-11-05, with HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26, with Streamable HTTP.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
}

impl Revision {
    /// The newest handshake revision, which a client offers first.
    pub const LATEST: Self = Self::V2025_11_25;

    const ALL: [Self; 5] =
        [Self::V2024_10_07, Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// The date that names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_10_07 => "2024-10-07",
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision of this date, if it is one of these.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }
}

/// Which eras a client may speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraChoice {
    /// Find out, trying the stateless era first.
    #[default]
    Auto,
    /// The stateless era only.
    Stateless,
    /// The handshake era only.
    Handshake,
}

/// What was found about a server, for the caller to keep, so that the next client need not probe.
///
/// Written as `{"era":"stateless"|"handshake","revision":"2025-11-25","at":1700000000000}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraRecord {
    /// The era and its revision.
    pub era: Era,
    /// When it was found.
    pub at: Millis,
}

impl EraRecord {
    /// Reads the written form; `None` when it is of another shape or names a revision this version does not speak.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        let revision = object.string("revision")?;
        let era = match object.string("era")?.as_str() {
            "stateless" if revision == STATELESS_VERSION => Era::Stateless,
            "handshake" => Era::Handshake(Revision::from_name(&revision)?),
            _ => return None,
        };
        Some(Self { era, at: Millis(object.integer("at")?) })
    }
}

impl Serialize for EraRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("EraRecord", 3)?;
        let name = if self.era == Era::Stateless { "stateless" } else { "handshake" };
        fields.serialize_field("era", name)?;
        fields.serialize_field("revision", self.era.version())?;
        fields.serialize_field("at", &self.at)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        for era in [Era::Stateless, Era::Handshake(Revision::V2025_06_18)] {
            let record = EraRecord { era, at: Millis(5) };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(EraRecord::read(&Object::parse(&text).unwrap()), Some(record), "{text}");
        }
    }

    #[test]
    fn a_record_of_an_unknown_revision_counts_as_none() {
        for text in [
            r#"{"era":"stateless","revision":"2027-01-01","at":1}"#,
            r#"{"era":"handshake","revision":"2026-07-28","at":1}"#,
            r#"{"era":"future","revision":"2025-11-25","at":1}"#,
            "{}",
        ] {
            assert_eq!(EraRecord::read(&Object::parse(text).unwrap()), None, "{text}");
        }
    }
}
