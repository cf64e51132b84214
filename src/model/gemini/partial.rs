//! Arguments that arrive as pieces with a path each (`partialArgs`).

use crate::json::{Members, Object, Tree, read_string};

/// Puts a piece into the arguments. A text for a place that has one already goes on with it. A path that is malformed or
/// leads too deep or too far is ignored, since nothing good can come of it.
pub(super) fn apply(arguments: &mut Tree, piece: &Object<'_>, padding: &mut usize) {
    let Some(path) = piece.string("jsonPath") else { return };
    let Some(place) = segments(&path).and_then(|segments| reach(arguments, &segments, padding)) else { return };
    if let Some(text) = piece.get("stringValue").and_then(|raw| read_string(raw.get())) {
        match place {
            Tree::Text(whole) => whole.push_str(&text),
            place => *place = Tree::Text(text),
        }
    } else if let Some(raw) = piece.get("numberValue").or_else(|| piece.get("boolValue")) {
        *place = Tree::read(raw.get()).unwrap_or(Tree::Null);
    } else if piece.get("nullValue").is_some() {
        *place = Tree::Null;
    }
}

enum Segment {
    Member(String),
    Element(usize),
}

/// The most steps of a path; the same depth that JSON may have.
const MAX_DEPTH: usize = 128;

/// The most elements that an array may have.
const MAX_ELEMENTS: usize = 1_000_000;

/// The most elements that the paths of one answer may make up, where they name one behind the end of an array.
const MAX_PADDING: usize = 4096;

/// Reads `$.a.b[0]['c d']`.
fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() && segments.len() < MAX_DEPTH {
        if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            segments.push(Segment::Member(behind.get(..end)?.to_owned()));
            rest = behind.get(end..)?;
        } else {
            let (inner, behind) = rest.strip_prefix('[')?.split_once(']')?;
            let quoted = inner.strip_prefix(['\'', '"']).and_then(|inner| inner.strip_suffix(['\'', '"']));
            segments.push(match quoted {
                Some(name) => Segment::Member(name.to_owned()),
                None => Segment::Element(inner.parse().ok().filter(|index| *index < MAX_ELEMENTS)?),
            });
            rest = behind;
        }
    }
    rest.is_empty().then_some(segments)
}

/// The value at a path, made on the way.
fn reach<'value>(value: &'value mut Tree, segments: &[Segment], padding: &mut usize) -> Option<&'value mut Tree> {
    let Some((segment, rest)) = segments.split_first() else { return Some(value) };
    match segment {
        Segment::Member(name) => {
            if !matches!(value, Tree::Object(_)) {
                *value = Tree::Object(Members::new());
            }
            let Tree::Object(members) = value else { return None };
            if !members.contains_key(name) {
                members.insert(name.clone(), Tree::Null);
            }
            reach(members.get_mut(name)?, rest, padding)
        }
        Segment::Element(index) => {
            if !matches!(value, Tree::List(_)) {
                *value = Tree::List(Vec::new());
            }
            let Tree::List(elements) = value else { return None };
            if elements.len() <= *index {
                *padding = padding.checked_add(index - elements.len()).filter(|padding| *padding <= MAX_PADDING)?;
                elements.resize(index + 1, Tree::Null);
            }
            reach(elements.get_mut(*index)?, rest, padding)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(pieces: &[&str]) -> String {
        let mut arguments = Tree::Object(Members::new());
        for piece in pieces {
            apply(&mut arguments, &Object::parse(piece).unwrap(), &mut 0);
        }
        arguments.to_json()
    }

    #[test]
    fn pieces_make_a_whole() {
        assert_eq!(
            applied(&[
                r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":"y"}"#,
                r#"{"jsonPath":"$.l[1]['c d']","numberValue":1.5}"#,
                r#"{"jsonPath":"$.b","boolValue":true}"#,
                r#"{"jsonPath":"$.n","nullValue":"NULL_VALUE"}"#,
            ]),
            r#"{"a":"xy","b":true,"l":[null,{"c d":1.5}],"n":null}"#
        );
    }

    #[test]
    fn paths_that_lead_nowhere_are_ignored() {
        for path in ["a", "$x", "$.l[4294967295]", "$[", "$[x]"] {
            assert_eq!(applied(&[&format!(r#"{{"jsonPath":"{path}","stringValue":"x"}}"#)]), "{}", "{path}");
        }
        let far = |index: usize| format!(r#"{{"jsonPath":"$.l[{index}]","stringValue":"x"}}"#);
        assert_eq!(applied(&[&far(MAX_PADDING + 1)]), r#"{"l":[]}"#);
        assert!(applied(&[&far(MAX_PADDING)]).ends_with(r#",null,"x"]}"#));
        let deep = format!(r#"{{"jsonPath":"${}","stringValue":"x"}}"#, ".a".repeat(200));
        assert_eq!(applied(&[&deep]), "{}");
    }
}
