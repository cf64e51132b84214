use super::{Limit, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, Node, NodeId, Range, Schema, SchemaError, Type};
use crate::json::{Decimal, FromJson, Members, RawJson, Tree, quoted};
use crate::ordered_map::OrderedMap;
use crate::percent;

pub(super) fn compile(schema: &RawJson) -> Result<Schema, SchemaError> {
    if schema.as_str().len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge);
    }
    let document = Tree::read(schema.as_str()).map_err(|why| SchemaError::NotASchema(why.to_owned()))?;
    let mut compiler =
        Compiler { document: &document, nodes: Vec::new(), by_pointer: OrderedMap::new(), unsupported: Vec::new() };
    compiler.node(&document, "", 0)?;
    Ok(Schema { nodes: compiler.nodes, unsupported: compiler.unsupported })
}

struct Compiler<'document> {
    document: &'document Tree,
    nodes: Vec<Node>,
    /// Each subschema is compiled once, so that schemas may refer to themselves.
    by_pointer: OrderedMap<String, NodeId>,
    unsupported: Vec<String>,
}

impl<'document> Compiler<'document> {
    fn node(&mut self, schema: &'document Tree, pointer: &str, depth: usize) -> Result<NodeId, SchemaError> {
        if let Some(id) = self.by_pointer.get(pointer) {
            return Ok(*id);
        }
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.by_pointer.insert(pointer.to_owned(), id);
        let node = match schema {
            Tree::Boolean(allowed) => Node { never: !allowed, ..Node::default() },
            Tree::Object(keywords) => self.keywords(keywords, pointer, depth)?,
            other => {
                return Err(SchemaError::NotASchema(format!(
                    "{} at {} is neither an object nor a boolean",
                    other.to_json(),
                    quoted(pointer)
                )));
            }
        };
        if let Some(place) = self.nodes.get_mut(id) {
            *place = node;
        }
        Ok(id)
    }

    fn keywords(&mut self, keywords: &'document Members, pointer: &str, depth: usize) -> Result<Node, SchemaError> {
        let mut node = Node::default();
        let mut nullable = false;
        for (keyword, value) in keywords.iter() {
            let here = child(pointer, keyword);
            let is_known = match (keyword.as_str(), value) {
                ("$ref", Tree::Text(reference)) => self.reference(&mut node, reference, depth)?,
                ("type", _) => {
                    node.types = types(value);
                    node.types.is_some()
                }
                ("nullable", Tree::Boolean(allowed)) => {
                    nullable = *allowed;
                    true
                }
                ("enum", Tree::List(values)) => {
                    node.values = Some(values.clone());
                    true
                }
                ("const", value) => {
                    node.values = Some(vec![value.clone()]);
                    true
                }
                ("properties", Tree::Object(members)) => {
                    for (name, schema) in members.iter() {
                        let id = self.node(schema, &child(&here, name), depth + 1)?;
                        node.properties.insert(name.clone(), id);
                    }
                    true
                }
                ("required", Tree::List(_)) => {
                    node.required = strings(value).unwrap_or_default();
                    true
                }
                ("dependentRequired", Tree::Object(members)) => {
                    node.dependent_required =
                        members.iter().filter_map(|(name, names)| Some((name.clone(), strings(names)?))).collect();
                    true
                }
                ("uniqueItems", Tree::Boolean(unique)) => {
                    node.unique_items = *unique;
                    true
                }
                ("prefixItems" | "anyOf" | "oneOf" | "allOf", Tree::List(schemas)) => {
                    let ids = self.list(schemas, &here, depth)?;
                    match keyword.as_str() {
                        "prefixItems" => node.prefix_items = ids,
                        "anyOf" => node.any_of = Some(ids),
                        "oneOf" => node.one_of = Some(ids),
                        _ => node.all_of = ids,
                    }
                    true
                }
                ("$defs" | "definitions", Tree::Object(_)) => true,
                (_, Tree::Object(_) | Tree::Boolean(_)) => match subschema(&mut node, keyword) {
                    Some(place) => {
                        *place = Some(self.node(value, &here, depth + 1)?);
                        true
                    }
                    None => ANNOTATIONS.contains(&keyword.as_str()),
                },
                (_, Tree::Number(written)) => {
                    number_keyword(&mut node, keyword, written) || ANNOTATIONS.contains(&keyword.as_str())
                }
                _ => ANNOTATIONS.contains(&keyword.as_str()),
            };
            if !is_known {
                self.unsupported.push(here);
            }
        }
        if let (true, Some(types)) = (nullable, &mut node.types) {
            types.push(Type::Null);
        }
        Ok(node)
    }

