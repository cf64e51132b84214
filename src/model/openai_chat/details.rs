//! `reasoning_details`: reasoning in typed pieces, with the signatures that the next request must carry unchanged
//! (<https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning>).

use serde_json::{Map, Value};

use crate::json::listed;

/// Adds the pieces of a delta. A piece that goes on with the last one (same type and index) is joined to it.
pub(super) fn merge(details: &mut Vec<Value>, more: Vec<Value>) {
    for piece in more {
        match (details.last_mut(), piece) {
            (Some(Value::Object(last)), Value::Object(piece)) if continues(last, &piece) => join(last, piece),
            (_, piece @ Value::Object(_)) => details.push(piece),
            _ => {}
        }
    }
}

/// The pieces as JSON.
pub(super) fn json(details: &[Value]) -> String {
    listed(&details.iter().map(Value::to_string).collect::<Vec<_>>())
}

/// The visible text of the pieces.
pub(super) fn text(details: &[Value]) -> String {
    let texts = details.iter().filter_map(|piece| piece.get("text").or_else(|| piece.get("summary"))?.as_str());
    texts.collect()
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let is_same = |member| last.get(member) == piece.get(member);
    let id_of = |piece: &Map<String, Value>| piece.get("id").and_then(Value::as_str).map(str::to_owned);
    let has_other_id = matches!((id_of(last), id_of(piece)), (Some(last), Some(piece)) if last != piece);
    is_same("type")
        && is_same("index")
        && !has_other_id
        && piece.get("type").is_some_and(|kind| kind != "reasoning.encrypted")
}

fn join(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (Some(Value::String(whole)), Value::String(more)) if matches!(name.as_str(), "text" | "summary") => {
                whole.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}
