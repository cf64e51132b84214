//! crablet as it is built, natively or for JavaScript, playing scripts.

use std::time::Duration;

#[cfg(feature = "planted-defects")]
use crablet::planted::{Defect, plant};

use crate::leaks;
use crate::native::Native;
use crate::node::Node;
use crate::place::Place;
use crate::promises;
use crate::record::Record;
use crate::tally::Injected;

/// Longer than anything in a script takes on the busiest machine.
pub(crate) const HANG: Duration = Duration::from_secs(300);

/// Which build plays.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// The crate, in this process.
    Native,
    /// The packed package, in a process that this command starts.
    Node { command: Vec<String> },
}

/// A build that is ready to play.
#[derive(Clone)]
pub(crate) enum Build {
    Native(Box<Native>),
    Node(Node),
}

/// What came of a script.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) seed: u64,
    pub(crate) injected: Vec<Injected>,
    pub(crate) broken: Vec<String>,
    pub(crate) record: Record,
}

impl Which {
    /// The build that a command plays; without one the crate.
    pub(crate) fn parse(command: &[&str]) -> Self {
        match command {
            [] => Self::Native,
            command => Self::Node { command: command.iter().map(ToString::to_string).collect() },
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Node { .. } => "node",
        }
    }

    pub(crate) async fn start(&self, place: &Place) -> Build {
        match self {
            Self::Native => Build::Native(Box::new(Native::new(place))),
            Self::Node { command } => Build::Node(Node::start(command, place).await.unwrap()),
        }
    }
}

impl Build {
    /// Plays a script to its end and judges it.
    pub(crate) async fn play(&self, place: &Place, seed: u64) -> Verdict {
        let record = match self {
            Self::Native(native) => native.play(seed).await,
            Self::Node(node) => node.play(seed).await,
        };
        let (broken, injected) = match place.world.forget(seed) {
            Some(course) => (promises::broken(&record, &course), course.injected),
            None => (vec!["the script never began".into()], Vec::new()),
        };
        Verdict { seed, injected, broken, record }
    }

    /// Plants a defect in the place of the one before.
    #[cfg(feature = "planted-defects")]
    pub(crate) async fn plant(&self, defect: Option<Defect>) {
        match self {
            Self::Native(_) => plant(defect),
            Self::Node(node) => node.plant(defect.map_or(0, |defect| defect as u8)).await,
        }
    }

    /// The memory in use, in KiB.
    pub(crate) async fn memory(&self) -> u64 {
        match self {
            Self::Native(_) => leaks::resident(),
            Self::Node(node) => node.memory().await,
        }
    }

    /// Ends it, and says what is left of its scripts after so many tenths of a second. `others` says what is left outside of it.
    pub(crate) async fn end(self, patience: u32, others: impl Fn() -> Vec<String>) -> Vec<String> {
        match self {
            Self::Native(native) => {
                let tasks = native.tasks();
                // With it go the connections that it keeps for the next request.
                drop(native);
                leaks::left_over(patience, async || [tasks(), others()].concat()).await
            }
            Self::Node(node) => {
                let left = leaks::left_over(patience, async || [node.left().await, others()].concat()).await;
                node.end().await;
                left
            }
        }
    }
}
