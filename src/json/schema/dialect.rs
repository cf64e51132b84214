use super::MAX_SCHEMA_DEPTH;
use crate::json::{Object, RawJson, Tree, quoted, read_string};

/// The part of JSON Schema that a provider takes for the object that an answer shall be.
///
/// The lowered schema never demands more than the original, but that objects have no members beside the named ones, and
/// that a member that may be left out is there and may be `null` ([`OpenAi`](Self::OpenAi)). What a dialect has no keyword
/// for is put into the description, for the model to read, and checked when the answer is there. The order of members
/// stays, since models write in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's strict mode: all members required, no others allowed (guide "Structured Outputs", section "Supported
    /// schemas", 2026-02).
    OpenAi,
    /// Anthropic, also on Bedrock: no others allowed, no recursion (guide "Structured outputs", section "JSON Schema
    /// limitations", 2026-06).
    Anthropic,
    /// Gemini's `responseJsonSchema` (API reference, `GenerationConfig`, 2026-06).
    Gemini,
}

impl Dialect {
    /// The schema in this dialect. `None` when the dialect has no words for its shape: an object with members of any name,
    /// a recursion, a value of any type.
    pub fn lower(self, schema: &RawJson) -> Option<RawJson> {
        let lowering = Lowering { dialect: self, document: schema.as_str() };
        RawJson::parse(lowering.schema(schema.as_str(), &mut Walk::default(), 0)?).ok()
    }

    fn takes(self, keyword: &str) -> bool {
        let common = matches!(
            keyword,
            "type"
                | "enum"
                | "description"
                | "title"
                | "properties"
                | "required"
                | "items"
                | "anyOf"
                | "$ref"
                | "$defs"
                | "definitions"
                | "format"
        );
        common
            || match self {
                Self::OpenAi => matches!(
                    keyword,
                    "const"
                        | "pattern"
                        | "minimum"
                        | "maximum"
                        | "exclusiveMinimum"
                        | "exclusiveMaximum"
                        | "multipleOf"
                        | "minItems"
                        | "maxItems"
                ),
                Self::Anthropic => matches!(keyword, "const" | "pattern" | "minItems"),
                Self::Gemini => matches!(
                    keyword,
                    "minimum" | "maximum" | "minItems" | "maxItems" | "prefixItems" | "additionalProperties"
                ),
            }
    }

    /// The formats that the provider names; it may refuse others.
    const fn formats(self) -> &'static [&'static str] {
        match self {
            Self::Gemini => &["date-time", "date", "time"],
            Self::OpenAi | Self::Anthropic => {
                &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
            }
        }
    }

    const fn is_closed(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic)
    }
}

struct Lowering<'document> {
    dialect: Dialect,
    document: &'document str,
}

/// The members of a schema that is being written.
type Members = Vec<(String, String)>;

/// The references that were followed.
#[derive(Default)]
struct Walk {
    /// Those on the way to here: to come to one of them again is a circle.
    open: Vec<String>,
    /// Those that are known to end.
    finite: Vec<String>,
}

/// The most definitions that are looked through for circles. Each costs a reading of the document.
const MAX_REFERENCES: usize = 256;

