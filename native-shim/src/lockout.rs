//! Slowing down whoever offers wrong proofs.

use std::collections::HashMap;

use crablet::Millis;

/// Who offered wrong proofs, by origin; a program without one counts as a client like others. Only clients that pass the
/// check of the origin get here, so that no foreign page can lock anybody out.
#[derive(Debug, Default)]
pub(crate) struct Lockout(HashMap<String, Failures>);

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Millis,
    locked_until: Millis,
    /// How often the client was locked out without a right proof between.
    lockouts: u32,
}

impl Lockout {
    /// How many milliseconds the client has to wait, if it has to.
    pub(crate) fn wait(&self, client: &str, now: Millis) -> Option<u64> {
        let failures = self.0.get(client)?;
        // Nobody is locked out for longer, unless the clock was put back meanwhile: that is no reason to wait for hours.
        Some(failures.locked_until.since(now)).filter(|wait| (1..=LONGEST_LOCKOUT).contains(wait))
    }

    /// The client offered a wrong proof.
    pub(crate) fn failed(&mut self, client: &str, now: Millis) {
        self.0.retain(|_, failures| now.since(failures.last) < MEMORY);
        if self.0.len() >= MAX_CLIENTS && !self.0.contains_key(client) {
            return;
        }
        let new = Failures { count: 0, last: now, locked_until: Millis(0), lockouts: 0 };
        let failures = self.0.entry(client.to_owned()).or_insert(new);
        failures.count += 1;
        failures.last = now;
        if failures.count >= FAILURES_BEFORE_LOCKOUT {
            let wait = FIRST_LOCKOUT.saturating_mul(1 << failures.lockouts.min(10)).min(LONGEST_LOCKOUT);
            *failures = Failures {
                count: 0,
                locked_until: Millis(now.0.saturating_add(wait)),
                lockouts: failures.lockouts.saturating_add(1),
                ..*failures
            };
        }
    }

    /// The client offered a right proof.
    pub(crate) fn passed(&mut self, client: &str) {
        self.0.remove(client);
    }
}

/// More than a client with an old token tries while its user looks.
const FAILURES_BEFORE_LOCKOUT: u32 = 10;

/// The first lock-out, in milliseconds; each further one is twice as long.
const FIRST_LOCKOUT: u64 = 30_000;
const LONGEST_LOCKOUT: u64 = 15 * 60_000;

/// How long a failure is remembered, in milliseconds: past the longest lock-out.
const MEMORY: u64 = 60 * 60_000;

/// Clients are origins that tokens name, so few.
const MAX_CLIENTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(lockout: &mut Lockout, client: &str, times: u32, now: u64) {
        (0..times).for_each(|_| lockout.failed(client, Millis(now)));
    }

    #[test]
    fn each_lockout_is_twice_as_long_up_to_a_limit() {
        let mut lockout = Lockout::default();
        let mut now = 1_000_000;
        for expected in [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000] {
            fail(&mut lockout, "a", FAILURES_BEFORE_LOCKOUT - 1, now);
            assert_eq!(lockout.wait("a", Millis(now)), None);
            fail(&mut lockout, "a", 1, now);
            assert_eq!(lockout.wait("a", Millis(now)), Some(expected));
            now += expected;
            assert_eq!(lockout.wait("a", Millis(now)), None);
        }
    }

    #[test]
    fn a_right_proof_forgives_and_others_are_not_meant() {
        let mut lockout = Lockout::default();
        fail(&mut lockout, "a", FAILURES_BEFORE_LOCKOUT, 1000);
        assert_eq!(lockout.wait("b", Millis(1000)), None);
        lockout.passed("a");
        assert_eq!(lockout.wait("a", Millis(1000)), None);
    }

    #[test]
    fn a_clock_that_is_put_back_locks_nobody_out_for_longer() {
        let mut lockout = Lockout::default();
        fail(&mut lockout, "a", FAILURES_BEFORE_LOCKOUT, 10_000_000);
        assert_eq!(lockout.wait("a", Millis(10_000_000)), Some(FIRST_LOCKOUT));
        assert_eq!(lockout.wait("a", Millis(1000)), None);
    }

    #[test]
    fn failures_are_forgotten_and_bounded() {
        let mut lockout = Lockout::default();
        (0..2 * MAX_CLIENTS).for_each(|client| lockout.failed(&client.to_string(), Millis(1000)));
        assert_eq!(lockout.0.len(), MAX_CLIENTS);
        lockout.failed("late", Millis(1000 + MEMORY));
        assert_eq!(lockout.0.len(), 1);
    }
}
