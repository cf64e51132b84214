//! A task's way back to its conversation.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;

use super::driver::Driver;
use crate::agent::Input;
use crate::error::Error;
use crate::model::{Answer, Assembler};

/// Hands a task's inputs to the session. Does not keep the conversation alive.
#[derive(Clone)]
pub(super) struct Port {
    driver: Weak<Driver>,
    /// Takes the events of a model call that is not one of the session.
    collector: Option<Collector>,
}

/// The answer of a model call that a hook makes.
#[derive(Clone, Default)]
pub(super) struct Collector(Arc<Mutex<(Assembler, Option<Error>)>>);

impl Collector {
    fn push(&self, input: Input) {
        let mut collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match input {
            Input::ModelEvents { events, .. } => events.iter().for_each(|event| collected.0.push(event)),
            Input::ModelEnded { outcome: Err(error), .. } => collected.1 = Some(error),
            _ => {}
        }
    }

    /// The answer, now that the call is over.
    ///
    /// # Errors
    ///
    /// What the host has to say of a call that failed.
    pub(super) fn take(&self) -> Result<Answer, Error> {
        let (assembler, error) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        error.map_or_else(|| Ok(assembler.finish()), Err)
    }
}

impl Port {
    pub(super) fn new(driver: &Arc<Driver>) -> Self {
        Self { driver: Arc::downgrade(driver), collector: None }
    }

    /// Hands over the task's last input.
    pub(super) fn finish(&self, input: Input) {
        if let Some(collector) = &self.collector {
            collector.push(input);
        } else if let Some(driver) = self.driver.upgrade() {
            driver.post(input);
        }
    }

    /// A port whose inputs do not reach the session, and what they amount to.
    pub(super) fn collecting(&self) -> (Collector, Self) {
        let collector = Collector::default();
        (collector.clone(), Self { driver: self.driver.clone(), collector: Some(collector) })
    }

    /// Hands over an input and waits until the run has handled it and its reader wants more.
    pub(super) async fn send(&self, input: Input) {
        self.finish(input);
        if self.collector.is_some() {
            return;
        }
        let mut handed_over = false;
        std::future::poll_fn(|_| {
            // No waker is needed: a run polls its tasks again after every input that it handles.
            if std::mem::replace(&mut handed_over, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(super) fn driver(&self) -> Weak<Driver> {
        self.driver.clone()
    }
}
