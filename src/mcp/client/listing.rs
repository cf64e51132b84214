use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::ordered_map::OrderedSet;

/// The most pages of one list. Servers with hundreds of entries need a few dozen at most.
const PAGE_LIMIT: usize = 200;

/// The most entries of one list: more than any model can be told of.
const ENTRY_LIMIT: usize = 10_000;

/// What a server has a list of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collection {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Patterns of addresses of resources.
    ResourceTemplates,
    /// Prompts.
    Prompts,
}

impl Collection {
    /// The method that asks for a page.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The capability of servers that have it.
    pub(super) const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::ResourceTemplates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The member of a page that holds the entries.
    const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The member of an entry that tells it from the others.
    const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::ResourceTemplates => "uriTemplate",
        }
    }
}

/// A list that comes in pages.
#[derive(Debug, Default)]
pub(super) struct Listing {
    entries: Vec<RawJson>,
    keys: OrderedSet<String>,
    cursors: OrderedSet<String>,
}

/// What a page leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Ask for the page of this cursor, which may be the empty text. It goes back as it came: some servers use numbers.
    Page(RawJson),
    /// That was all.
    End,
    /// There may be more, but it is not asked for; why.
    Cut(&'static str),
}

impl Listing {
    /// Takes the result of asking for one page. An entry that was there already is not taken twice, and one without a key
    /// is no entry.
    pub(super) fn take_page(&mut self, collection: Collection, result: &RawJson) -> Result<Next, Error> {
        let page = Object::parse(result.as_str()).map_err(|_| {
            Error::new(ErrorKind::Protocol, format!("the server's answer to {} is no JSON object", collection.method()))
        })?;
        for entry in page.array(collection.member()).unwrap_or_default() {
            let key = Object::parse(entry.get()).ok().and_then(|entry| entry.string(collection.key()));
            if self.entries.len() < ENTRY_LIMIT && key.is_some_and(|key| self.keys.insert(key)) {
                self.entries.push(RawJson::from(entry));
            }
        }
        let cursor = page.raw("nextCursor").filter(|cursor| {
            cursor.as_str().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
        });
        Ok(match cursor {
            None => Next::End,
            Some(cursor) if self.cursors.contains(cursor.as_str()) => Next::Cut("it repeated a cursor"),
            Some(_) if self.cursors.len() + 1 >= PAGE_LIMIT => Next::Cut("it has too many pages"),
            Some(_) if self.entries.len() >= ENTRY_LIMIT => Next::Cut("it has too many entries"),
            Some(cursor) => {
                self.cursors.insert(cursor.as_str().to_owned());
                Next::Page(cursor)
            }
        })
    }

    /// The entries in the server's order.
    pub(super) fn into_entries(self) -> Vec<RawJson> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, cursor: &str) -> RawJson {
        let tool = format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#);
        RawJson::parse(format!(r#"{{"tools":[{tool},7,{{}}],"nextCursor":{cursor}}}"#)).unwrap()
    }

    #[test]
    fn an_empty_cursor_goes_on_and_null_ends() {
        let mut listing = Listing::default();
        assert_eq!(
            listing.take_page(Collection::Tools, &page("a", "\"\"")).unwrap(),
            Next::Page(RawJson::parse("\"\"").unwrap())
        );
        assert_eq!(listing.take_page(Collection::Tools, &page("b", "null")).unwrap(), Next::End);
        assert_eq!(listing.into_entries().len(), 2);
    }

    #[test]
    fn a_cursor_may_be_a_number() {
        let mut listing = Listing::default();
        let next = listing.take_page(Collection::Tools, &page("a", "100")).unwrap();
        assert_eq!(next, Next::Page(RawJson::parse("100").unwrap()));
        for end in ["false", "{}", "[1]"] {
            assert_eq!(listing.take_page(Collection::Tools, &page("b", end)).unwrap(), Next::End, "{end}");
        }
    }

    #[test]
    fn a_repeated_cursor_ends_the_list_without_doubles() {
        let mut listing = Listing::default();
        assert!(matches!(listing.take_page(Collection::Tools, &page("a", "\"same\"")).unwrap(), Next::Page(_)));
        assert!(matches!(listing.take_page(Collection::Tools, &page("a", "\"same\"")).unwrap(), Next::Cut(_)));
        assert_eq!(listing.into_entries().len(), 1);
    }

    #[test]
    fn pages_without_end_are_cut() {
        let mut listing = Listing::default();
        let pages = (0..).take_while(|number| {
            let next =
                listing.take_page(Collection::Tools, &page(&number.to_string(), &format!("\"{number}\""))).unwrap();
            matches!(next, Next::Page(_))
        });
        assert!(pages.count() < PAGE_LIMIT);
    }
}
