//! All pages that offer tools, and what of it agents get: the registry behind the control socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crablet::json::RawJson;
use crablet::mcp::protocol::Tool;
use crablet::native::now;
use crablet::native::process::ServerProcess;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::time::interval;

use super::consents::{ConsentFile, Owner};
use super::definition::Definition;
use super::names::{prefix, tool_name};
use super::page::{PageLink, connect_page, run_page};
use super::text::clean_line;
use super::withheld::Withheld;
use crate::gate::Admission;
use crate::grants::Exposure;
use crate::log::Flood;
use crate::reload::LOOK_INTERVAL;

/// Whose page it is, and how freely it may offer tools.
#[derive(Clone, Debug)]
pub(crate) struct PageOwner {
    pub(crate) key_id: String,
    /// The `Origin` header; `None` for a program that sends none.
    pub(crate) origin: Option<String>,
    pub(crate) exposure: Exposure,
}

/// Names a page for as long as the shim runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageId(u64);

/// The pages.
#[derive(Debug)]
pub(crate) struct Pages {
    open: Mutex<Open>,
    consents: ConsentFile,
    /// What agents get, by name.
    offered: watch::Sender<Vec<Offer>>,
    log: Mutex<Flood>,
}

#[derive(Debug, Default)]
struct Open {
    last_id: u64,
    pages: BTreeMap<PageId, Page>,
}

#[derive(Debug)]
struct Page {
    owner: PageOwner,
    /// Which of its owner's pages it is, from 1: the lowest number that was free.
    number: u32,
    /// Its tools in their order, or why one cannot be offered.
    tools: Vec<(String, Result<Definition, String>)>,
    link: PageLink,
    /// One permit for each call that may still be at work.
    calls: Arc<Semaphore>,
}

/// A tool that agents get.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// What agents call it.
    pub(super) name: String,
    pub(super) page: PageId,
    /// The page in words.
    pub(super) owner: String,
    pub(super) tool: Definition,
    pub(super) link: PageLink,
    /// One permit for each call of the page that may still be at work.
    pub(super) calls: Arc<Semaphore>,
}

/// What becomes of a tool, as its page is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolState {
    name: String,
    /// What agents call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_as: Option<String>,
    /// Why they do not get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<String>,
    /// Whether `crablet-shim consent` lets it in.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    awaits_consent: bool,
}

impl PageOwner {
    /// The page of a handshake.
    pub(crate) fn of(admission: &Admission) -> Self {
        let exposure = admission.exposes.unwrap_or_default();
        Self { key_id: admission.token.key_id().to_owned(), origin: admission.origin.clone(), exposure }
    }

    /// The page in words.
    fn label(&self) -> &str {
        self.origin.as_deref().unwrap_or("a program without an origin")
    }

    fn as_owner(&self) -> Owner<'_> {
        Owner { key_id: &self.key_id, origin: self.origin.as_deref().unwrap_or_default() }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.key_id == other.key_id && self.origin == other.origin
    }
}

impl Page {
    fn offer(&self, page: PageId, name: String, tool: &Definition) -> Offer {
        let owner = self.owner.label().to_owned();
        let (link, calls) = (self.link.clone(), Arc::clone(&self.calls));
        Offer { name, page, owner, tool: tool.clone(), link, calls }
    }
}

