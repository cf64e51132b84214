//! JSON written as text, in the shape in which it is sent.

use super::quoted;

/// The JSON of a shape, which is written as it is sent but for a mark in the place of each value: `$` for a text, which is
/// quoted here, and `@` for what is JSON already. The values come in the order of the marks, and there is one for each.
pub(crate) fn filled(shape: &str, values: &[&str]) -> String {
    debug_assert_eq!(shape.matches(['$', '@']).count(), values.len(), "{shape}");
    let mut json = String::with_capacity(shape.len() + values.iter().map(|value| value.len() + 2).sum::<usize>());
    let mut rest = shape;
    for value in values {
        let Some((before, mark)) = rest.find(['$', '@']).and_then(|at| Some((rest.get(..at)?, rest.get(at..)?))) else {
            break;
        };
        json.push_str(before);
        if mark.starts_with('$') {
            json.push_str(&quoted(value));
        } else {
            json.push_str(value);
        }
        rest = mark.get(1..).unwrap_or_default();
    }
    json.push_str(rest);
    json
}

/// Values as a JSON array.
pub(crate) fn listed(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// Texts as a JSON array of strings.
pub(crate) fn quoted_list(texts: &[String]) -> String {
    listed(&texts.iter().map(|text| quoted(text)).collect::<Vec<_>>())
}

/// Adds a member to the JSON of an object that does not have it.
#[cfg(feature = "wires")]
pub(crate) fn add_member(object: &mut String, name: &str, value: &str) {
    let is_empty = object.len() <= "{}".len();
    object.pop();
    if !is_empty {
        object.push(',');
    }
    object.push_str(&quoted(name));
    object.push(':');
    object.push_str(value);
    object.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_shape_is_filled_with_texts_and_json() {
        let filled = filled(r#"{"type":"text","text":$,"at":[@,@]}"#, &["a \"$\" b\n\u{1e}@", "1", r#"{"$":2}"#]);
        let expected = serde_json::json!({"type": "text", "text": "a \"$\" b\n\u{1e}@", "at": [1, {"$": 2}]});
        assert_eq!(serde_json::from_str::<Value>(&filled).unwrap(), expected);
    }

    #[test]
    fn members_are_added_to_empty_and_other_objects() {
        let mut object = "{}".to_owned();
        add_member(&mut object, "a\"", "1");
        assert_eq!(object, r#"{"a\"":1}"#);
        add_member(&mut object, "b", &quoted_list(&["x".to_owned(), "é\\".to_owned()]));
        assert_eq!(object, r#"{"a\"":1,"b":["x","é\\"]}"#);
        assert_eq!(listed(&[]), "[]");
    }
}
