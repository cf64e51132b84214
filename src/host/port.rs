//! A task's way back to its conversation.

use std::sync::{Arc, Weak};
use std::task::Poll;

use super::driver::Driver;
use crate::agent::Input;

/// Hands a task's inputs to the session. Does not keep the conversation alive.
#[derive(Clone)]
pub(super) struct Port(Weak<Driver>);

impl Port {
    pub(super) fn new(driver: &Arc<Driver>) -> Self {
        Self(Arc::downgrade(driver))
    }

    /// Hands over the task's last input.
    pub(super) fn finish(&self, input: Input) {
        if let Some(driver) = self.0.upgrade() {
            driver.post(input);
        }
    }

    /// Hands over an input and waits until the run has handled it and its reader wants more.
    pub(super) async fn send(&self, input: Input) {
        self.finish(input);
        let mut handed_over = false;
        std::future::poll_fn(|_| {
            // No waker is needed: a run polls its tasks again after every input that it handles.
            if std::mem::replace(&mut handed_over, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(super) fn driver(&self) -> Weak<Driver> {
        self.0.clone()
    }
}
