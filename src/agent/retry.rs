//! Whether and when a failed model call is made again.

use super::definition::Policy;
use crate::error::Error;

/// The wait in milliseconds before the next attempt, or `None` when there shall be none.
///
/// `attempt` is the number of the one that failed, from 1; `jitter` is any number. A wait the provider asks for is kept
/// as it is, and one beyond the cap ends the run instead: to come back earlier would only fail again.
pub(super) fn delay(policy: &Policy, error: &Error, attempt: u32, jitter: u64) -> Option<u64> {
    if !error.is_retryable() || attempt >= policy.max_attempts {
        return None;
    }
    if let Some(asked) = error.retry_after() {
        return Some(asked).filter(|asked| *asked <= policy.retry_cap);
    }
    let doublings = attempt.saturating_sub(1).min(MAX_DOUBLINGS);
    let full = policy.retry_base.saturating_mul(1 << doublings).min(policy.retry_cap);
    let half = full / 2;
    // Between half and all of it, so that clients that failed together do not come back together.
    Some(full - half + jitter % (half + 1))
}

/// Beyond this any base is over any sensible cap, and the shift would overflow.
const MAX_DOUBLINGS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn overloaded() -> Error {
        Error::new(ErrorKind::Overloaded, "busy")
    }

    #[test]
    fn waits_double_up_to_the_cap_with_jitter_between_half_and_all() {
        let policy = Policy { max_attempts: 100, ..Policy::default() };
        for (attempt, full) in [(1, 1_000), (2, 2_000), (3, 4_000), (7, 60_000), (99, 60_000)] {
            assert_eq!(delay(&policy, &overloaded(), attempt, 0), Some(full / 2), "{attempt}");
            assert_eq!(delay(&policy, &overloaded(), attempt, full / 2), Some(full), "{attempt}");
        }
    }

    #[test]
    fn the_providers_own_wait_is_kept_and_ends_the_run_beyond_the_cap() {
        let policy = Policy::default();
        assert_eq!(delay(&policy, &overloaded().with_retry_after(7), 1, 99), Some(7));
        assert_eq!(delay(&policy, &overloaded().with_retry_after(60_000), 1, 99), Some(60_000));
        assert_eq!(delay(&policy, &overloaded().with_retry_after(60_001), 1, 99), None);
    }

    #[test]
    fn the_last_attempt_and_errors_that_stay_are_not_repeated() {
        let policy = Policy::default();
        assert!(delay(&policy, &overloaded(), 3, 0).is_some());
        assert_eq!(delay(&policy, &overloaded(), 4, 0), None);
        assert_eq!(delay(&policy, &Error::new(ErrorKind::Auth, "no"), 1, 0), None);
    }
}