impl Pages {
    /// No pages yet.
    pub(crate) fn new(consents: ConsentFile) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            consents,
            offered: watch::Sender::default(),
            log: Mutex::new(Flood::new()),
        })
    }

    /// What agents get, by name, now and whenever it changes.
    pub(super) fn offered(&self) -> watch::Receiver<Vec<Offer>> {
        self.offered.subscribe()
    }

    /// Takes in a page; the process is for its session.
    ///
    /// The error is a sentence for the page.
    pub(crate) fn open(self: &Arc<Self>, owner: PageOwner) -> Result<ServerProcess, String> {
        let (process, id, connection, ends) = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Agents tell origins apart, not tokens.
            let numbers: Vec<u32> =
                open.pages.values().filter(|page| page.owner.origin == owner.origin).map(|page| page.number).collect();
            if open.pages.len() >= MAX_PAGES || numbers.len() >= MAX_PAGES_OF_ORIGIN {
                return Err(format!(
                    "{MAX_PAGES} pages, or {MAX_PAGES_OF_ORIGIN} of this origin, offer tools already; close some"
                ));
            }
            let number = (1..).find(|number| !numbers.contains(number)).unwrap_or(u32::MAX);
            let (process, link, ends) = connect_page(owner.label());
            open.last_id += 1;
            let id = PageId(open.last_id);
            let connection = link.connection.clone();
            let calls = Arc::new(Semaphore::new(MAX_CALLS));
            open.pages.insert(id, Page { owner, number, tools: Vec::new(), link, calls });
            (process, id, connection, ends)
        };
        tokio::spawn(run_page(Arc::downgrade(self), id, connection, ends));
        Ok(process)
    }

    /// A page is gone: its tools are too.
    pub(super) fn remove(&self, id: PageId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.pages.remove(&id).is_some() {
            self.offer(&open);
        }
    }

    /// The tools of a page, which are all that it has.
    pub(super) fn replace_tools(&self, id: PageId, tools: &[Arc<Tool>]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(page) = open.pages.get_mut(&id) else { return };
        page.tools = tools
            .iter()
            .take(MAX_TOOLS_OF_PAGE)
            .map(|tool| (clean_line(&tool.name, MAX_SHOWN), Definition::read(tool)))
            .collect();
        if tools.len() > MAX_TOOLS_OF_PAGE {
            self.note(&format!(
                "{} offers {} tools; the first {MAX_TOOLS_OF_PAGE} are looked at",
                page.owner.label(),
                tools.len()
            ));
        }
        self.offer(&open);
    }

    /// Looks at all consents again.
    fn look_again(&self) {
        self.offer(&self.open.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes a line of the log, unless too many were written just before.
    pub(super) fn note(&self, text: &str) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).note(text);
    }

    /// Serves what the user agreed to, and tells each page what became of its tools.
    fn offer(&self, open: &Open) {
        let mut offers = BTreeMap::new();
        let mut states = Vec::new();
        let verdicts = self.verdicts(open);
        for (id, page) in &open.pages {
            let prefix = prefix(page.owner.origin.as_deref(), page.number);
            let mut told = Vec::new();
            for (index, (name, tool)) in page.tools.iter().enumerate() {
                let offered_as = tool.as_ref().map_or_else(|_| String::new(), |tool| tool_name(&prefix, &tool.name));
                let withheld = match tool {
                    Err(reason) => Some(Withheld::Unfit(reason.clone())),
                    Ok(_) => verdicts.get(&(*id, index)).cloned().unwrap_or_default(),
                };
                let withheld = withheld.or_else(|| match offers.len() {
                    MAX_OFFERED.. => Some(Withheld::Unfit(format!("{MAX_OFFERED} tools are offered already"))),
                    _ if offers.contains_key(&offered_as) => {
                        Some(Withheld::Unfit("another tool is offered under the same name".to_owned()))
                    }
                    _ => None,
                });
                if let (Ok(tool), None) = (tool, &withheld) {
                    offers.insert(offered_as.clone(), page.offer(*id, offered_as.clone(), tool));
                }
                told.push(ToolState {
                    name: name.clone(),
                    offered_as: withheld.is_none().then_some(offered_as),
                    awaits_consent: withheld.as_ref().is_some_and(Withheld::can_be_agreed_to),
                    withheld: withheld.map(|withheld| withheld.to_string()),
                });
            }
            states.push((page, told));
        }
        self.offered.send_replace(offers.into_values().collect());
        for (page, told) in states {
            self.tell(page, told);
        }
    }

    /// What the user agreed to, for each tool of each page by its place.
    fn verdicts(&self, open: &Open) -> BTreeMap<(PageId, usize), Option<Withheld>> {
        let mut verdicts = BTreeMap::new();
        let mut owners: Vec<&PageOwner> = Vec::new();
        for page in open.pages.values() {
            if !owners.iter().any(|owner| owner.is_same(&page.owner)) {
                owners.push(&page.owner);
            }
        }
        for owner in owners {
            let (places, tools): (Vec<_>, Vec<&Definition>) = open
                .pages
                .iter()
                .filter(|(_, page)| page.owner.is_same(owner))
                .flat_map(|(id, page)| {
                    let tools = page.tools.iter().enumerate();
                    tools.filter_map(|(index, (_, tool))| Some(((*id, index), tool.as_ref().ok()?)))
                })
                .unzip();
            match self.consents.review(owner.as_owner(), owner.exposure, &tools, now()) {
                Ok(found) => verdicts.extend(places.into_iter().zip(found)),
                Err(error) => {
                    self.note(&format!("nothing is offered: {error}"));
                    let unread = || Some(Withheld::Unfit("what the user agreed to cannot be read".to_owned()));
                    verdicts.extend(places.into_iter().map(|place| (place, unread())));
                }
            }
        }
        verdicts
    }

    fn tell(&self, page: &Page, told: Vec<ToolState>) {
        let Ok(state) = RawJson::from_value(&serde_json::json!({ "tools": told })) else { return };
        let is_news = page.link.state.send_if_modified(|before| {
            let is_news = *before != state;
            *before = state;
            is_news
        });
        let waiting: Vec<&str> =
            told.iter().filter(|tool| tool.awaits_consent).map(|tool| tool.name.as_str()).collect();
        if is_news && !waiting.is_empty() {
            self.note(&format!(
                "tools of {} wait for your consent (`crablet-shim consent`): {}",
                page.owner.label(),
                waiting.join(", ")
            ));
        }
    }
}

/// Looks at the file of consents for ever: what the user decides counts at once.
pub(crate) async fn follow_consents(pages: &Pages) {
    let mut known = pages.consents.version();
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let version = pages.consents.version();
        if version != known {
            known = version;
            pages.look_again();
        }
    }
}

/// Tabs that a person has open for their agents.
const MAX_PAGES: usize = 32;
const MAX_PAGES_OF_ORIGIN: usize = 8;

/// More than a model chooses from.
const MAX_TOOLS_OF_PAGE: usize = 128;
const MAX_OFFERED: usize = 512;

/// Calls of one page that are at work at once.
pub(super) const MAX_CALLS: usize = 64;

/// As much of a name as is shown.
const MAX_SHOWN: usize = 128;