    /// Follows a reference within the document; `false` for one to another document.
    fn reference(&mut self, node: &mut Node, reference: &str, depth: usize) -> Result<bool, SchemaError> {
        let Some(pointer) = reference.strip_prefix('#') else { return Ok(false) };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Ok(false);
        }
        // In a URI fragment a pointer is percent-encoded.
        let pointer = percent::decode(pointer);
        let target = self.document.at(&pointer);
        let target = target.ok_or_else(|| SchemaError::Unresolved(reference.to_owned()))?;
        node.reference = Some(self.node(target, &pointer, depth + 1)?);
        Ok(true)
    }

    fn list(&mut self, schemas: &'document [Tree], here: &str, depth: usize) -> Result<Vec<NodeId>, SchemaError> {
        let numbered = schemas.iter().enumerate();
        numbered.map(|(index, schema)| self.node(schema, &format!("{here}/{index}"), depth + 1)).collect()
    }
}

/// Keywords that tell readers something and check nothing.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$id",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "format",
    "readOnly",
    "title",
    "writeOnly",
    "xml",
];

fn subschema<'node>(node: &'node mut Node, keyword: &str) -> Option<&'node mut Option<NodeId>> {
    Some(match keyword {
        "additionalProperties" => &mut node.additional_properties,
        "propertyNames" => &mut node.property_names,
        "items" => &mut node.items,
        "contains" => &mut node.contains,
        "not" => &mut node.not,
        "if" => &mut node.condition,
        "then" => &mut node.then,
        "else" => &mut node.otherwise,
        _ => return None,
    })
}

/// Whether it is a keyword that is checked.
fn number_keyword(node: &mut Node, keyword: &str, written: &str) -> bool {
    let limit = || Some(Limit { written: written.to_owned(), value: Decimal::read(written) });
    let count = f64::from_json(written).filter(|number| *number >= 0.0).map(|number| number as u64);
    match keyword {
        "minimum" => node.minimum = limit(),
        "maximum" => node.maximum = limit(),
        "exclusiveMinimum" => node.exclusive_minimum = limit(),
        "exclusiveMaximum" => node.exclusive_maximum = limit(),
        "multipleOf" => {
            node.multiple_of = limit().filter(|step| step.value.is_multiple_of(&step.value).is_some());
            return node.multiple_of.is_some();
        }
        "minLength" => node.length.minimum = count,
        "maxLength" => node.length.maximum = count,
        "minItems" => node.item_count.minimum = count,
        "maxItems" => node.item_count.maximum = count,
        "minContains" => node.contains_count.minimum = count,
        "maxContains" => node.contains_count.maximum = count,
        "minProperties" => node.property_count.minimum = count,
        "maxProperties" => node.property_count.maximum = count,
        _ => return false,
    }
    true
}

fn types(value: &Tree) -> Option<Vec<Type>> {
    match value {
        Tree::Text(name) => Type::from_name(name).map(|one| vec![one]),
        Tree::List(names) => names.iter().map(|name| Type::from_name(name.as_text()?)).collect(),
        _ => None,
    }
}

/// The texts of a list.
fn strings(value: &Tree) -> Option<Vec<String>> {
    let Tree::List(elements) = value else { return None };
    Some(elements.iter().filter_map(Tree::as_text).map(str::to_owned).collect())
}

fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl Range {
    pub(super) fn contains(&self, count: usize) -> bool {
        let count = count as u64;
        self.minimum.is_none_or(|minimum| count >= minimum) && self.maximum.is_none_or(|maximum| count <= maximum)
    }
}
