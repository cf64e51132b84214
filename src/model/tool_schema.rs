//! The schema of a tool's input, as services take it.
//!
//! They refuse the whole request for a root that is not an object with `type` and `properties`, or that has `oneOf`, `anyOf`,
//! `allOf`, `enum` or `not` (OpenAI, "Function calling"; Anthropic, "Tool use"), and for keywords in the form of older drafts
//! than 2020-12 (Anthropic). They refuse it too for keywords with `null`, for types that there are not, such as `any`, and
//! OpenAI for lists that do not say what is in them. Servers of the Model Context Protocol send all of these. What is sent
//! never demands more than the schema does, and the input is checked against the schema itself.

use super::body::invalid;
use crate::error::Error;
use crate::json::{FromJson, Object, RawJson, add_member, listed, quoted_list, read_string};

/// How deep subschemas are followed.
const MAX_DEPTH: usize = 64;

/// The most branches and references of a root that are followed: more than any tool has, and few enough that a schema made
/// to take for ever does not.
const MAX_BRANCHES: usize = 64;

/// A schema as it is sent. One that services take is unchanged.
pub(super) fn lowered(schema: &RawJson) -> Result<String, Error> {
    let text = schema.as_str();
    let root = Object::parse(text)
        .map_err(|error| invalid(format!("the input schema of a tool must be a JSON object: {error}")))?;
    let modern = modern(text, 0);
    let text = modern.as_deref().unwrap_or(text);
    let root = Object::parse(text).unwrap_or(root);
    let is_taken = root.string("type").as_deref() == Some("object")
        && root.object("properties").is_some()
        && root.iter().all(|(name, _)| !is_refused(name));
    if is_taken {
        return Ok(text.to_owned());
    }
    let mut lowered = Lowered::default();
    lowered.gather(&root, &root, Place::Root);
    Ok(lowered.write())
}

/// The keywords that a root may not have.
fn is_refused(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "allOf" | "anyOf" | "oneOf" | "not" | "enum" | "const" | "if" | "then" | "else")
}

/// Where the members of a schema stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the root, or where a reference at the root leads.
    Root,
    /// In a branch that always holds.
    Always,
    /// In a branch that may hold.
    Maybe,
}

/// One object made of a root and its branches.
#[derive(Default)]
struct Lowered {
    properties: Vec<(String, String)>,
    required: Vec<String>,
    others: Vec<(String, String)>,
    followed: usize,
}

impl Lowered {
    fn gather(&mut self, document: &Object<'_>, schema: &Object<'_>, place: Place) {
        self.followed += 1;
        if self.followed > MAX_BRANCHES {
            return;
        }
        for (keyword, value) in schema.iter() {
            let branch = match keyword {
                "anyOf" | "oneOf" => Place::Maybe,
                _ if place == Place::Root => Place::Always,
                _ => place,
            };
            match keyword {
                "$ref" => {
                    if let Some(target) = schema.string("$ref").and_then(|reference| resolve(document, &reference)) {
                        self.gather(document, &target, place);
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    for schema in schema.objects(keyword) {
                        self.gather(document, &schema, branch);
                    }
                }
                "properties" => {
                    for (name, property) in Object::parse(value.get()).unwrap_or_default().iter() {
                        if !self.properties.iter().any(|(known, _)| known == name) {
                            self.properties.push((name.to_owned(), property.get().to_owned()));
                        }
                    }
                }
                "required" if place != Place::Maybe => {
                    let names: Vec<String> = schema.read("required").unwrap_or_default();
                    self.required.extend(names);
                }
                "type" | "required" => {}
                _ if place == Place::Root && !is_refused(keyword) => {
                    self.others.push((keyword.to_owned(), value.get().to_owned()));
                }
                _ => {}
            }
        }
    }

    fn write(mut self) -> String {
        let mut members = vec![("type".to_owned(), "\"object\"".to_owned())];
        members.push(("properties".to_owned(), object(&self.properties)));
        self.required.retain(|name| self.properties.iter().any(|(known, _)| known == name));
        self.required.dedup();
        if !self.required.is_empty() {
            members.push(("required".to_owned(), quoted_list(&self.required)));
        }
        for (name, value) in self.others {
            if !members.iter().any(|(known, _)| *known == name) {
                members.push((name, value));
            }
        }
        object(&members)
    }
}

/// The definition that a reference within the document names.
fn resolve<'text>(document: &Object<'text>, reference: &str) -> Option<Object<'text>> {
    let (definitions, name) = reference.strip_prefix("#/")?.split_once('/')?;
    document.object(definitions)?.object(name)
}