impl Lowering<'_> {
    /// A schema or subschema.
    fn schema(&self, text: &str, walk: &mut Walk, depth: usize) -> Option<String> {
        if depth > MAX_SCHEMA_DEPTH {
            return None;
        }
        if text == "true" {
            return (!self.dialect.is_closed()).then(|| "{}".to_owned());
        }
        let object = Object::parse(text).ok()?;
        if let Some(reference) = object.string("$ref") {
            self.follow(&reference, walk, depth)?;
            let mut members = vec![("$ref".to_owned(), quoted(&reference))];
            // The root holds the definitions beside its reference.
            for name in DEFINITIONS {
                if let Some(value) = object.get(name) {
                    members.push((name.to_owned(), self.schemas_by_name(value.get(), walk, depth)?));
                }
            }
            return Some(joined(&members));
        }
        let mut members = Members::new();
        let mut notes = Vec::new();
        for (keyword, value) in object.iter() {
            self.keyword(keyword, value.get(), &mut members, &mut notes, walk, depth)?;
        }
        self.allow_null(&object, &mut members);
        self.close(&object, &mut members)?;
        describe(&mut members, &notes);
        let says_type =
            members.iter().any(|(name, _)| matches!(name.as_str(), "type" | "anyOf" | "enum" | "const" | "$ref"));
        (says_type || !self.dialect.is_closed()).then(|| joined(&members))
    }

    fn keyword(
        &self,
        keyword: &str,
        value: &str,
        members: &mut Members,
        notes: &mut Vec<String>,
        walk: &mut Walk,
        depth: usize,
    ) -> Option<()> {
        let mut put = |name: &str, value: String| members.push((name.to_owned(), value));
        match keyword {
            "properties" | "$defs" | "definitions" => put(keyword, self.schemas_by_name(value, walk, depth)?),
            "items" | "additionalProperties" if matches!(value, "false" | "true") && !self.dialect.takes(keyword) => {}
            "items" | "additionalProperties" if matches!(value, "false" | "true") => put(keyword, value.to_owned()),
            "additionalProperties" | "patternProperties" if self.dialect.is_closed() => return None,
            "items" | "additionalProperties" => put(keyword, self.schema(value, walk, depth + 1)?),
            "anyOf" | "oneOf" => put("anyOf", self.list(value, walk, depth)?),
            "prefixItems" if self.dialect.takes(keyword) => put(keyword, self.list(value, walk, depth)?),
            "allOf" => {
                // One schema is what generators wrap a reference in; to merge several is no dialect's business here.
                let [only] = *elements(value)? else { return None };
                let inner = self.schema(only, walk, depth + 1)?;
                let inner = Object::parse(&inner).ok()?;
                for (name, value) in inner.iter() {
                    put(name, value.get().to_owned());
                }
            }
            "const" if !self.dialect.takes(keyword) => put("enum", format!("[{value}]")),
            "enum" if self.dialect == Dialect::Anthropic && elements(value)?.iter().any(|one| is_compound(one)) => {
                notes.push(format!("{keyword}: {value}"));
            }
            "format" if !read_string(value).is_some_and(|format| self.dialect.formats().contains(&format.as_str())) => {
            }
            "pattern" if value.contains("(?") || value.contains("\\\\b") || !self.dialect.takes(keyword) => {
                notes.push(format!("{keyword}: {value}"));
            }
            "minItems" if self.dialect == Dialect::Anthropic && !matches!(value, "0" | "1") => {
                notes.push(format!("{keyword}: {value}"));
            }
            "required" if self.dialect == Dialect::OpenAi => {}
            _ if self.dialect.takes(keyword) => put(keyword, value.to_owned()),
            _ if NOTED.contains(&keyword) => notes.push(format!("{keyword}: {value}")),
            // What only notes to readers say, and what says more about other keywords than a description could.
            _ => {}
        }
        Some(())
    }

    /// The subschemas of a map of them.
    fn schemas_by_name(&self, value: &str, walk: &mut Walk, depth: usize) -> Option<String> {
        let object = Object::parse(value).ok()?;
        let lowered =
            object.iter().map(|(name, value)| Some((name.to_owned(), self.schema(value.get(), walk, depth + 1)?)));
        Some(joined(&lowered.collect::<Option<Members>>()?))
    }

    fn list(&self, value: &str, walk: &mut Walk, depth: usize) -> Option<String> {
        let lowered = elements(value)?.into_iter().map(|schema| self.schema(schema, walk, depth + 1));
        Some(format!("[{}]", lowered.collect::<Option<Vec<_>>>()?.join(",")))
    }

    /// Whether a reference stays in the document and, for Anthropic, leads into no circle.
    fn follow(&self, reference: &str, walk: &mut Walk, depth: usize) -> Option<()> {
        if !reference.starts_with('#') {
            return None;
        }
        if self.dialect != Dialect::Anthropic {
            return Some(());
        }
        if walk.finite.iter().any(|known| known == reference) {
            return Some(());
        }
        if walk.open.iter().any(|outer| outer == reference) || walk.finite.len() >= MAX_REFERENCES {
            return None;
        }
        walk.open.push(reference.to_owned());
        self.schema(&target(self.document, reference)?, walk, depth + 1)?;
        walk.finite.extend(walk.open.pop());
        Some(())
    }

    /// OpenAPI's `nullable`.
    fn allow_null(&self, object: &Object<'_>, members: &mut Members) {
        if object.boolean("nullable") == Some(true) {
            or_null(members);
        }
    }

    /// Says of an object that it has no other members, and what else the dialect demands of it.
    fn close(&self, object: &Object<'_>, members: &mut Members) -> Option<()> {
        let is_object = object.string("type").as_deref() == Some("object") || object.get("properties").is_some();
        if !is_object || !self.dialect.is_closed() {
            return Some(());
        }
        if object.string("type").is_none() && object.get("type").is_none() {
            members.insert(0, ("type".to_owned(), "\"object\"".to_owned()));
        }
        // Without a list of members it holds members of any name.
        let properties = members.iter_mut().find(|(name, _)| name == "properties")?;
        if self.dialect == Dialect::OpenAi {
            let required: Vec<String> = object.read("required").unwrap_or_default();
            let (all, names) = all_required(&properties.1, &required)?;
            properties.1 = all;
            members.push(("required".to_owned(), names));
        }
        members.retain(|(name, _)| name != "additionalProperties");
        members.push(("additionalProperties".to_owned(), "false".to_owned()));
        Some(())
    }
}

