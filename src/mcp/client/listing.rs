use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::protocol::Tool;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};

/// The most pages of one list. Servers with hundreds of tools need a few dozen at most.
const PAGE_LIMIT: usize = 200;

/// The most tools of one server: more than any model can be told of.
const TOOL_LIMIT: usize = 10_000;

/// A list of tools that comes in pages.
#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: Vec<Arc<Tool>>,
    names: BTreeSet<String>,
    cursors: BTreeSet<String>,
}

/// What a page leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Ask for the page of this cursor, which may be the empty text.
    Page(String),
    /// That was all.
    End,
    /// There may be more, but it is not asked for; why.
    Cut(&'static str),
}

impl Listing {
    /// Takes the result of one `tools/list`. A tool that was there already is not taken twice.
    pub(super) fn take_page(&mut self, result: &RawJson) -> Result<Next, Error> {
        let page = Object::parse(result.as_str())
            .map_err(|_| Error::new(ErrorKind::Protocol, "the server's list of tools is not a JSON object"))?;
        for tool in page.objects("tools").iter().filter_map(Tool::read) {
            if self.tools.len() < TOOL_LIMIT && self.names.insert(tool.name.clone()) {
                self.tools.push(Arc::new(tool));
            }
        }
        Ok(match page.string("nextCursor") {
            None => Next::End,
            Some(cursor) if self.cursors.contains(&cursor) => Next::Cut("it repeated a cursor"),
            Some(_) if self.cursors.len() + 1 >= PAGE_LIMIT => Next::Cut("it has too many pages"),
            Some(_) if self.tools.len() >= TOOL_LIMIT => Next::Cut("it has too many tools"),
            Some(cursor) => {
                self.cursors.insert(cursor.clone());
                Next::Page(cursor)
            }
        })
    }

    /// The tools in the server's order.
    pub(super) fn into_tools(self) -> Vec<Arc<Tool>> {
        self.tools
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
        assert_eq!(listing.take_page(&page("a", "\"\"")).unwrap(), Next::Page(String::new()));
        assert_eq!(listing.take_page(&page("b", "null")).unwrap(), Next::End);
        assert_eq!(listing.into_tools().len(), 2);
    }

    #[test]
    fn a_repeated_cursor_ends_the_list_without_doubles() {
        let mut listing = Listing::default();
        assert!(matches!(listing.take_page(&page("a", "\"same\"")).unwrap(), Next::Page(_)));
        assert!(matches!(listing.take_page(&page("a", "\"same\"")).unwrap(), Next::Cut(_)));
        assert_eq!(listing.into_tools().len(), 1);
    }

    #[test]
    fn pages_without_end_are_cut() {
        let mut listing = Listing::default();
        let pages = (0..).take_while(|number| {
            let next = listing.take_page(&page(&number.to_string(), &format!("\"{number}\""))).unwrap();
            matches!(next, Next::Page(_))
        });
        assert!(pages.count() < PAGE_LIMIT);
    }
}
