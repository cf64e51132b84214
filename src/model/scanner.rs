//! A scanner for the payloads that make up nearly all of a stream: small objects whose members are texts and numbers.
//!
//! It reads one pass over the bytes and allocates nothing but the text that is asked for, where walking the same payload
//! with [`Object`](crate::json::Object) passes over each level again. It knows only what deltas are made of. Every method
//! gives `None` for anything else, and the caller then walks the payload as if it had never been scanned; so nothing here
//! may be more tolerant than the walk, and tests hold the two equal.

use crate::json::{plain, unescaped};

/// The place that the scanner has reached in a payload.
pub(super) struct Scanner<'text> {
    text: &'text str,
    at: usize,
}

/// A value that holds no others.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'text> {
    /// A string as it is written between its quotes.
    Text(&'text str),
    /// A number, `true`, `false`, `null` or an empty list.
    Other(&'text str),
}

/// A member that counts; repeated ones are left to the walk.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot<'text>(Option<Scalar<'text>>);

impl<'text> Scanner<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        // One pass, and another over the text that is asked for.
        crate::work::count(2 * text.len());
        Self { text, at: 0 }
    }

    /// An object: `member` is called at each value with the name, and reads the value.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn object(&mut self, mut member: impl FnMut(&mut Self, &'text str) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            // An escape could spell any name.
            let (name, false) = self.string_and_escapes()? else { return None };
            self.expect(b':')?;
            member(self, name)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// A list of one element, which `element` reads.
    pub(super) fn only_element(&mut self, element: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        element(self)?;
        self.expect(b']')
    }

    /// A value that holds no others.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn scalar(&mut self) -> Option<Scalar<'text>> {
        match self.peek()? {
            b'"' => self.string().map(Scalar::Text),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'[' => {
                let start = self.at;
                self.at += 1;
                self.expect(b']')?;
                self.text.get(start..self.at).map(Scalar::Other)
            }
            _ => self.number(),
        }
    }

    /// A member that no decoder reads unless it says that this payload is an error.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn outer(&mut self, name: &str) -> Option<()> {
        let scalar = self.scalar()?;
        match (name, scalar) {
            ("error", Scalar::Other("null")) => Some(()),
            ("error", _) => None,
            ("type" | "object", Scalar::Text(word)) if word == "error" || word.contains('\\') => None,
            _ => Some(()),
        }
    }

    /// Nothing follows.
    pub(super) fn end(&self) -> Option<()> {
        (self.at == self.text.len()).then_some(())
    }

    /// The byte that the next value begins with.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    fn expect(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn string(&mut self) -> Option<&'text str> {
        self.string_and_escapes().map(|(text, _)| text)
    }

    /// A string as it is written between its quotes, and whether it holds an escape.
    #[cfg_attr(crablet_small, optimize(speed))]
    fn string_and_escapes(&mut self) -> Option<(&'text str, bool)> {
        self.expect(b'"')?;
        let bytes = self.text.as_bytes();
        let (start, mut end, mut has_escape) = (self.at, self.at, false);
        loop {
            end += plain(bytes.get(end..)?);
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => has_escape = true,
                _ => return None,
            }
            end += match bytes.get(end + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                b'u' if bytes.get(end + 2..end + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
        }
        self.at = end + 1;
        self.text.get(start..end).map(|text| (text, has_escape))
    }

    fn word(&mut self, word: &str) -> Option<Scalar<'text>> {
        self.token(self.text.get(self.at..)?.starts_with(word).then_some(word.len())?)
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn number(&mut self) -> Option<Scalar<'text>> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_whole = digits == 1 || (digits > 1 && rest.first() != Some(&b'0'));
        // Deltas count and date; other numbers are for the walk.
        if !is_whole || matches!(rest.get(digits), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.token(digits)
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn token(&mut self, length: usize) -> Option<Scalar<'text>> {
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at).map(Scalar::Other)
    }
}

