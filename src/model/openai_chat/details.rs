//! `reasoning_details`: reasoning in typed pieces, with the signatures that the next request must carry unchanged
//! (<https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning>).

use crate::json::{Members, Tree, listed};

/// Adds the pieces of a delta. A piece that goes on with the last one (same type and index) is joined to it.
pub(super) fn merge(details: &mut Vec<Tree>, more: Vec<Tree>) {
    for piece in more {
        match (details.last_mut(), piece) {
            (Some(Tree::Object(last)), Tree::Object(piece)) if continues(last, &piece) => join(last, &piece),
            (_, piece @ Tree::Object(_)) => details.push(piece),
            _ => {}
        }
    }
}

/// The pieces as JSON.
pub(super) fn json(details: &[Tree]) -> String {
    listed(&details.iter().map(Tree::to_json).collect::<Vec<_>>())
}

/// The visible text of the pieces.
pub(super) fn text(details: &[Tree]) -> String {
    let texts = details.iter().filter_map(|piece| piece.get("text").or_else(|| piece.get("summary"))?.as_text());
    texts.collect()
}

fn continues(last: &Members, piece: &Members) -> bool {
    let is_same = |member| last.get(member) == piece.get(member);
    let id_of = |piece: &Members| piece.get("id").and_then(Tree::as_text).map(str::to_owned);
    let has_other_id = matches!((id_of(last), id_of(piece)), (Some(last), Some(piece)) if last != piece);
    is_same("type")
        && is_same("index")
        && !has_other_id
        && piece.get("type").is_some_and(|kind| kind.as_text() != Some("reasoning.encrypted"))
}

fn join(last: &mut Members, piece: &Members) {
    for (name, value) in piece.iter() {
        match (last.get_mut(name), value) {
            (Some(Tree::Text(whole)), Tree::Text(more)) if matches!(name.as_str(), "text" | "summary") => {
                whole.push_str(more);
            }
            (_, Tree::Null) => {}
            (_, value) => {
                last.insert(name.clone(), value.clone());
            }
        }
    }
}
