use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::super::{BoxFuture, Host};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// The timers of one machine, by name. A timer that was cleared or set anew is stopped at once.
pub(super) struct Timers<H, Name> {
    host: H,
    running: OrderedMap<Name, AbortHandle>,
    sleeping: FuturesUnordered<Abortable<BoxFuture<'static, Name>>>,
}

impl<H: Host, Name: Copy + Ord + Send + 'static> Timers<H, Name> {
    pub(super) fn new(host: H) -> Self {
        Self { host, running: OrderedMap::new(), sleeping: FuturesUnordered::new() }
    }

    pub(super) fn set(&mut self, name: Name, at: Millis) {
        let sleep = self.host.sleep(at.since(self.host.now()));
        let sleeping: BoxFuture<'static, Name> = Box::pin(async move {
            sleep.await;
            name
        });
        let (sleeping, handle) = abortable(sleeping);
        self.sleeping.push(sleeping);
        if let Some(earlier) = self.running.insert(name, handle) {
            earlier.abort();
        }
    }

    pub(super) fn clear(&mut self, name: Name) {
        if let Some(handle) = self.running.remove(&name) {
            handle.abort();
        }
    }

    /// The name of a timer that is due.
    pub(super) fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Name> {
        while let Poll::Ready(Some(ended)) = self.sleeping.poll_next_unpin(context) {
            if let Ok(name) = ended {
                self.running.remove(&name);
                return Poll::Ready(name);
            }
        }
        Poll::Pending
    }
}
