//! The headers that repeat arguments of tools (2026-07-28, "Custom Headers from Tool Parameters"): which there are, only the
//! child's list of tools tells.

use std::collections::BTreeMap;
use std::mem;

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError};
use crablet::mcp::server::http::{Exchange, HEADER_MISMATCH, fits_arguments};
use crablet::mcp::transport::streamable_http::mirrored::{MirroredParam, mirrored_params};

use super::Call;

/// The known headers, and the calls that wait until they are known.
#[derive(Debug, Default)]
pub(super) struct ToolHeaders {
    /// By tool, only of tools that have some; `None` while the list has not been read.
    known: Option<BTreeMap<String, Vec<MirroredParam>>>,
    asking: Option<Asking>,
    held: Vec<Call>,
}

#[derive(Debug, Default)]
struct Asking {
    number: u64,
    pages: usize,
    found: BTreeMap<String, Vec<MirroredParam>>,
}

/// What is to be done with a call.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Pass(Call),
    Refuse(Call, RpcError),
    /// It waits for the list, which is being read.
    Wait,
    /// It waits for the list: ask the child for its first page, and tell [`ToolHeaders::asked`].
    Ask,
}

/// What follows from a page of the list.
#[derive(Debug, PartialEq)]
pub(super) enum Page {
    /// Ask for the page after it.
    More(Params),
    /// The list is read: these calls go on, or are refused.
    Last(Vec<(Call, Result<(), RpcError>)>),
}

impl ToolHeaders {
    /// Looks at a call. One whose headers do not fit is held against a fresh list before it is refused, since a child may
    /// have changed its tools.
    pub(super) fn check(&mut self, call: Call) -> Verdict {
        if call.method != "tools/call" || call.headers.is_none() {
            return Verdict::Pass(call);
        }
        if self.asking.is_none() && self.known.as_ref().is_some_and(|known| fits(known, &call).is_ok()) {
            return Verdict::Pass(call);
        }
        if self.held.len() >= MAX_HELD {
            return Verdict::Refuse(call, RpcError::new(HEADER_MISMATCH, "too many calls wait for the list of tools"));
        }
        self.held.push(call);
        if self.asking.is_some() { Verdict::Wait } else { Verdict::Ask }
    }

    /// The child was asked for a page under this number.
    pub(super) fn asked(&mut self, number: u64) {
        self.asking.get_or_insert_default().number = number;
    }

    /// Whether an answer is one to these questions.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.number == number)
    }

    /// A page of the list, or `None` where the child has no list.
    pub(super) fn page(&mut self, result: Option<&RawJson>) -> Page {
        let mut asking = self.asking.take().unwrap_or_default();
        let page = result.and_then(|result| Object::parse(result.as_str()).ok()).unwrap_or_default();
        for tool in page.objects("tools") {
            let (name, schema) = (tool.string("name"), tool.raw("inputSchema"));
            // A tool whose annotations cannot be obeyed is one that callers must not offer, and so has no headers.
            let params = schema.and_then(|schema| mirrored_params(&schema).ok()).filter(|params| !params.is_empty());
            if let (Some(name), Some(params)) = (name, params) {
                asking.found.insert(name, params);
            }
        }
        asking.pages += 1;
        match page.raw("nextCursor").filter(|_| asking.pages < MAX_PAGES) {
            Some(cursor) => {
                self.asking = Some(asking);
                Page::More(Params::new().with("cursor", &cursor))
            }
            None => {
                let known = asking.found;
                let verdict = |call: Call| {
                    let verdict = fits(&known, &call);
                    (call, verdict)
                };
                let held = mem::take(&mut self.held).into_iter().map(verdict).collect();
                self.known = Some(known);
                Page::Last(held)
            }
        }
    }

    /// The child's tools have changed.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    /// The caller of a call is gone; gives the call if it was held.
    pub(super) fn remove(&mut self, exchange: Exchange) -> Option<Call> {
        let place = self.held.iter().position(|call| call.exchange == exchange)?;
        Some(self.held.remove(place))
    }

    /// Gives what is held, since the child has ended.
    pub(super) fn end(&mut self) -> Vec<Call> {
        mem::take(&mut self.held)
    }
}

