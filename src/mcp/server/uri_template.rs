/// A URI template of literals, `{name}` and `{+name}` (RFC 6570, levels 1 and 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UriTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// A variable, and whether its value may hold a slash.
    Variable(String, bool),
}

impl UriTemplate {
    /// `None` when it has an expression of another kind, or two without anything between them.
    pub(super) fn parse(template: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (expression, after) = after.split_once('}')?;
            let (name, any) = expression.strip_prefix('+').map_or((expression, false), |name| (name, true));
            let takes = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if name.is_empty() || !name.chars().all(takes) || matches!(parts.last(), Some(Part::Variable(..))) {
                return None;
            }
            parts.push(Part::Variable(name.to_owned(), any));
            rest = after;
        }
        if rest.contains('}') {
            return None;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self(parts))
    }

    /// The values of the variables in an address, as they stand there; `None` when it does not fit.
    ///
    /// Each literal is looked for where it comes first, so that this takes linear time.
    pub(super) fn variables(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut values = Vec::new();
        let mut rest = uri;
        let mut open: Option<(&str, bool)> = None;
        for (index, part) in self.0.iter().enumerate() {
            match part {
                Part::Variable(name, any) => open = Some((name, *any)),
                Part::Literal(literal) => {
                    let is_last = index + 1 == self.0.len();
                    let at = match open {
                        None => rest.starts_with(literal.as_str()).then_some(0)?,
                        Some(_) if is_last => rest.strip_suffix(literal.as_str())?.len(),
                        Some(_) => rest.find(literal.as_str())?,
                    };
                    if let Some(variable) = open.take() {
                        values.push(value(variable, rest.get(..at)?)?);
                    }
                    rest = rest.get(at + literal.len()..)?;
                }
            }
        }
        match open {
            Some(variable) => values.push(value(variable, rest)?),
            None if !rest.is_empty() => return None,
            None => {}
        }
        Some(values)
    }
}

fn value((name, any): (&str, bool), text: &str) -> Option<(String, String)> {
    let fits = !text.is_empty() && (any || !text.contains('/'));
    fits.then(|| (name.to_owned(), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variables_are_found_between_literals() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(&str, &str, Option<Variables>); 8] = [
            ("test://template/{id}/data", "test://template/123/data", Some(&[("id", "123")])),
            ("test://template/{id}/data", "test://template/1/2/data", None),
            ("test://template/{id}/data", "test://template//data", None),
            ("file:///{+path}", "file:///a/b.txt", Some(&[("path", "a/b.txt")])),
            ("{a}-{b}", "1-2", Some(&[("a", "1"), ("b", "2")])),
            ("x:{a}", "y:1", None),
            ("plain", "plain", Some(&[])),
            ("plain", "plainer", None),
        ];
        for (template, uri, expected) in cases {
            let found = UriTemplate::parse(template).unwrap().variables(uri);
            let expected = expected.map(|pairs| {
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{template} on {uri}");
        }
        for template in ["{", "{}", "a}", "{?q}", "{a}{b}", "{a*}"] {
            assert_eq!(UriTemplate::parse(template), None, "{template}");
        }
    }

    proptest! {
        #[test]
        fn any_template_and_address_are_taken(template in "[{}+a/é-]{0,20}", uri in "[a/é-]{0,20}") {
            if let Some(template) = UriTemplate::parse(&template) {
                template.variables(&uri);
            }
        }
    }
}