/// The members with `null` allowed for those that are not required, and the list of all their names.
fn all_required(properties: &str, required: &[String]) -> Option<(String, String)> {
    let object = Object::parse(properties).ok()?;
    let mut written = Members::new();
    for (name, schema) in object.iter() {
        let schema = if required.iter().any(|required| required == name) {
            schema.get().to_owned()
        } else {
            let inner = Object::parse(schema.get()).ok()?;
            let mut members: Members =
                inner.iter().map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect();
            or_null(&mut members);
            joined(&members)
        };
        written.push((name.to_owned(), schema));
    }
    let names: Vec<_> = written.iter().map(|(name, _)| quoted(name)).collect();
    Some((joined(&written), format!("[{}]", names.join(","))))
}

/// Makes a schema take `null` too.
fn or_null(members: &mut Members) {
    let has = |members: &Members, keyword: &str| members.iter().any(|(name, _)| name == keyword);
    if has(members, "$ref") || has(members, "const") || !has(members, "type") && !has(members, "anyOf") {
        let own = joined(members);
        *members = vec![("anyOf".to_owned(), format!("[{own},{NULL}]"))];
        return;
    }
    for (keyword, value) in members {
        match keyword.as_str() {
            "type" if value.contains("\"null\"") => {}
            "type" if value.starts_with('[') => *value = appended(value, "\"null\""),
            "type" => *value = format!("[{value},\"null\"]"),
            "anyOf" if value.contains(NULL) => {}
            "anyOf" => *value = appended(value, NULL),
            "enum" if elements(value).is_some_and(|values| values.contains(&"null")) => {}
            "enum" => *value = appended(value, "null"),
            _ => {}
        }
    }
}

const NULL: &str = r#"{"type":"null"}"#;

/// A list with one element more.
fn appended(list: &str, element: &str) -> String {
    let before = list.trim().strip_suffix(']').unwrap_or_default().trim_end();
    let comma = if before == "[" { "" } else { "," };
    format!("{before}{comma}{element}]")
}

/// Puts what the dialect has no keyword for into the description.
fn describe(members: &mut Members, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let notes = notes.join(", ");
    match members.iter_mut().find(|(name, _)| name == "description") {
        Some((_, text)) => {
            let before = read_string(text).unwrap_or_default();
            *text = quoted(&format!("{before} ({notes})"));
        }
        None => members.push(("description".to_owned(), quoted(&notes))),
    }
}

/// Keywords that a description tells when the dialect lacks them.
const NOTED: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

fn is_compound(value: &str) -> bool {
    value.starts_with(['{', '['])
}

/// The elements of an array, as text.
fn elements(array: &str) -> Option<Vec<&str>> {
    let values = crate::json::elements(array)?;
    Some(values.into_iter().map(serde_json::value::RawValue::get).collect())
}

/// The subschema that a reference within the document names.
fn target(document: &str, reference: &str) -> Option<String> {
    let pointer = crate::percent::decode(reference.strip_prefix('#')?);
    Tree::read(document).ok()?.at(&pointer).map(Tree::to_json)
}

fn joined(members: &[(String, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}
