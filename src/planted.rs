//! Defects that the fault harness plants to show that it finds them. Only builds with the feature `planted-defects` have
//! them; in all others [`is`] is `false` when it is compiled, and nothing of them is left.

/// A defect that can be planted.
#[cfg_attr(not(feature = "planted-defects"), allow(dead_code, unreachable_pub))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Defect {
    /// An answer that broke off counts as whole, and its calls run.
    RunsTruncatedCalls = 1,
    /// The result of a call is not shown.
    DropsResults,
    /// A run ends twice.
    EndsTwice,
    /// An attempt that failed is not taken back, so that its text is shown twice.
    ShowsTextTwice,
    /// A tool that was interrupted runs again, though it must not.
    RunsToolsTwice,
    /// Frames may be missing.
    AcceptsLostFrames,
    /// A request that was sent and got no answer is sent again.
    SendsRequestsTwice,
    /// What is only added to a conversation is not stored, and counts as saved.
    SavesNothing,
    /// The connection of an answer is kept for ever.
    KeepsConnections,
    /// Calls that are stopped get no result in the history.
    LeavesCallsUnanswered,
}

#[cfg(feature = "planted-defects")]
mod planting {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Defect;

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    impl Defect {
        /// All of them.
        pub const ALL: [Self; 10] = [
            Self::RunsTruncatedCalls,
            Self::DropsResults,
            Self::EndsTwice,
            Self::ShowsTextTwice,
            Self::RunsToolsTwice,
            Self::AcceptsLostFrames,
            Self::SendsRequestsTwice,
            Self::SavesNothing,
            Self::KeepsConnections,
            Self::LeavesCallsUnanswered,
        ];
    }

    /// Plants a defect in the place of the one before; `None` plants none.
    pub fn plant(defect: Option<Defect>) {
        PLANTED.store(defect.map_or(0, |defect| defect as u8), Ordering::Relaxed);
    }

    pub(crate) fn is(defect: Defect) -> bool {
        PLANTED.load(Ordering::Relaxed) == defect as u8
    }
}

#[cfg(feature = "planted-defects")]
pub(crate) use planting::is;
#[cfg(feature = "planted-defects")]
pub use planting::plant;

#[cfg(not(feature = "planted-defects"))]
#[allow(dead_code, reason = "parts that are left out use it")]
pub(crate) const fn is(_: Defect) -> bool {
    false
}
