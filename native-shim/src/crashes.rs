//! Holding back the start of servers that crash as soon as they start.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The servers that crashed at their start, one after another.
#[derive(Debug, Default)]
pub(crate) struct Crashes(HashMap<String, Streak>);

#[derive(Debug)]
struct Streak {
    count: u32,
    last: Instant,
    /// How the last process ended, as a sentence.
    ending: String,
}

impl Crashes {
    /// A process of the server ended by itself after so long. A failure right after the start counts, anything else forgives.
    pub(crate) fn ended(&mut self, server: &str, has_failed: bool, age: Duration, ending: String) {
        if !has_failed || age > START {
            self.0.remove(server);
            return;
        }
        let count = self.0.get(server).map_or(0, |streak| streak.count).saturating_add(1);
        self.0.insert(server.to_owned(), Streak { count, last: Instant::now(), ending });
    }

    /// Why no further process of the server is started now, as a sentence for the client.
    pub(crate) fn refusal(&self, server: &str) -> Option<String> {
        let Streak { count, last, ending } = self.0.get(server)?;
        let doubled = count.checked_sub(CRASHES_BEFORE_PAUSE)?.min(10);
        let pause = FIRST_PAUSE.saturating_mul(1 << doubled).min(LONGEST_PAUSE);
        let left = pause.checked_sub(last.elapsed()).filter(|left| !left.is_zero())?;
        let seconds = left.as_secs() + 1;
        Some(format!(
            "the server {server:?} crashed {count} times as it started, and is tried again in {seconds} s: {ending}"
        ))
    }
}

/// A server that lives longer has started.
const START: Duration = Duration::from_secs(5);

/// A client that connects again at once makes up for a server that crashes now and then.
const CRASHES_BEFORE_PAUSE: u32 = 3;

/// The first pause; each further crash doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn a_server_that_crashes_again_and_again_has_a_growing_pause() {
        let mut crashes = Crashes::default();
        let crash = |crashes: &mut Crashes| crashes.ended("a", true, SOON, "it exited with code 1".into());
        crash(&mut crashes);
        crash(&mut crashes);
        assert_eq!(crashes.refusal("a"), None);
        for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
            crash(&mut crashes);
            let told = crashes.refusal("a").unwrap();
            assert!(told.contains("it exited with code 1"), "{told}");
            assert_eq!(crashes.refusal("b"), None);
            tokio::time::advance(Duration::from_secs(pause) - SOON).await;
            assert!(crashes.refusal("a").is_some(), "{pause}");
            tokio::time::advance(SOON).await;
            assert_eq!(crashes.refusal("a"), None, "{pause}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_is_forgiven() {
        let mut crashes = Crashes::default();
        for (has_failed, age) in [(true, START + SOON), (false, SOON)] {
            (0..5).for_each(|_| crashes.ended("a", true, SOON, String::new()));
            crashes.ended("a", has_failed, age, String::new());
            assert_eq!(crashes.refusal("a"), None);
        }
    }
}