/// A schema with its keywords in the form of 2020-12 and without those that say nothing; `None` for one that is like that.
fn modern(schema: &str, depth: usize) -> Option<String> {
    let parsed = Object::parse(schema).ok().filter(|_| depth <= MAX_DEPTH)?;
    let is_exclusive = |keyword: &str| parsed.boolean(keyword) == Some(true);
    let mut is_changed = false;
    let mut members = Vec::new();
    for (keyword, value) in parsed.iter() {
        let text = value.get();
        let changed = match keyword {
            "default" | "const" => None,
            _ if text == "null" => Some(None),
            "exclusiveMinimum" | "exclusiveMaximum" | "required" if matches!(text, "true" | "false") => Some(None),
            "minimum" if is_exclusive("exclusiveMinimum") => Some(Some(("exclusiveMinimum", text.to_owned()))),
            "maximum" if is_exclusive("exclusiveMaximum") => Some(Some(("exclusiveMaximum", text.to_owned()))),
            "type" => types(text).map(|types| types.map(|types| (keyword, types))),
            "items" if text.starts_with('[') => {
                let items = modern_list(&parsed, keyword, depth).unwrap_or_else(|| text.to_owned());
                Some(Some(("prefixItems", items)))
            }
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                modern_members(text, depth).map(|members| Some((keyword, members)))
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                modern_list(&parsed, keyword, depth).map(|list| Some((keyword, list)))
            }
            "items" | "additionalProperties" | "not" => modern(text, depth + 1).map(|schema| Some((keyword, schema))),
            _ => None,
        };
        is_changed |= changed.is_some();
        members.extend(changed.unwrap_or_else(|| Some((keyword, text.to_owned()))));
    }
    let is_list = parsed.get("type").is_some_and(|kind| kind.get().contains("\"array\""));
    if is_list && !members.iter().any(|(keyword, _)| *keyword == "items") {
        is_changed = true;
        members.push(("items", "{}".to_owned()));
    }
    is_changed.then(|| {
        let mut object = "{}".to_owned();
        members.iter().for_each(|(keyword, value)| add_member(&mut object, keyword, value));
        object
    })
}

/// The types that there are, of a member `type`; `None` when it names no others, `Some(None)` when it names only others.
fn types(text: &str) -> Option<Option<String>> {
    const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];
    let is_known = |name: &String| TYPES.contains(&name.as_str());
    if let Some(name) = read_string(text) {
        return if is_known(&name) { None } else { Some(None) };
    }
    let names = Vec::<String>::from_json(text)?;
    let known: Vec<String> = names.iter().filter(|name| is_known(name)).cloned().collect();
    (known.len() < names.len() || known.is_empty()).then(|| (!known.is_empty()).then(|| quoted_list(&known)))
}

fn modern_members(schemas: &str, depth: usize) -> Option<String> {
    let schemas = Object::parse(schemas).ok()?;
    let modern: Vec<_> = schemas.iter().map(|(name, schema)| (name, schema, modern(schema.get(), depth + 1))).collect();
    modern.iter().any(|(.., modern)| modern.is_some()).then(|| {
        let mut object = "{}".to_owned();
        for (name, schema, modern) in &modern {
            add_member(&mut object, name, modern.as_deref().unwrap_or_else(|| schema.get()));
        }
        object
    })
}

fn modern_list(schema: &Object<'_>, keyword: &str, depth: usize) -> Option<String> {
    let schemas = schema.array(keyword)?;
    let modern: Vec<_> = schemas.iter().map(|schema| (schema, modern(schema.get(), depth + 1))).collect();
    modern.iter().any(|(_, modern)| modern.is_some()).then(|| {
        listed(
            &modern
                .iter()
                .map(|(schema, modern)| modern.clone().unwrap_or_else(|| schema.get().to_owned()))
                .collect::<Vec<_>>(),
        )
    })
}