impl<'text> Slot<'text> {
    /// Reads the member's value.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn fill(&mut self, scanner: &mut Scanner<'text>) -> Option<()> {
        let is_first = self.0.replace(scanner.scalar()?).is_none();
        is_first.then_some(())
    }

    /// The text; empty for an absent member and for one of another type.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn text(self) -> Option<String> {
        match self.0 {
            Some(Scalar::Text(raw)) => unescaped(raw),
            _ => Some(String::new()),
        }
    }

    /// A string as it is written.
    pub(super) fn written(self) -> Option<&'text str> {
        match self.0 {
            Some(Scalar::Text(raw)) => Some(raw),
            _ => None,
        }
    }

    /// The whole number, if the member is there.
    pub(super) fn integer(self) -> Option<Option<u64>> {
        match self.0 {
            None | Some(Scalar::Other("null")) => Some(None),
            Some(Scalar::Other(digits)) => digits.parse().ok().map(Some),
            Some(Scalar::Text(_)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Object, read_string};

    /// The text of the member `a` of an object that the scanner takes.
    fn scanned(text: &str) -> Option<String> {
        let mut scanner = Scanner::new(text);
        let mut slot = Slot::default();
        scanner.object(|scanner, name| if name == "a" { slot.fill(scanner) } else { scanner.outer(name) })?;
        scanner.end()?;
        slot.text()
    }

    #[test]
    fn deltas_are_scanned() {
        for (text, expected) in [
            (r#"{"a":"b"}"#, "b"),
            (r#"{ "x" : [ ] , "a" : "b" ,"n":null,"t":true,"f":false,"i":10}"#, "b"),
            (r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83e\udd80é🦀"}"#, "\"\\/\u{8}\u{c}\n\r\té🦀é🦀"),
            (r#"{"a":null}"#, ""),
            (r#"{"x":"\ud800"}"#, ""),
            (r#"{"a":"\ud83e\ud83e\udd80\udd80"}"#, "\u{fffd}🦀\u{fffd}"),
            (r#"{"error":null,"type":"message"}"#, ""),
        ] {
            assert_eq!(scanned(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_walk() {
        for text in [
            "",
            "{}",
            r#"{"a":"b""#,
            r#"{"a":"b"}}"#,
            r#"{"a":"b"} "#,
            r#"{"a":"b",}"#,
            r#"{"a":"b" "c":1}"#,
            r#"{"a":"b","a":null}"#,
            r#"{"\u0061":"b"}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            "{\"a\":\"\n\"}",
            r#"{"x":{}}"#,
            r#"{"x":[1]}"#,
            r#"{"x":01}"#,
            r#"{"x":1.5}"#,
            r#"{"x":-1}"#,
            r#"{"x":nul}"#,
            r#"{"x":1x}"#,
            r#"{"error":false}"#,
            r#"{"error":"x"}"#,
            r#"{"type":"error"}"#,
            r#"{"object":"e\u0072ror"}"#,
        ] {
            assert_eq!(scanned(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_scanned_reads_the_same_walked(
            inner in r#"([a"\\/ué🦀\n]|\\[bfnrtux"\\/]|\\u(d83e|dd80|00e9|00|d8)|\\ud83e\\udd80){0,12}"#,
            shape in 0usize..6,
        ) {
            let text = match shape {
                0 => format!(r#"{{"a":"{inner}"}}"#),
                1 => format!(r#"{{"x":"{inner}","a":"b"}}"#),
                2 => format!(r#"{{"{inner}":1,"a":"b"}}"#),
                3 => format!(r#"{{"a":"b","x":{inner}}}"#),
                4 => format!(r#"{{"a":"b"}}{inner}"#),
                _ => inner,
            };
            if let Some(found) = scanned(&text) {
                let object = Object::parse(&text);
                prop_assert!(object.is_ok(), "{text}");
                let walked = object.unwrap().get("a").and_then(|raw| read_string(raw.get())).unwrap_or_default();
                prop_assert_eq!(found, walked);
            }
        }
    }
}
