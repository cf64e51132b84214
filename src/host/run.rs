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
    sleep: Option<Sleep>,
    slept_until: Option<Millis>,
    over: bool,
}

/// A sleep at work.
struct Sleep {
    /// When it ends, which may be before the next timer: timers that move away do not cost a new sleep.
    until: Millis,
    /// How long it was to last, which is the most that may be left of it when a clock was set forward meanwhile.
    length: u64,
    /// The timer that it was last held against.
    deadline: Millis,
    future: BoxFuture<'static, ()>,
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
        let mut sleep = match self.sleep.take() {
            Some(sleep) if sleep.ends_before(deadline) => Sleep { deadline: deadline.at, ..sleep },
            _ => Sleep {
                until: deadline.at,
                length: deadline.delay,
                deadline: deadline.at,
                future: Box::pin(self.host.sleep(deadline.delay)),
            },
        };
        let slept = sleep.future.as_mut().poll(context);
        if slept.is_ready() {
            self.slept_until = Some(sleep.until);
        } else {
            self.sleep = Some(sleep);
        }
        slept
    }
}

impl Sleep {
    /// Whether it is over when this timer is due, also when the clock was set forward and the sleep knows nothing of it.
    fn ends_before(&self, deadline: Deadline) -> bool {
        self.until <= deadline.at && (self.deadline == deadline.at || self.length <= deadline.delay)
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
