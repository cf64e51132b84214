//! How often and after how long things are tried again.

use std::time::Duration;

/// How often the agent of a session is tried to be made, and its conversation to be restored, before its inputs are refused.
pub(super) const AGENT_ATTEMPTS: u32 = 5;

/// The wait behind an attempt to make the agent, counted from 1.
pub(super) fn agent_wait(attempt: u32) -> Duration {
    doubled(Duration::from_millis(500), attempt)
}

/// When a session is tried again whose work failed, by how often the input was delivered. It is tried for as long as it takes:
/// an input that was stored is worked on once the server is back.
pub(super) fn failed_wait(deliveries: u32) -> Duration {
    doubled(Duration::from_secs(2), deliveries).min(MAX_FAILED_WAIT)
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1)))
}

const MAX_FAILED_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit() {
        assert_eq!([1, 2, 3, 4].map(|attempt| agent_wait(attempt).as_millis()), [500, 1000, 2000, 4000]);
        assert_eq!([0, 1, 2, 4, 5, u32::MAX].map(|times| failed_wait(times).as_secs()), [2, 2, 4, 16, 30, 30]);
    }
}
