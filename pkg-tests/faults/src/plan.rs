//! The schedule: which fault hits which exchange of which script, all of it from the seed.

use std::collections::BTreeMap;
use std::fmt;

use crate::dice::Dice;

/// Where faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Boundary {
    /// Between the agent and the HTTP endpoint of its model.
    Model,
    /// Between the MCP client and a server over Streamable HTTP.
    McpHttp,
    /// Between the MCP client and crablet-shim's WebSocket.
    Shim,
    /// Between the session and its store.
    Store,
}

impl Boundary {
    pub(crate) const ALL: [Self; 4] = [Self::Model, Self::McpHttp, Self::Shim, Self::Store];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::McpHttp => "mcp-http",
            Self::Shim => "shim",
            Self::Store => "store",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|boundary| boundary.name() == name)
    }

    /// The boundary that a seed is about: seeds of all boundaries take turns.
    pub(crate) const fn of(seed: u64) -> Self {
        Self::ALL[(seed % 4) as usize]
    }

    /// Why a kind of fault does not exist here; `None` when it does.
    pub(crate) const fn excludes(self, kind: Kind) -> Option<&'static str> {
        match (self, kind) {
            (Self::Store, Kind::Reorder) => {
                Some("a session waits for each write before it makes the next, so there are never two to exchange")
            }
            (Self::Store, Kind::Throttle) => Some("a write is one call, with no bytes to hold back"),
            _ => None,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// The connection breaks, or the write fails.
    Cut,
    /// Something comes twice.
    Duplicate,
    /// Two independent things change places.
    Reorder,
    /// Bytes, JSON or numbers are damaged.
    Corrupt,
    /// Nothing more comes, and nothing ends.
    Stall,
    /// Something comes late. Not counted.
    Delay,
    /// Everything comes in drops. Not counted.
    Throttle,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Cut, Self::Duplicate, Self::Reorder, Self::Corrupt, Self::Stall, Self::Delay, Self::Throttle];

    /// Those that count: delays and throttles break no promise of anybody.
    pub(crate) const COUNTED: [Self; 5] = [Self::Cut, Self::Duplicate, Self::Reorder, Self::Corrupt, Self::Stall];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Duplicate => "duplicate",
            Self::Reorder => "reorder",
            Self::Corrupt => "corrupt",
            Self::Stall => "stall",
            Self::Delay => "delay",
            Self::Throttle => "throttle",
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// One fault, and the chance that decides where in the exchange it strikes and how.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
}

impl Fault {
    pub(crate) fn dice(&self) -> Dice {
        Dice::new(self.seed, 1)
    }
}

/// The faults of one script: at most one for each exchange at its boundary, an exchange being a request with its answer,
/// a frame, or a write.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) boundary: Boundary,
    pub(crate) faults: BTreeMap<u32, Fault>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let boundary = Boundary::of(seed);
        let mut dice = Dice::new(seed, 2);
        let mut faults = BTreeMap::new();
        // Kinds take turns across seeds, so that none falls behind.
        let mut turn = (seed / 4) as usize;
        let mut exchange = 0;
        let (gap, limit) = spacing(boundary);
        while faults.len() < limit {
            exchange += dice.roll(gap) as u32;
            let kind =
                if dice.one_in(8) { [Kind::Delay, Kind::Throttle][dice.roll(2)] } else { next(boundary, &mut turn) };
            if boundary.excludes(kind).is_none() {
                faults.insert(exchange, Fault { kind, seed: dice.next() });
            }
            exchange += 1;
        }
        Self { boundary, faults }
    }
}

/// How many exchanges may go well before the next fault, and how many faults a script has at most.
const fn spacing(boundary: Boundary) -> (usize, usize) {
    match boundary {
        Boundary::Model => (2, 7),
        Boundary::McpHttp => (3, 7),
        Boundary::Shim => (6, 9),
        Boundary::Store => (2, 6),
    }
}

/// The kind whose turn it is. Reordering gets more turns, since often there is nothing to exchange.
fn next(boundary: Boundary, turn: &mut usize) -> Kind {
    const TURNS: [Kind; 7] =
        [Kind::Cut, Kind::Reorder, Kind::Duplicate, Kind::Reorder, Kind::Corrupt, Kind::Reorder, Kind::Stall];
    loop {
        *turn += 1;
        let kind = TURNS[*turn % TURNS.len()];
        if boundary.excludes(kind).is_none() {
            return kind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
        let text = |seed| format!("{:?}", Plan::new(seed));
        assert_eq!(text(17), text(17));
        assert_ne!(text(17), text(21));
    }

    #[test]
    fn every_kind_that_exists_at_a_boundary_is_planned_there_and_no_other() {
        for boundary in Boundary::ALL {
            let plans = (0..4_000).map(Plan::new).filter(|plan| plan.boundary == boundary);
            let mut planned = BTreeMap::<Kind, u32>::new();
            for fault in plans.flat_map(|plan| plan.faults.into_values()) {
                *planned.entry(fault.kind).or_default() += 1;
            }
            for kind in Kind::ALL {
                let times = planned.get(&kind).copied().unwrap_or_default();
                assert_eq!(
                    times == 0,
                    boundary.excludes(kind).is_some(),
                    "{boundary} {kind} was planned {times} times"
                );
                assert!(times == 0 || times > 100, "{boundary} {kind} was planned only {times} times");
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        assert!(Boundary::ALL.into_iter().all(|boundary| Boundary::parse(boundary.name()) == Some(boundary)));
    }
}
