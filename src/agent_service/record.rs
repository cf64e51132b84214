//! A session as a log of records under one key of a bucket.

use serde::{Deserialize, Serialize};

use super::taken::Taken;

/// The first line of a record; behind it stands a piece of the entries. Tolerant of members that it does not know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    #[serde(default)]
    pub(super) v: u32,
    /// The write that the record is of: those of one write share it.
    #[serde(default)]
    pub(super) id: String,
    /// The version that the write makes.
    pub(super) version: u64,
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) taken: Taken,
    /// A write longer than a message goes in so many parts; it counts once all are there, one behind the other.
    #[serde(default)]
    pub(super) part: usize,
    #[serde(default = "one")]
    pub(super) parts: usize,
}

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Adds entries.
    Append,
    /// Takes the place of all before.
    Replace,
    /// Changes nothing but the revision.
    Fence,
}

const fn one() -> usize {
    1
}

/// What a session's log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// 0 while there is nothing.
    pub(super) version: u64,
    /// The sequence of the last record, 0 while there is none.
    pub(super) revision: u64,
    pub(super) text: String,
    pub(super) taken: Taken,
}

/// Reads the records of a session in their order. Those of a write that was not made to its end are void.
pub(super) fn fold<'a>(records: impl IntoIterator<Item = (u64, &'a str)>) -> Log {
    let mut log = Log::default();
    let mut begun: Option<(String, Vec<&str>)> = None;
    for (sequence, text) in records {
        log.revision = sequence;
        let (line, body) = text.split_once('\n').unwrap_or((text, ""));
        let Some(head) = head_of(line) else {
            // A marker of a key that was deleted, or something that nobody can read.
            log = Log { revision: sequence, ..Log::default() };
            begun = None;
            continue;
        };
        if head.kind == Kind::Fence {
            begun = None;
            log.taken = head.taken;
            continue;
        }
        let mut pieces = match begun.take() {
            _ if head.part == 0 => Vec::new(),
            Some((id, pieces)) if id == head.id && pieces.len() == head.part => pieces,
            _ => continue,
        };
        pieces.push(body);
        if pieces.len() < head.parts {
            begun = Some((head.id, pieces));
            continue;
        }
        if head.kind == Kind::Replace {
            log.text.clear();
        }
        let entries = pieces.concat();
        for entry in entries.split('\n').filter(|line| !line.is_empty()) {
            log.text.push_str(entry);
            log.text.push('\n');
        }
        log.version = head.version;
        log.taken = head.taken;
    }
    log
}

/// The records of a write, none of them longer than so many bytes.
pub(super) fn records_of(head: &Head, lines: &str, max_bytes: usize) -> Vec<String> {
    let pieces = cut(lines.trim_end_matches('\n'), max_bytes.saturating_sub(HEAD_BYTES).max(MIN_PIECE));
    let parts = pieces.len();
    let record = |(part, piece): (usize, &str)| {
        let head = Head { part, parts, ..head.clone() };
        format!("{}\n{piece}", serde_json::to_string(&head).unwrap_or_default())
    };
    pieces.into_iter().enumerate().map(record).collect()
}

/// The head of a record; `None` when it has none.
pub(super) fn head_of(line: &str) -> Option<Head> {
    serde_json::from_str(line).ok()
}

/// Pieces of a text of at most so many bytes, never cut within a character.
fn cut(mut text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while text.len() > most {
        let (piece, rest) = text.split_at(text.floor_char_boundary(most));
        pieces.push(piece);
        text = rest;
    }
    pieces.push(text);
    pieces
}

/// What a head may take: the inputs taken out of their order are few.
const HEAD_BYTES: usize = 8192;
const MIN_PIECE: usize = 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    fn head(id: &str, version: u64, kind: Kind) -> Head {
        Head { v: 1, id: id.to_owned(), version, kind, taken: Taken::default(), part: 0, parts: 1 }
    }

    fn folded(records: &[String]) -> Log {
        fold((1..).zip(records.iter().map(String::as_str)))
    }

    #[test]
    fn a_log_is_its_writes_one_after_the_other() {
        let mut records = records_of(&head("a", 1, Kind::Replace), "one\ntwo\n", 100_000);
        records.extend(records_of(&head("b", 2, Kind::Append), "three\n", 100_000));
        let log = folded(&records);
        assert_eq!((log.version, log.revision, log.text.as_str()), (2, 2, "one\ntwo\nthree\n"));
        records.extend(records_of(&head("c", 2, Kind::Fence), "", 100_000));
        records.extend(records_of(&head("d", 3, Kind::Replace), "four\n", 100_000));
        let log = folded(&records);
        assert_eq!((log.version, log.revision, log.text.as_str()), (3, 4, "four\n"));
    }

    #[test]
    fn a_write_in_parts_counts_once_all_are_there() {
        let long = format!("first\n{}\n", "д🦀".repeat(3000));
        let base = records_of(&head("a", 1, Kind::Replace), "kept\n", 9_216);
        let parts = records_of(&head("b", 2, Kind::Append), &long, 9_216);
        assert!(parts.len() > 10);
        let whole = folded(&[base.clone(), parts.clone()].concat());
        assert_eq!((whole.version, whole.text), (2, format!("kept\n{long}")));
        for end in 0..parts.len() {
            let mut records = [base.clone(), parts.iter().take(end).cloned().collect()].concat();
            assert_eq!((folded(&records).version, folded(&records).text.as_str()), (1, "kept\n"));
            // The next writer goes on as if it were not there.
            records.extend(records_of(&head("c", 2, Kind::Append), "next\n", 9_216));
            assert_eq!((folded(&records).version, folded(&records).text.as_str()), (2, "kept\nnext\n"));
        }
    }

    #[test]
    fn a_marker_of_the_server_is_the_end_of_what_was_before() {
        let mut records = records_of(&head("a", 1, Kind::Replace), "one\n", 100_000);
        records.push(String::new());
        assert_eq!(folded(&records), Log { revision: 2, ..Log::default() });
    }
}