fn object(members: &[(String, String)]) -> String {
    let mut object = "{}".to_owned();
    for (name, value) in members {
        add_member(&mut object, name, value);
    }
    object
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn sent(schema: &str) -> String {
        lowered(&RawJson::parse(schema).unwrap()).unwrap()
    }

    #[test]
    fn what_services_take_is_unchanged() {
        for schema in [
            r#"{"type":"object","properties":{}}"#,
            r##"{ "$schema": "x", "type":"object", "properties":{"b":{"$ref":"#/$defs/B"},"a":{"anyOf":[{"type":"null"}]}}, "$defs":{"B":{}} }"##,
        ] {
            assert_eq!(sent(schema), schema);
        }
    }

    #[test]
    fn a_root_gets_what_it_must_have() {
        assert_eq!(sent("{}"), r#"{"type":"object","properties":{}}"#);
        assert_eq!(
            sent(r#"{"description":"x","type":["object","null"],"additionalProperties":false}"#),
            r#"{"type":"object","properties":{},"description":"x","additionalProperties":false}"#
        );
    }

    #[test]
    fn a_reference_at_the_root_is_followed() {
        assert_eq!(
            sent(
                r##"{"$ref":"#/$defs/P","$defs":{"P":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"title":"P"}}}"##
            ),
            r#"{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"title":"P","$defs":{"P":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"title":"P"}}}"#
        );
        let circle = r##"{"$ref":"#/$defs/P","$defs":{"P":{"anyOf":[{"$ref":"#/$defs/P"},{"$ref":"#/$defs/P"}]}}}"##;
        assert_eq!(sent(circle).matches("\"type\"").count(), 1, "and it ends");
    }

    #[test]
    fn branches_at_the_root_become_one_object() {
        let branches = r#"[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"},"a":{}},"required":["b"]}]"#;
        let merged = r#""properties":{"a":{"type":"string"},"b":{"type":"number"}}"#;
        assert_eq!(
            sent(&format!(r#"{{"type":"object","anyOf":{branches}}}"#)),
            format!(r#"{{"type":"object",{merged}}}"#)
        );
        assert_eq!(sent(&format!(r#"{{"oneOf":{branches}}}"#)), format!(r#"{{"type":"object",{merged}}}"#));
        assert_eq!(
            sent(&format!(r#"{{"allOf":{branches},"not":{{}}}}"#)),
            format!(r#"{{"type":"object",{merged},"required":["a","b"]}}"#)
        );
    }

    #[test]
    fn older_keywords_are_written_as_they_are_now() {
        let schema = r#"{"type":"object","properties":{
            "pair":{"type":"array","items":[{"type":"number","minimum":0,"exclusiveMinimum":true},{"type":"string"}]},
            "list":{"type":"array","items":{"type":"number","exclusiveMaximum":false,"maximum":3}},
            "now":{"type":"number","exclusiveMinimum":1},
            "old":{"type":"string","required":true}}}"#;
        assert_eq!(
            sent(schema),
            concat!(
                r#"{"type":"object","properties":{"#,
                r#""pair":{"type":"array","prefixItems":[{"type":"number","exclusiveMinimum":0},{"type":"string"}],"items":{}},"#,
                r#""list":{"type":"array","items":{"type":"number","maximum":3}},"#,
                r#""now":{"type":"number","exclusiveMinimum":1},"old":{"type":"string"}}}"#
            )
        );
    }

    #[test]
    fn what_says_nothing_and_what_there_is_not_is_left_out() {
        for (schema, expected) in [
            // Serialised with every member that there could be.
            (
                r#"{"type":"object","title":null,"properties":{"a":{"type":"string","description":null,"enum":null,"default":null}},"required":null}"#,
                r#"{"type":"object","properties":{"a":{"type":"string","default":null}}}"#,
            ),
            (r#"{"type":"object","properties":null}"#, r#"{"type":"object","properties":{}}"#),
            // MarkusPfundstein/mcp-gsuite#34
            (
                r#"{"type":"object","properties":{"a":{"type":"string","required":false}}}"#,
                r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
            ),
            // blurrah/mcp-graphql#14
            (
                r#"{"type":"object","properties":{"a":{"type":"any"},"b":{"type":["float","null"]},"c":{"type":[]}}}"#,
                r#"{"type":"object","properties":{"a":{},"b":{"type":["null"]},"c":{}}}"#,
            ),
            // mark3labs/mcphost#35, Automattic/wordpress-mcp#103
            (
                r#"{"type":"object","properties":{"a":{"type":"array"},"b":{"items":{"anyOf":[{"type":["string","array"]}]},"type":"array"}}}"#,
                r#"{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"items":{"anyOf":[{"type":["string","array"],"items":{}}]},"type":"array"}}}"#,
            ),
            // What only looks like it.
            (
                r#"{"type":"object","properties":{"type":{"type":"string","default":"array"},"required":{"const":null},"items":{"enum":[null,"any"]}}}"#,
                r#"{"type":"object","properties":{"type":{"type":"string","default":"array"},"required":{"const":null},"items":{"enum":[null,"any"]}}}"#,
            ),
        ] {
            assert_eq!(sent(schema), expected);
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        let keyword = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "anyOf",
            "allOf",
            "$ref",
            "$defs",
            "required",
            "exclusiveMinimum",
            "minimum",
        ]);
        let leaf = prop_oneof![
            Just(Value::Bool(true)),
            Just(json!("object")),
            Just(json!("#/$defs/type")),
            Just(json!(["a"])),
            Just(json!(1)),
        ];
        leaf.prop_recursive(5, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::vec((keyword.clone(), inner), 0..4).prop_map(|members| {
                    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_given_becomes_an_object(schema in anything()) {
            let raw = RawJson::parse(schema.to_string()).unwrap();
            let Ok(sent) = lowered(&raw) else {
                prop_assert!(!schema.is_object());
                return Ok(());
            };
            let sent: Value = serde_json::from_str(&sent).unwrap();
            prop_assert_eq!(&sent["type"], "object");
            prop_assert!(sent.get("properties").is_some());
            prop_assert!(["anyOf", "allOf", "$ref"].iter().all(|keyword| sent.get(*keyword).is_none()));
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(lowered(&RawJson::parse("[]").unwrap()).is_err());
    }
}
