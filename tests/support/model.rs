//! A model that is a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crablet::Error;
use crablet::host::{BoxStream, CancelToken, FunctionModel};
use crablet::model::{Model, ModelEvent, ModelRequest, StopReason};
use futures_util::{FutureExt, StreamExt, stream};

use super::VirtualTime;

/// Answers each call with the next answer of its script.
#[derive(Clone, Default)]
pub(crate) struct ScriptedModel {
    state: Arc<Mutex<State>>,
    time: VirtualTime,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Vec<Step>>,
    requests: Vec<Arc<ModelRequest>>,
    cancelled: Vec<CancelToken>,
}

enum Step {
    Event(Result<ModelEvent, Error>),
    Wait(u64),
    Jump(u64),
    Hang,
}

impl ScriptedModel {
    /// A model in this host's time.
    pub(crate) fn new(time: VirtualTime) -> Self {
        Self { time, ..Self::default() }
    }

    /// What an agent calls it by.
    pub(crate) fn model() -> Model {
        Model::function("script")
    }

    /// Answers with text and stops.
    pub(crate) fn text(self, text: &str) -> Self {
        let mut steps = text_block(0, text);
        steps.push(stop(StopReason::Stop));
        self.answer(steps)
    }

    /// Answers with tool calls: id, name, arguments.
    pub(crate) fn calls(self, calls: &[(&str, &str, &str)]) -> Self {
        let mut steps = Vec::new();
        for (block, (id, name, arguments)) in (0..).zip(calls) {
            steps.push(event(ModelEvent::ToolInputStart { block, id: (*id).to_owned(), name: (*name).to_owned() }));
            steps.push(event(ModelEvent::ToolInputDelta { block, json: (*arguments).to_owned() }));
            steps.push(event(ModelEvent::ToolInputEnd { block, replay: None }));
        }
        steps.push(stop(StopReason::ToolUse));
        self.answer(steps)
    }

    /// Begins to answer with text and then hangs.
    pub(crate) fn hangs_after(self, text: &str) -> Self {
        let mut steps = text_block(0, text);
        steps.pop();
        steps.push(Step::Hang);
        self.answer(steps)
    }

    /// Answers each word as an event of its own, this many milliseconds apart.
    pub(crate) fn words(self, text: &str, apart: u64) -> Self {
        let mut steps = vec![event(ModelEvent::TextStart { block: 0 })];
        for word in text.split_inclusive(' ') {
            steps.push(Step::Wait(apart));
            steps.push(event(ModelEvent::TextDelta { block: 0, text: word.to_owned() }));
        }
        steps.push(event(ModelEvent::TextEnd { block: 0, replay: None }));
        steps.push(stop(StopReason::Stop));
        self.answer(steps)
    }

    /// Answers with text, and the machine sleeps for this many milliseconds in the middle of it.
    pub(crate) fn sleeps_in(self, text: &str, milliseconds: u64) -> Self {
        let mut steps = text_block(0, text);
        steps.insert(2, Step::Jump(milliseconds));
        steps.push(stop(StopReason::Stop));
        self.answer(steps)
    }

    /// Begins to answer with text and then fails.
    pub(crate) fn fails_after(self, text: &str, error: Error) -> Self {
        let mut steps = text_block(0, text);
        steps.push(Step::Event(Err(error)));
        self.answer(steps)
    }

    /// Ends after this text, without saying that it stops.
    pub(crate) fn breaks_off_after(self, text: &str) -> Self {
        let steps = text_block(0, text);
        self.answer(steps)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Arc<ModelRequest>> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Whether the call of this number was cancelled.
    pub(crate) fn is_cancelled(&self, call: usize) -> bool {
        self.state.lock().unwrap().cancelled[call].is_cancelled()
    }

    fn answer(self, steps: Vec<Step>) -> Self {
        self.state.lock().unwrap().answers.push_back(steps);
        self
    }
}

impl FunctionModel for ScriptedModel {
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxStream<'static, Result<ModelEvent, Error>> {
        let mut state = self.state.lock().unwrap();
        state.requests.push(request);
        state.cancelled.push(cancel);
        let steps = state.answers.pop_front().expect("a model call that the script does not have");
        let time = self.time.clone();
        let events = stream::iter(steps).filter_map(move |step| {
            let time = time.clone();
            async move {
                match step {
                    Step::Event(event) => Some(event),
                    Step::Wait(milliseconds) => time.sleep(milliseconds).map(|()| None).await,
                    Step::Jump(milliseconds) => {
                        time.jump(milliseconds);
                        None
                    }
                    Step::Hang => std::future::pending().await,
                }
            }
        });
        events.boxed()
    }
}

fn text_block(block: u32, text: &str) -> Vec<Step> {
    vec![
        event(ModelEvent::TextStart { block }),
        event(ModelEvent::TextDelta { block, text: text.to_owned() }),
        event(ModelEvent::TextEnd { block, replay: None }),
    ]
}

fn stop(reason: StopReason) -> Step {
    event(ModelEvent::Stop { reason, raw: None })
}

fn event(event: ModelEvent) -> Step {
    Step::Event(Ok(event))
}
