//! Ids and jitter without randomness: both are made from the session's seed and a counter.

use crate::model::{CallId, MessageId};

use super::event::RunId;

/// Makes the ids of one session. Equal seeds and counters make equal ids, so a restored session goes on as it would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) seed: u64,
    pub(super) next: u64,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, next: 1 }
    }

    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    pub(super) fn message(&mut self) -> MessageId {
        MessageId::new(self.text("msg"))
    }

    pub(super) fn call(&mut self) -> CallId {
        CallId::new(self.text("call"))
    }

    pub(super) fn run(&mut self) -> RunId {
        RunId(self.text("run").into())
    }

    /// A seed for the ids of another session.
    pub(super) fn fresh_seed(&mut self) -> u64 {
        let number = self.number();
        mix(!self.seed, number)
    }

    /// A number that looks random and is the same for the same session and counter.
    pub(super) fn jitter(&self, counter: u64) -> u64 {
        mix(self.seed, counter)
    }

    fn text(&mut self, prefix: &str) -> String {
        let number = self.number();
        format!("{prefix}_{:016x}", mix(self.seed, number))
    }
}

/// One step of the SplitMix64 generator. For one seed it is a bijection of the counter, so that no id comes twice.
pub(super) fn mix(seed: u64, counter: u64) -> u64 {
    let mut mixed = seed.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_accepted_by_every_provider_and_follow_from_the_seed() {
        let mut ids = Ids::new(7);
        let made: Vec<CallId> = (0..1000).map(|_| ids.call()).collect();
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
        for id in &made {
            assert!(id.as_str().len() <= 64);
            assert!(id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{id}");
        }
        assert_eq!(Ids::new(7).call(), made[0]);
        assert_ne!(Ids::new(8).call(), made[0]);
    }
}
