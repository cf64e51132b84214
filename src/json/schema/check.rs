use super::{Limit, MAX_SCHEMA_DEPTH, Node, NodeId, Schema, Type};
use crate::json::{Decimal, Members, RawJson, Tree, quoted};
use crate::ordered_map::OrderedSet;

/// The most subschemas that one check applies. Alternatives within alternatives multiply; a schema that needs more is
/// reported instead of stopping the program.
const MAX_STEPS: u32 = 200_000;

/// The most sentences about one input: enough to repair it, few enough to read.
const MAX_PROBLEMS: usize = 8;

pub(super) fn check(schema: &Schema, input: &RawJson) -> Result<Option<RawJson>, String> {
    let original = Tree::read(input.as_str()).map_err(|why| format!("The input cannot be read: {why}."))?;
    let mut value = original.clone();
    let mut checker = Checker { schema, steps: 0, repairs: false, problems: Vec::new() };
    checker.apply(0, &mut value, &Path::Root, 0);
    if checker.problems.is_empty() {
        return Ok(None);
    }
    let mut value = if original == Tree::Null { Tree::Object(Members::new()) } else { original };
    checker.repairs = true;
    checker.problems.clear();
    checker.apply(0, &mut value, &Path::Root, 0);
    if !checker.problems.is_empty() {
        return Err(checker.problems.join("\n"));
    }
    RawJson::parse(value.to_json()).map(Some).map_err(|error| format!("The input cannot be written: {error}."))
}

pub(super) fn validate(schema: &Schema, value: &RawJson) -> Result<(), String> {
    let mut value = Tree::read(value.as_str()).map_err(|why| format!("The value cannot be read: {why}."))?;
    let mut checker = Checker { schema, steps: 0, repairs: false, problems: Vec::new() };
    checker.apply(0, &mut value, &Path::Root, 0);
    if checker.problems.is_empty() { Ok(()) } else { Err(checker.problems.join("\n")) }
}

struct Checker<'schema> {
    schema: &'schema Schema,
    steps: u32,
    /// Whether values of another type are made to fit.
    repairs: bool,
    problems: Vec<String>,
}