/// Whether the headers of a call say what its arguments say.
fn fits(known: &BTreeMap<String, Vec<MirroredParam>>, call: &Call) -> Result<(), RpcError> {
    let name: Option<String> = call.params.member("name").and_then(|name| name.read().ok());
    let mirrored = name.and_then(|name| known.get(&name));
    mirrored
        .map_or(Ok(()), |mirrored| fits_arguments(mirrored, &call.params, call.headers.as_deref().unwrap_or_default()))
}

/// The most pages of a list that are read. A child with more has tools whose headers are not checked.
const MAX_PAGES: usize = 50;

/// The most calls that wait for the list at the same time.
const MAX_HELD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(headers: &[(&str, &str)], arguments: &str) -> Call {
        let params = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
        Call {
            exchange: Exchange(1),
            id: RawJson::parse("1").unwrap(),
            method: "tools/call".into(),
            params: Params::from_object(&RawJson::parse(params).unwrap()).unwrap(),
            headers: Some(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()),
        }
    }

    fn list(schema: &str, rest: &str) -> RawJson {
        RawJson::parse(format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]{rest}}}"#)).unwrap()
    }

    const REGION: &str = r#"{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},
        "n":{"type":"integer","x-mcp-header":"N"}}}"#;

    fn verdict(headers: &[(&str, &str)], arguments: &str) -> bool {
        let mut tools = ToolHeaders::default();
        assert_eq!(tools.check(call(headers, arguments)), Verdict::Ask);
        tools.asked(7);
        let Page::Last(calls) = tools.page(Some(&list(REGION, ""))) else { panic!("one page") };
        calls[0].1.is_ok()
    }

    #[test]
    fn headers_say_what_the_arguments_say() {
        assert!(verdict(&[("mcp-param-region", "eu")], r#"{"r":"eu"}"#));
        assert!(verdict(&[("mcp-param-region", "=?base64?ZcO8?=")], r#"{"r":"eü"}"#));
        assert!(verdict(&[("mcp-param-n", "42")], r#"{"n":42.0,"r":null}"#));
        assert!(verdict(&[("mcp-param-other", "x")], "{}"));
        assert!(!verdict(&[], r#"{"r":"eu"}"#));
        assert!(!verdict(&[("mcp-param-region", "us")], r#"{"r":"eu"}"#));
        assert!(!verdict(&[("mcp-param-region", "eu")], "{}"));
        assert!(!verdict(&[("mcp-param-region", "=?base64?ZX?=")], r#"{"r":"e"}"#));
    }

    #[test]
    fn the_list_is_read_once_and_again_before_a_refusal() {
        let mut tools = ToolHeaders::default();
        assert_eq!(tools.check(call(&[], "{}")), Verdict::Ask);
        tools.asked(7);
        assert_eq!(tools.check(call(&[], "{}")), Verdict::Wait);
        assert!(tools.awaits(7) && !tools.awaits(8));
        let more = tools.page(Some(&list("{}", r#","nextCursor":"c""#)));
        assert_eq!(more, Page::More(Params::new().with("cursor", "c")));
        tools.asked(8);
        let Page::Last(calls) = tools.page(Some(&list("{}", ""))) else { panic!("the last page") };
        assert_eq!(calls.len(), 2);
        // The tool gets an annotation without a word.
        assert!(matches!(tools.check(call(&[], r#"{"r":"eu"}"#)), Verdict::Pass(_)));
        tools.forget();
        assert_eq!(tools.check(call(&[], r#"{"r":"eu"}"#)), Verdict::Ask);
        tools.asked(9);
        let Page::Last(calls) = tools.page(Some(&list(REGION, ""))) else { panic!("one page") };
        assert!(calls[0].1.is_err());
        assert_eq!(tools.check(call(&[], r#"{"r":"eu"}"#)), Verdict::Ask);
    }

    #[test]
    fn a_child_without_a_list_has_no_headers() {
        let mut tools = ToolHeaders::default();
        tools.check(call(&[], r#"{"r":"eu"}"#));
        tools.asked(1);
        let Page::Last(calls) = tools.page(None) else { panic!("the end") };
        assert!(calls[0].1.is_ok());
    }
}
