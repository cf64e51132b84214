//! One prompt being worked on.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::deadlines::Deadline;
use super::driver::Driver;
use super::runner::Parts;
use super::{BoxFuture, Host, RunControl, effects};
use crate::agent::{EndReason, Event, EventKind, Input};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::Usage;
use crate::time::Millis;

/// One prompt being worked on, driven by whoever reads it.
///
/// Reading with [`next`](Self::next) is what makes the run go on: it starts what the conversation asks for, waits for it,
/// and gives back the events in batches. Nothing runs in the background, so a reader that stops reading pauses the
/// network too. Dropping the run aborts it: requests are closed, tools are told and dropped, and the conversation is ready
/// for the next prompt.
pub struct Run<H: Host> {
    host: H,
    parts: Arc<Parts<H>>,
    driver: Arc<Driver>,
    number: u64,
    /// When the sleep ends, which may be before the next timer: timers that move away do not cost a new sleep.
    sleep: Option<(Millis, BoxFuture<'static, ()>)>,
    slept_until: Option<Millis>,
    over: bool,
}

/// The outcome of a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text of the last assistant message.
    pub text: String,
    /// Why the run ended.
    pub reason: EndReason,
    /// Tokens of the run.
    pub usage: Usage,
    /// The object that the agent's [output](crate::agent::Agent::output) asks for. Read it into any type that serde reads:
    /// `answer.output.unwrap().read::<Weather>()`.
    pub output: Option<RawJson>,
}

impl<H: Host> Run<H> {
    pub(super) fn new(host: H, parts: Arc<Parts<H>>, driver: Arc<Driver>, number: u64) -> Self {
        Self { host, parts, driver, number, sleep: None, slept_until: None, over: false }
    }

    /// The events of the next thing that happens, such as a chunk from the network; `None` after the end of the run.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        std::future::poll_fn(|context| self.poll_events(context)).await
    }

    /// Reads the run to its end.
    ///
    /// # Errors
    ///
    /// What ended the run, when that was an error; `aborted` when it was stopped.
    pub async fn answer(mut self) -> Result<Answer, Error> {
        let mut end = None;
        while let Some(events) = self.next().await {
            end = events.into_iter().find_map(|event| match event.kind {
                EventKind::RunEnd(end) => Some(end),
                _ => None,
            });
        }
        let end = end.ok_or_else(|| Error::new(ErrorKind::Internal, "the run ended without an end event"))?;
        match end.error {
            Some(error) => Err(error),
            None => Ok(Answer { text: end.text, reason: end.reason, usage: end.usage, output: end.output }),
        }
    }

    /// Controls of this run, to keep beside it.
    pub fn control(&self) -> RunControl {
        RunControl::new(self.driver.clone(), self.number)
    }

    /// Stops reading without stopping the run: what is at work pauses, and
    /// [`Conversation::resume`](super::Conversation::resume) goes on with it.
    pub fn detach(mut self) {
        self.over = true;
        self.driver.detach();
    }

    /// [`next`](Self::next) for callers that poll by hand.
    pub fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<Event>>> {
        if self.over {
            return Poll::Ready(None);
        }
        loop {
            self.driver.poll_tasks(context);
            let progress = self.driver.advance(context.waker(), self.slept_until.take());
            let started = !progress.effects.is_empty();
            for effect in progress.effects {
                effects::start(&self.host, &self.parts, &self.driver, effect);
            }
            if !progress.events.is_empty() {
                self.show(&progress.events);
                return Poll::Ready(Some(progress.events));
            }
            if started || progress.handled {
                continue;
            }
            if progress.over {
                self.over = true;
                self.sleep = None;
                self.driver.detach();
                return Poll::Ready(None);
            }
            if self.poll_sleep(progress.deadline, context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn show(&self, events: &[Event]) {
        if let Some(observer) = &self.parts.observer {
            for event in events {
                // It may not throw into the run.
                let _panic = catch_unwind(AssertUnwindSafe(|| observer.see(event)));
            }
        }
    }

    /// Ready when a timer may be due.
    fn poll_sleep(&mut self, deadline: Option<Deadline>, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.sleep = None;
            return Poll::Pending;
        };
        let (until, mut sleep) = match self.sleep.take() {
            Some(sleeping) if sleeping.0 <= deadline.at => sleeping,
            _ => {
                let sleep: BoxFuture<'static, ()> = Box::pin(self.host.sleep(deadline.delay));
                (deadline.at, sleep)
            }
        };
        let slept = sleep.as_mut().poll(context);
        if slept.is_ready() {
            self.slept_until = Some(until);
        } else {
            self.sleep = Some((until, sleep));
        }
        slept
    }
}

/// Nothing in a run is pinned but the futures that are boxed.
impl<H: Host> Unpin for Run<H> {}

/// The batches of [`Run::next`].
impl<H: Host> Stream for Run<H> {
    type Item = Vec<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_events(context)
    }
}

impl<H: Host> Drop for Run<H> {
    fn drop(&mut self) {
        if !self.over {
            let _idle = self.driver.input(Input::Abort { reason: Some("the run was dropped".to_owned()) });
            for effect in self.driver.take_leftovers() {
                effects::start(&self.host, &self.parts, &self.driver, effect);
            }
            self.driver.detach();
        }
    }
}

impl<H: Host> fmt::Debug for Run<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Run").field("over", &self.over).finish_non_exhaustive()
    }
}
