//! A conversation in the long-lived form: messages go in, answers come out.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::mpsc;
use futures_util::StreamExt;

use super::{Answer, Conversation, Host, Prompt, RunControl};
use crate::error::{Error, ErrorKind};

/// The most messages that wait for their turn, and as many answers that nobody has taken.
const MAX_WAITING: usize = 64;

/// Works on messages one after the other, in the background of its host. What happens in between is shown by
/// [`Runner::on_event`](super::Runner::on_event). Dropping it aborts what is worked on.
pub struct AgentLoop<H: Host> {
    conversation: Arc<Conversation<H>>,
    prompts: mpsc::Sender<Prompt>,
    answers: mpsc::Receiver<Result<Answer, Error>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The controls of the run that is at work.
    control: Mutex<Option<RunControl>>,
    is_stopped: AtomicBool,
}

impl<H: Host> AgentLoop<H> {
    /// Begins to work. A run that was saved unfinished is gone on with, and its answer is the first.
    pub fn new(host: &H, conversation: Conversation<H>) -> Self {
        let (prompts, waiting) = mpsc::channel(MAX_WAITING);
        let (give, answers) = mpsc::channel(MAX_WAITING);
        let conversation = Arc::new(conversation);
        let shared = Arc::new(Shared::default());
        host.spawn(work(conversation.clone(), shared.clone(), waiting, give));
        Self { conversation, prompts, answers, shared }
    }

    /// Sends a message. Does not wait: it is worked on when those before it are answered.
    ///
    /// # Errors
    ///
    /// `limit` when 64 messages wait already.
    pub fn send(&mut self, message: impl Into<Prompt>) -> Result<(), Error> {
        self.prompts.try_send(message.into()).map_err(|_| {
            Error::new(ErrorKind::Limit, format!("{MAX_WAITING} messages wait already: take some answers"))
        })
    }

    /// Adds to what is being worked on: the message is answered before that run ends, and its answer takes the place of the
    /// one before. Without a run at work, as [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// `limit` when 64 messages wait already.
    pub fn follow_up(&mut self, message: impl Into<Prompt>) -> Result<(), Error> {
        let message = message.into();
        let control = self.shared.control();
        match control.map(|control| control.follow_up(message.clone())) {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) if error.kind() != ErrorKind::InvalidInput => Err(error),
            // The run is just ending, or there is none.
            _ => self.send(message),
        }
    }

    /// Takes the next answer, waiting for it. What failed is an answer too, and the message after it is worked on.
    pub async fn next(&mut self) -> Option<Result<Answer, Error>> {
        self.answers.next().await
    }

    /// The controls of the run that is at work, to steer it or to decide about its approvals.
    pub fn control(&self) -> Option<RunControl> {
        self.shared.control()
    }

    /// The conversation, to save it and to read its history.
    pub fn conversation(&self) -> &Conversation<H> {
        &self.conversation
    }

    /// Stops: finishes what is worked on, drops the messages that wait, and gives the answers that nobody took.
    pub async fn stop(mut self) -> Vec<Result<Answer, Error>> {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.prompts.close_channel();
        let mut rest = Vec::new();
        while let Some(answer) = self.answers.next().await {
            rest.push(answer);
        }
        rest
    }
}

async fn work<H: Host>(
    conversation: Arc<Conversation<H>>,
    shared: Arc<Shared>,
    mut waiting: mpsc::Receiver<Prompt>,
    mut give: mpsc::Sender<Result<Answer, Error>>,
) {
    let mut run = conversation.resume();
    loop {
        if run.is_none() {
            let Some(prompt) = waiting.next().await.filter(|_| !shared.is_stopped()) else { return };
            match conversation.send(prompt) {
                Ok(begun) => run = Some(begun),
                Err(error) => {
                    if !hand_over(&mut give, Err(error)).await {
                        return;
                    }
                }
            }
        }
        if let Some(run) = run.take() {
            shared.set_control(Some(run.control()));
            let answer = run.answer().await;
            shared.set_control(None);
            if !hand_over(&mut give, answer).await {
                return;
            }
        }
    }
}

/// Gives an answer, when there is room for it; `false` when nobody takes answers any more.
async fn hand_over(give: &mut mpsc::Sender<Result<Answer, Error>>, answer: Result<Answer, Error>) -> bool {
    let is_ready = std::future::poll_fn(|context| give.poll_ready(context)).await;
    is_ready.is_ok() && give.start_send(answer).is_ok()
}

impl Shared {
    fn control(&self) -> Option<RunControl> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_control(&self, control: Option<RunControl>) {
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control;
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

impl<H: Host> Drop for AgentLoop<H> {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(control) = self.shared.control() {
            control.abort(Some("the loop was dropped"));
        }
    }
}

impl<H: Host> fmt::Debug for AgentLoop<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentLoop").finish_non_exhaustive()
    }
}
