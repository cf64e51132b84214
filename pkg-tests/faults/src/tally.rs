//! What was injected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::plan::{Boundary, Kind};

/// A fault that has happened: in which script, in which of its exchanges, and where in that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Injected {
    pub(crate) seed: u64,
    pub(crate) exchange: u32,
    pub(crate) kind: Kind,
    pub(crate) place: String,
}

/// Counts the faults of scripts that kept every promise.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    survived: BTreeMap<(Boundary, Kind), usize>,
    positions: BTreeSet<(u64, u32)>,
    pub(crate) scripts: usize,
}

impl Tally {
    /// Adds the faults of a script; a position counts once.
    pub(crate) fn add(&mut self, faults: &[Injected]) {
        self.scripts += 1;
        for fault in faults {
            if self.positions.insert((fault.seed, fault.exchange)) {
                *self.survived.entry((Boundary::of(fault.seed), fault.kind)).or_default() += 1;
            }
        }
    }

    pub(crate) fn of(&self, boundary: Boundary, kind: Kind) -> usize {
        self.survived.get(&(boundary, kind)).copied().unwrap_or_default()
    }

    /// All that count, at one boundary.
    pub(crate) fn counted(&self, boundary: Boundary) -> usize {
        Kind::COUNTED.into_iter().map(|kind| self.of(boundary, kind)).sum()
    }

    /// Whether a boundary has its share of this many faults, and each kind of them its own.
    pub(crate) fn is_enough(&self, boundary: Boundary, faults: usize) -> bool {
        let mut kinds = Kind::COUNTED.into_iter().filter(|kind| boundary.excludes(*kind).is_none());
        self.counted(boundary) >= faults / Boundary::ALL.len()
            && kinds.all(|kind| self.of(boundary, kind) >= faults / (Boundary::ALL.len() * Kind::COUNTED.len()))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:10}", "")?;
        for kind in Kind::ALL {
            write!(formatter, "{kind:>11}")?;
        }
        writeln!(formatter, "{:>11}", "counted")?;
        for boundary in Boundary::ALL {
            write!(formatter, "{boundary:10}")?;
            for kind in Kind::ALL {
                match boundary.excludes(kind) {
                    Some(_) => write!(formatter, "{:>11}", "-")?,
                    None => write!(formatter, "{:>11}", self.of(boundary, kind))?,
                }
            }
            writeln!(formatter, "{:>11}", self.counted(boundary))?;
        }
        for boundary in Boundary::ALL {
            for kind in Kind::ALL {
                if let Some(reason) = boundary.excludes(kind) {
                    writeln!(formatter, "- {boundary}, {kind}: {reason}")?;
                }
            }
        }
        let all: usize = Boundary::ALL.into_iter().map(|boundary| self.counted(boundary)).sum();
        write!(formatter, "{} scripts, {all} faults survived, each at a position of its own", self.scripts)
    }
}