/// Where in the input a value stands.
enum Path<'path> {
    Root,
    Member(&'path Self, &'path str),
    Element(&'path Self, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(parent, name) => format!("{}/{name}", parent.pointer()),
            Self::Element(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

impl<'schema> Checker<'schema> {
    fn apply(&mut self, id: NodeId, value: &mut Tree, path: &Path<'_>, depth: usize) {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_SCHEMA_DEPTH {
            if self.problems.is_empty() {
                self.problem(path, "is too deep or too large to be checked; use a simpler input");
            }
            return;
        }
        let schema: &'schema Schema = self.schema;
        let Some(node) = schema.nodes.get(id) else { return };
        if node.never {
            return self.problem(path, "is not allowed here");
        }
        if let Some(reference) = node.reference {
            self.apply(reference, value, path, depth + 1);
        }
        if let Some(types) = &node.types {
            self.check_type(types, value, path);
        }
        if let Some(values) = &node.values {
            self.check_values(values, value, path);
        }
        for id in &node.all_of {
            self.apply(*id, value, path, depth + 1);
        }
        if let Some(alternatives) = &node.any_of {
            self.check_any_of(alternatives, value, path, depth);
        }
        if let Some(alternatives) = &node.one_of {
            self.check_one_of(alternatives, value, path, depth);
        }
        if node.not.is_some_and(|id| self.fits(id, value, path, depth)) {
            self.problem(path, "has a form that is excluded");
        }
        if let Some(condition) = node.condition {
            let branch = if self.fits(condition, value, path, depth) { node.then } else { node.otherwise };
            if let Some(id) = branch {
                self.apply(id, value, path, depth + 1);
            }
        }
        match value {
            Tree::Object(members) => self.check_object(node, members, path, depth),
            Tree::List(elements) => self.check_array(node, elements, path, depth),
            Tree::Text(text) => self.check_string(node, text, path),
            Tree::Number(number) => self.check_number(node, number, path),
            Tree::Null | Tree::Boolean(_) => {}
        }
    }

    /// Whether the value is valid as it is.
    fn fits(&mut self, id: NodeId, value: &Tree, path: &Path<'_>, depth: usize) -> bool {
        self.attempt(id, value, path, depth, false).is_ok()
    }

    /// Applies a subschema to a copy: the copy, or what is wrong with it.
    fn attempt(
        &mut self,
        id: NodeId,
        value: &Tree,
        path: &Path<'_>,
        depth: usize,
        repairs: bool,
    ) -> Result<Tree, Vec<String>> {
        let outer_problems = std::mem::take(&mut self.problems);
        let outer_repairs = std::mem::replace(&mut self.repairs, repairs);
        let mut copy = value.clone();
        self.apply(id, &mut copy, path, depth + 1);
        self.repairs = outer_repairs;
        let problems = std::mem::replace(&mut self.problems, outer_problems);
        if problems.is_empty() { Ok(copy) } else { Err(problems) }
    }

    fn check_any_of(&mut self, alternatives: &[NodeId], value: &mut Tree, path: &Path<'_>, depth: usize) {
        if alternatives.iter().any(|id| self.fits(*id, value, path, depth)) {
            return;
        }
        self.take_first(alternatives, value, path, depth);
    }

    fn check_one_of(&mut self, alternatives: &[NodeId], value: &mut Tree, path: &Path<'_>, depth: usize) {
        match alternatives.iter().filter(|id| self.fits(**id, value, path, depth)).count() {
            0 => self.take_first(alternatives, value, path, depth),
            1 => {}
            _ => self.problem(path, "fits more than one of the forms of which it must fit exactly one"),
        }
    }

    /// Takes the first alternative that fits after repairs. When none does, the problems of the closest one are told:
    /// the one with the fewest.
    fn take_first(&mut self, alternatives: &[NodeId], value: &mut Tree, path: &Path<'_>, depth: usize) {
        let mut closest: Option<Vec<String>> = None;
        for id in alternatives {
            match self.attempt(*id, value, path, depth, self.repairs) {
                Ok(repaired) => return *value = repaired,
                Err(problems) => {
                    if closest.as_ref().is_none_or(|closest| problems.len() < closest.len()) {
                        closest = Some(problems);
                    }
                }
            }
        }
        self.problem(path, "fits none of the allowed forms; the closest one fails with:");
        self.problems.extend(closest.unwrap_or_default());
        self.problems.truncate(MAX_PROBLEMS);
    }

    fn check_type(&mut self, types: &[Type], value: &mut Tree, path: &Path<'_>) {
        if types.iter().any(|expected| is_of(*expected, value)) {
            return;
        }
        let fitting = types.iter().find_map(|expected| repaired(*expected, value)).filter(|_| self.repairs);
        if let Some(fitting) = fitting {
            *value = fitting;
            return;
        }
        let expected: Vec<_> = types.iter().map(|expected| expected.name()).collect();
        self.problem(path, &format!("must be of type {}, but is {}", expected.join(" or "), describe(value)));
    }

    fn check_values(&mut self, values: &[Tree], value: &mut Tree, path: &Path<'_>) {
        let given = canonical(value);
        if values.iter().any(|allowed| canonical(allowed) == given) {
            return;
        }
        if self.repairs {
            let same_text = |allowed: &&Tree| match (allowed, &*value) {
                (Tree::Text(_), Tree::Text(_)) => false,
                (allowed, given) => plain(allowed) == plain(given),
            };
            if let Some(allowed) = values.iter().find(same_text) {
                *value = allowed.clone();
                return;
            }
        }
        let allowed: Vec<_> = values.iter().take(32).map(Tree::to_json).collect();
        self.problem(path, &format!("must be one of {}, but is {}", allowed.join(", "), describe(value)));
    }

    fn check_object(&mut self, node: &Node, members: &mut Members, path: &Path<'_>, depth: usize) {
        if self.repairs {
            self.leave_out_nulls(node, members, path, depth);
        }
        for name in &node.required {
            if !members.contains_key(name) {
                self.problem(path, &format!("lacks the required member {}", quoted(name)));
            }
        }
        for (name, others) in &node.dependent_required {
            for other in others.iter().filter(|other| members.contains_key(name) && !members.contains_key(*other)) {
                self.problem(
                    path,
                    &format!("has the member {} and so needs the member {}", quoted(name), quoted(other)),
                );
            }
        }
        if !node.property_count.contains(members.len()) {
            self.problem(path, "has too few or too many members");
        }
        for (name, value) in members.iter_mut() {
            let here = Path::Member(path, name);
            if let Some(id) = node.property_names {
                self.apply(id, &mut Tree::Text(name.clone()), &here, depth + 1);
            }
            match (node.properties.get(name), node.additional_properties) {
                (Some(id), _) => self.apply(*id, value, &here, depth + 1),
                (None, Some(id)) if self.schema.nodes.get(id).is_some_and(|node| node.never) => {
                    let known: Vec<_> = node.properties.keys().map(String::as_str).collect();
                    self.problem(&here, &format!("is not a known member; the known ones are: {}", known.join(", ")));
                }
                (None, Some(id)) => self.apply(id, value, &here, depth + 1),
                (None, None) => {}
            }
        }
    }

    fn leave_out_nulls(&mut self, node: &Node, members: &mut Members, path: &Path<'_>, depth: usize) {
        members.retain(|name, value| {
            let known = node.properties.get(name).filter(|_| *value == Tree::Null && !node.required.contains(name));
            known.is_none_or(|id| self.fits(*id, value, &Path::Member(path, name), depth))
        });
    }

    fn check_array(&mut self, node: &Node, elements: &mut [Tree], path: &Path<'_>, depth: usize) {
        if !node.item_count.contains(elements.len()) {
            self.problem(path, &format!("has {} elements, which is too few or too many", elements.len()));
        }
        if node.unique_items {
            let distinct: OrderedSet<_> = elements.iter().map(canonical).collect();
            if distinct.len() < elements.len() {
                self.problem(path, "has equal elements, but they must differ");
            }
        }
        if let Some(id) = node.contains {
            let numbered = elements.iter().enumerate();
            let count =
                numbered.filter(|(index, element)| self.fits(id, element, &Path::Element(path, *index), depth)).count();
            let at_least_one = node.contains_count.minimum.is_some() || count > 0;
            if !at_least_one || !node.contains_count.contains(count) {
                self.problem(path, "has too few or too many elements of a certain form");
            }
        }
        for (index, element) in elements.iter_mut().enumerate() {
            if let Some(id) = node.prefix_items.get(index).copied().or(node.items) {
                self.apply(id, element, &Path::Element(path, index), depth + 1);
            }
        }
    }

    fn check_string(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        if node.length.minimum.is_some() || node.length.maximum.is_some() {
            let length = text.chars().count();
            if !node.length.contains(length) {
                self.problem(path, &format!("is {length} characters long, which is too short or too long"));
            }
        }
    }

    fn check_number(&mut self, node: &Node, written: &str, path: &Path<'_>) {
        let limits =
            [&node.minimum, &node.maximum, &node.exclusive_minimum, &node.exclusive_maximum, &node.multiple_of];
        if limits.iter().all(|limit| limit.is_none()) {
            return;
        }
        let number = Decimal::read(written);
        let mut refuse = |limit: &Option<Limit>, relation: &str, is_within: fn(&Decimal, &Decimal) -> bool| {
            if let Some(Limit { written: limit, .. }) = limit.as_ref().filter(|limit| !is_within(&number, &limit.value))
            {
                self.problem(path, &format!("must be {relation} {limit}, but is {written}"));
            }
        };
        refuse(&node.minimum, "at least", |number, limit| number >= limit);
        refuse(&node.maximum, "at most", |number, limit| number <= limit);
        refuse(&node.exclusive_minimum, "greater than", |number, limit| number > limit);
        refuse(&node.exclusive_maximum, "less than", |number, limit| number < limit);
        refuse(&node.multiple_of, "a multiple of", |number, step| number.is_multiple_of(step).unwrap_or(true));
    }

    fn problem(&mut self, path: &Path<'_>, text: &str) {
        if self.problems.len() < MAX_PROBLEMS {
            let place = match path.pointer() {
                pointer if pointer.is_empty() => "The input".to_owned(),
                pointer => format!("The value at {pointer}"),
            };
            self.problems.push(format!("{place} {text}."));
        }
    }
}

fn is_of(expected: Type, value: &Tree) -> bool {
    match (expected, value) {
        (Type::Null, Tree::Null)
        | (Type::Boolean, Tree::Boolean(_))
        | (Type::Object, Tree::Object(_))
        | (Type::Array, Tree::List(_))
        | (Type::Number, Tree::Number(_))
        | (Type::String, Tree::Text(_)) => true,
        (Type::Integer, Tree::Number(written)) => Decimal::read(written).is_whole(),
        _ => false,
    }
}

fn repaired(expected: Type, value: &Tree) -> Option<Tree> {
    match (expected, value) {
        (Type::String, Tree::Number(_) | Tree::Boolean(_)) => Some(Tree::Text(plain(value))),
        (Type::Boolean | Type::Number | Type::Integer | Type::Object | Type::Array, Tree::Text(text)) => {
            let parsed = Tree::read(RawJson::parse(text.trim()).ok()?.as_str()).ok()?;
            is_of(expected, &parsed).then_some(parsed)
        }
        _ => None,
    }
}

/// A value as a person writes it.
fn plain(value: &Tree) -> String {
    value.as_text().map_or_else(|| value.to_json(), str::to_owned)
}

fn describe(value: &Tree) -> String {
    /// The most characters of a value that are repeated to the model.
    const MAX_SHOWN: usize = 60;
    match value {
        Tree::Object(_) => "an object".to_owned(),
        Tree::List(_) => "an array".to_owned(),
        Tree::Text(text) if text.chars().count() > MAX_SHOWN => {
            format!("the text {}…", quoted(&text.chars().take(MAX_SHOWN).collect::<String>()))
        }
        Tree::Text(text) => format!("the text {}", quoted(text)),
        other => other.to_json(),
    }
}

/// The text that a value has in common with all that are equal to it, as the draft says: numbers by their value, so that `1`, `1.0`
/// and `10e-1` are equal, and objects whatever the order of their members.
fn canonical(value: &Tree) -> String {
    fn write_numbers_alike(value: &mut Tree) {
        match value {
            Tree::Number(written) => *written = Decimal::read(written).to_json(),
            Tree::List(elements) => elements.iter_mut().for_each(write_numbers_alike),
            Tree::Object(members) => members.iter_mut().for_each(|(_, value)| write_numbers_alike(value)),
            Tree::Null | Tree::Boolean(_) | Tree::Text(_) => {}
        }
    }
    let mut value = value.clone();
    write_numbers_alike(&mut value);
    value.to_json()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SchemaError;
    use super::*;

    fn compile(schema: &str) -> Schema {
        Schema::compile(&RawJson::parse(schema).unwrap()).unwrap()
    }

    fn checked(schema: &str, input: &str) -> Result<Option<String>, String> {
        let outcome = compile(schema).check(&RawJson::parse(input).unwrap());
        outcome.map(|repaired| repaired.map(|raw| raw.as_str().to_owned()))
    }

    #[test]
    fn valid_inputs_are_left_as_they_are() {
        for (schema, input) in [
            (r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#, r#"{ "n" : 1.0 }"#),
            (r#"{"enum":[1,"a",null]}"#, "1.0"),
            (r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#, r#""5""#),
            (
                r##"{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}"##,
                "[[],[[]]]",
            ),
            (r#"{"prefixItems":[{"type":"string"}],"items":false}"#, r#"["a"]"#),
            (r#"{"multipleOf":0.1}"#, "0.3"),
            (r#"{"type":"string","nullable":true}"#, "null"),
            ("true", "{}"),
        ] {
            assert_eq!(checked(schema, input), Ok(None), "{schema} {input}");
        }
    }

    #[test]
    fn what_models_get_wrong_is_repaired() {
        for (schema, input, expected) in [
            (r#"{"properties":{"n":{"type":"number"}}}"#, r#"{"n":"5.5"}"#, r#"{"n":5.5}"#),
            (r#"{"properties":{"b":{"type":"boolean"}}}"#, r#"{"b":"true"}"#, r#"{"b":true}"#),
            (r#"{"properties":{"s":{"type":"string"}}}"#, r#"{"s":5}"#, r#"{"s":"5"}"#),
            (r#"{"properties":{"l":{"type":"array"}}}"#, r#"{"l":"[1, 2]"}"#, r#"{"l":[1,2]}"#),
            (r#"{"properties":{"s":{"type":"string"}}}"#, r#"{"s":null}"#, "{}"),
            (r#"{"type":"object"}"#, "null", "{}"),
            (r#"{"anyOf":[{"type":"null"},{"type":"integer"}]}"#, r#""7""#, "7"),
            (r#"{"properties":{"e":{"enum":[1,2]}}}"#, r#"{"e":"2"}"#, r#"{"e":2}"#),
        ] {
            assert_eq!(checked(schema, input), Ok(Some(expected.to_owned())), "{schema} {input}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (schema, input, expected) in [
            (r#"{"type":"object"}"#, "[1]", "The input must be of type object, but is an array."),
            (r#"{"type":"object","required":["a"]}"#, "null", r#"The input lacks the required member "a"."#),
            (
                r#"{"properties":{"a":{"items":{"type":"integer"}}}}"#,
                r#"{"a":[1,"x"]}"#,
                r#"The value at /a/1 must be of type integer, but is the text "x"."#,
            ),
            (
                r#"{"properties":{"a":{}},"additionalProperties":false}"#,
                r#"{"b":1}"#,
                "The value at /b is not a known member; the known ones are: a.",
            ),
            (r#"{"maximum":3}"#, "4", "The input must be at most 3, but is 4."),
            (r#"{"enum":["a","b"]}"#, r#""c""#, r#"The input must be one of "a", "b", but is the text "c"."#),
            (
                r#"{"oneOf":[{"type":"integer"},{"minimum":0}]}"#,
                "1",
                "The input fits more than one of the forms of which it must fit exactly one.",
            ),
            (r#"{"not":{"type":"string"}}"#, r#""a""#, "The input has a form that is excluded."),
            (r#"{"if":{"minimum":5},"then":{"maximum":6}}"#, "7", "The input must be at most 6, but is 7."),
            (r#"{"uniqueItems":true}"#, "[1,1]", "The input has equal elements, but they must differ."),
            (r#"{"uniqueItems":true}"#, "[1,1.0]", "The input has equal elements, but they must differ."),
            (
                r#"{"uniqueItems":true}"#,
                r#"[{"a":[0.10]},{"a":[1e-1]}]"#,
                "The input has equal elements, but they must differ.",
            ),
            (r#"{"maxLength":1}"#, r#""éé""#, "The input is 2 characters long, which is too short or too long."),
        ] {
            assert_eq!(checked(schema, input), Err(expected.to_owned()), "{schema} {input}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_exact_values() {
        for (schema, fits, does_not) in [
            (r#"{"const":9007199254740993}"#, "9007199254740993.0", "9007199254740992"),
            (r#"{"enum":[{"id":[9007199254740993]}]}"#, r#"{"id":[9007199254740993]}"#, r#"{"id":[9007199254740992]}"#),
            (r#"{"const":0.1}"#, "1e-1", "0.10000000000000001"),
            (
                r#"{"uniqueItems":true}"#,
                "[9007199254740992,9007199254740993]",
                "[9007199254740993,9.007199254740993e15]",
            ),
            (r#"{"minimum":9007199254740993}"#, "9007199254740993", "9007199254740992"),
            (r#"{"maximum":18446744073709551615}"#, "18446744073709551615", "18446744073709551616"),
            (r#"{"exclusiveMinimum":9007199254740992}"#, "9007199254740993", "9007199254740992"),
            (r#"{"exclusiveMaximum":-9007199254740992}"#, "-9007199254740993", "-9007199254740992"),
            (r#"{"multipleOf":2}"#, "9007199254740994", "9007199254740993"),
            (r#"{"multipleOf":0.1}"#, "1234567890123456.7", "1234567890123456.75"),
            (r#"{"multipleOf":0.01}"#, "4.35", "4.355"),
            (r#"{"type":"integer"}"#, "1e30", "9007199254740992.5"),
        ] {
            assert_eq!(checked(schema, fits), Ok(None), "{schema} {fits}");
            let told = checked(schema, does_not).expect_err(schema);
            assert!(
                schema.contains("unique") || told.contains(describe(&Tree::read(does_not).unwrap()).as_str()),
                "{told}"
            );
        }
        let told = checked(r#"{"maximum":9007199254740993}"#, "9007199254740994").unwrap_err();
        assert_eq!(told, "The input must be at most 9007199254740993, but is 9007199254740994.");
    }

    #[test]
    fn a_step_that_cannot_be_reckoned_with_is_listed() {
        for step in ["0", "-2", "1e-400", "0.1234567890123456789"] {
            let schema = compile(&format!(r#"{{"multipleOf":{step}}}"#));
            let usable = step == "1e-400";
            assert_eq!(schema.unsupported().is_empty(), usable, "{step}");
        }
    }

    #[test]
    fn keywords_that_are_not_checked_are_listed() {
        let schema = compile(r#"{"properties":{"a/b":{"pattern":"^x$","title":"t"}},"$ref":"https://example.com/x"}"#);
        assert_eq!(schema.unsupported(), ["/$ref", "/properties/a~1b/pattern"]);
    }

    #[test]
    fn schemas_that_cannot_be_used_are_refused() {
        let refused = |schema: &str| Schema::compile(&RawJson::parse(schema).unwrap()).unwrap_err();
        assert!(matches!(refused("3"), SchemaError::NotASchema(_)));
        assert_eq!(refused(r##"{"$ref":"#/$defs/x"}"##), SchemaError::Unresolved("#/$defs/x".to_owned()));
        assert_eq!(
            refused(&format!("{{\"title\":{:?}}}", "x".repeat(super::super::MAX_SCHEMA_BYTES))),
            SchemaError::TooLarge
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_without_end_is_reported() {
        let told = checked(r##"{"$ref":"#"}"##, "1").unwrap_err();
        assert!(told.contains("too deep"), "{told}");
        let alternatives = r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}],"type":"object"}"##;
        assert!(checked(alternatives, "1").is_err());
    }

    proptest! {
        #[test]
        fn a_repaired_input_is_valid(number in any::<i32>(), text in "[a-z]{1,4}", flag in any::<bool>()) {
            let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"b":{"type":"boolean"},"s":{"type":"string"}}}"#;
            let input = format!(r#"{{"n":"{number}","b":"{flag}","s":{number},"x":"{text}"}}"#);
            let repaired = checked(schema, &input).unwrap().unwrap();
            prop_assert_eq!(checked(schema, &repaired), Ok(None));
        }
    }
}
