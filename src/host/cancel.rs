//! Cancellation that takes effect at once: a token fires its listeners in the call that cancels it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::MaybeSend;
use crate::ordered_map::OrderedMap;

/// Tells a piece of work that nobody wants its result any more.
///
/// Clones share one state. Cancelling fires every listener before [`cancel`](Self::cancel) returns, which is what a
/// JavaScript `AbortController` needs, and wakes every future that waits in [`cancelled`](Self::cancelled).
#[derive(Clone, Default)]
pub struct CancelToken {
    state: Arc<Mutex<State>>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the work. The second and every later call does nothing.
    pub fn cancel(&self) {
        let listeners = {
            let mut state = self.lock();
            state.cancelled = true;
            std::mem::take(&mut state.listeners)
        };
        for listener in listeners.into_values() {
            listener();
        }
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Waits until the work is cancelled; for ever when it never is.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), listener: None }
    }

    /// Calls a function when the work is cancelled: at once when it already is, never when the guard is dropped before.
    #[must_use = "dropping the guard removes the listener"]
    pub fn on_cancel(&self, listener: impl FnOnce() + MaybeSend + 'static) -> CancelGuard {
        let mut state = self.lock();
        if state.cancelled {
            drop(state);
            listener();
            return CancelGuard { token: self.clone(), number: None };
        }
        let number = state.next_listener;
        state.next_listener += 1;
        state.listeners.insert(number, Box::new(listener));
        CancelGuard { token: self.clone(), number: Some(number) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No listener runs while the lock is held, so a poisoned state is still a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// Keeps a listener registered; dropping it removes the listener.
pub struct CancelGuard {
    token: CancelToken,
    number: Option<u64>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let listener = self.token.lock().listeners.remove(&number);
        // What the listener captured is dropped after the lock is released: it may hold guards of the same token.
        drop(listener);
    }
}

impl fmt::Debug for CancelGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CancelGuard").finish_non_exhaustive()
    }
}

/// The future of [`CancelToken::cancelled`].
#[derive(Debug)]
pub struct Cancelled {
    token: CancelToken,
    listener: Option<CancelGuard>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.token.is_cancelled() {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        // Should the token be cancelled by now, the listener runs at once and the future is polled again.
        let listener = self.token.on_cancel(move || waker.wake());
        self.listener = Some(listener);
        Poll::Pending
    }
}

#[derive(Default)]
struct State {
    cancelled: bool,
    next_listener: u64,
    listeners: OrderedMap<u64, Listener>,
}

#[cfg(not(target_arch = "wasm32"))]
type Listener = Box<dyn FnOnce() + Send>;
#[cfg(target_arch = "wasm32")]
type Listener = Box<dyn FnOnce()>;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_listener_runs_inside_the_call_that_cancels_and_only_once() {
        let token = CancelToken::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let _guard = token.on_cancel(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        token.clone().cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        token.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_dropped_guard_removes_its_listener() {
        let token = CancelToken::new();
        drop(token.on_cancel(|| panic!("removed listeners are not called")));
        token.cancel();
        assert!(token.lock().listeners.is_empty());
    }

    #[test]
    fn a_listener_added_after_the_cancellation_runs_at_once() {
        let token = CancelToken::new();
        token.cancel();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let _guard = token.on_cancel(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_waiting_future_ends_and_leaves_no_listener() {
        let token = CancelToken::new();
        let mut waiting = token.cancelled();
        assert_eq!((&mut waiting).now_or_never(), None);
        assert_eq!((&mut waiting).now_or_never(), None);
        assert_eq!(token.lock().listeners.len(), 1, "each poll replaces the listener of the one before");
        token.cancel();
        assert_eq!(waiting.now_or_never(), Some(()));
    }
}
