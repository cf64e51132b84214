//! What the proxies know of the scripts that are at work.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crablet::mcp::transport::shim::Token;
use tokio::sync::Notify;

use crate::plan::{Boundary, Fault, Plan};
use crate::script::Script;
use crate::tally::Injected;

/// The scripts at work, and where the real servers are.
#[derive(Debug, Default)]
pub(crate) struct World {
    scripts: Mutex<HashMap<u64, Course>>,
    /// The port of crablet-shim, which serves the ledger over HTTP and WebSocket.
    pub(crate) shim_port: u16,
    /// What opens its WebSocket.
    pub(crate) shim_token: Option<Token>,
}

/// How far a script is.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) script: Arc<Script>,
    pub(crate) plan: Plan,
    /// From now on nothing goes wrong.
    pub(crate) is_calm: bool,
    /// How many exchanges each way has seen: model, MCP over HTTP, the two directions of the WebSocket, store.
    exchanges: [u32; 5],
    /// The answers of the model that were sent whole, by exchange.
    pub(crate) whole_answers: BTreeSet<u32>,
    pub(crate) injected: Vec<Injected>,
    /// Is told of each exchange over HTTP that is over: what waits to be overtaken waits for this.
    pub(crate) passed: Arc<Notify>,
}

/// A way that exchanges go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Model,
    McpHttp,
    ToShim,
    FromShim,
    Store,
}

/// The next exchange of a script, and what is to go wrong in it.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) seed: u64,
    pub(crate) number: u32,
    pub(crate) fault: Option<Fault>,
}

impl World {
    pub(crate) fn new(shim_port: u16, shim_token: Token) -> Self {
        Self { shim_port, shim_token: Some(shim_token), ..Self::default() }
    }

    /// Begins a script, or gives how far it is.
    pub(crate) fn with<T>(&self, seed: u64, look: impl FnOnce(&mut Course) -> T) -> T {
        let mut scripts = self.lock();
        look(scripts.entry(seed).or_insert_with(|| Course::new(seed)))
    }

    /// Counts an exchange, and says what goes wrong in it.
    pub(crate) fn exchange(&self, seed: u64, way: Way) -> Exchange {
        self.with(seed, |course| {
            let counter = &mut course.exchanges[way as usize];
            let count = *counter;
            *counter += 1;
            let (boundary, number) = match way {
                Way::Model => (Boundary::Model, count),
                Way::McpHttp => (Boundary::McpHttp, count),
                Way::ToShim => (Boundary::Shim, count * 2),
                Way::FromShim => (Boundary::Shim, count * 2 + 1),
                Way::Store => (Boundary::Store, count),
            };
            let is_faulty = !course.is_calm && course.plan.boundary == boundary;
            let fault = course.plan.faults.get(&number).filter(|_| is_faulty).cloned();
            Exchange { seed, number, fault }
        })
    }

    /// Notes a fault that has happened.
    pub(crate) fn injected(&self, exchange: &Exchange, place: impl Into<String>) {
        let Some(fault) = &exchange.fault else { return };
        let (seed, kind) = (exchange.seed, fault.kind);
        let injected = Injected { seed, exchange: exchange.number, kind, place: place.into() };
        self.with(seed, |course| course.injected.push(injected));
    }

    /// Ends a script.
    pub(crate) fn forget(&self, seed: u64) -> Option<Course> {
        self.lock().remove(&seed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Course>> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    fn new(seed: u64) -> Self {
        Self {
            script: Arc::new(Script::new(seed)),
            plan: Plan::new(seed),
            is_calm: false,
            exchanges: [0; 5],
            whole_answers: BTreeSet::new(),
            injected: Vec::new(),
            passed: Arc::default(),
        }
    }
}
