//! How often and after how long things are tried again.

use std::time::Duration;

use super::orders::Orders;

/// How often the agent of a session is tried to be made, and its conversation to be restored, before its inputs are refused.
pub(super) const AGENT_ATTEMPTS: u32 = 5;

/// Counts the attempts to make the agent of a session.
#[derive(Debug, Default)]
pub(super) struct Attempts(u32);

/// What is to be done behind an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try again.
    Again,
    /// There were [enough](AGENT_ATTEMPTS).
    NoMore,
    /// The service is being stopped: the session is left to another worker.
    Stopped,
}

impl Attempts {
    /// Says what is to be done behind an attempt that failed, and waits where that is to try again.
    pub(super) async fn failed(&mut self, orders: &Orders) -> Next {
        self.0 += 1;
        if self.0 >= AGENT_ATTEMPTS {
            return Next::NoMore;
        }
        let wait = tokio::time::sleep(agent_wait(self.0));
        tokio::pin!(wait);
        while !orders.is_draining() {
            tokio::select! {
                () = &mut wait => return Next::Again,
                () = orders.changed() => {}
            }
        }
        orders.stop();
        Next::Stopped
    }
}

/// The wait behind an attempt to make the agent, counted from 1.
fn agent_wait(attempt: u32) -> Duration {
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

    #[tokio::test(start_paused = true)]
    async fn an_agent_is_tried_to_be_made_five_times() {
        let (orders, began, mut attempts) = (Orders::default(), tokio::time::Instant::now(), Attempts::default());
        for _ in 1..5 {
            assert_eq!(attempts.failed(&orders).await, Next::Again);
        }
        assert_eq!(attempts.failed(&orders).await, Next::NoMore);
        assert_eq!(began.elapsed().as_millis(), 7_500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_is_stopped_leaves_what_it_waits_for_at_once() {
        let (orders, began, mut attempts) = (Orders::default(), tokio::time::Instant::now(), Attempts::default());
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            orders.drain();
        };
        let (next, ()) = tokio::join!(attempts.failed(&orders), stopping);
        assert_eq!((next, orders.is_stopped(), began.elapsed().as_millis()), (Next::Stopped, true, 300));
    }

    #[test]
    fn waits_grow_to_a_limit() {
        assert_eq!([1, 2, 3, 4].map(|attempt| agent_wait(attempt).as_millis()), [500, 1000, 2000, 4000]);
        assert_eq!([0, 1, 2, 4, 5, u32::MAX].map(|times| failed_wait(times).as_secs()), [2, 2, 4, 16, 30, 30]);
    }
}
