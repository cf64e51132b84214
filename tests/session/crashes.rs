//! Whatever comes in whatever order, and the process dies in between: what may run once is handed out once in all lives
//! together, and what is restored from what was saved takes whatever comes next.

use std::collections::HashMap;
use std::sync::Arc;

use crablet::agent::{Agent, Effect, Input, ModelCallId, Save, Session, Status};
use crablet::model::StopReason;
use proptest::prelude::*;

use crate::harness::{Harness, call_block, innermost, stop, text};
use crate::interleaving::{agents, check_history, inputs};

/// What outlives the process.
#[derive(Default)]
struct World {
    stored: Option<Save>,
    /// Asked for and not saved yet.
    waiting: Vec<(u64, Save)>,
    /// What was asked for up to this number and never will be saved.
    lost: u64,
    handed_out: HashMap<String, u32>,
    /// The latest model call.
    call: Option<ModelCallId>,
}

impl World {
    /// Takes note of what was asked for.
    fn observe(&mut self, host: &mut Harness) {
        for effect in std::mem::take(&mut host.effects) {
            match innermost(effect) {
                Effect::Checkpoint { seq, save } => self.waiting.push((seq, save)),
                Effect::CallModel { call, .. } => self.call = Some(call),
                Effect::CallTool { call_id, tool, .. } if !tool.repeatable && !tool.client_side => {
                    *self.handed_out.entry(call_id.to_string()).or_default() += 1;
                }
                _ => {}
            }
        }
    }

    /// A checkpoint is safe before anybody hears of it, and so are those before it.
    fn save_up_to(&mut self, saved: u64) {
        while self.waiting.first().is_some_and(|(seq, _)| *seq <= saved) {
            let (_, save) = self.waiting.remove(0);
            self.stored = Some(match self.stored.take() {
                Some(stored) => stored.then(save),
                None => save,
            });
        }
    }

    /// A save failed, so that nothing that was added after it can be saved either.
    fn lose(&mut self) {
        self.lost = self.waiting.drain(..).map(|(seq, _)| seq).fold(self.lost, u64::max);
    }

    /// Saves all that was asked for, and says so.
    fn save(&mut self, host: &mut Harness) {
        while let Some(seq) = self.waiting.last().map(|(seq, _)| *seq) {
            self.save_up_to(seq);
            let _late = host.try_give(Input::CheckpointSaved { seq });
            self.observe(host);
        }
    }

    /// The model answers with calls.
    fn answer(&mut self, host: &mut Harness) {
        let Some(call) = self.call.take() else { return };
        let calls = [call_block(0, "c0", "plain", "{}"), call_block(1, "c1", "alone", "{}"), stop(StopReason::ToolUse)];
        let _late = host.try_give(Input::ModelEvents { call, events: calls.concat() });
        let _late = host.try_give(Input::ModelEnded { call, outcome: Ok(()) });
        self.observe(host);
    }

    /// What another process makes of what was saved.
    fn restart(&mut self, agent: Agent, host: &Harness) -> Harness {
        self.waiting.clear();
        self.lost = 0;
        let session = match &self.stored {
            Some(stored) => Session::restore_stored(stored.text(), Arc::new(agent), host.now).unwrap(),
            None => Session::new(Arc::new(agent), 42),
        };
        Harness::of(session, host.now)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_inputs_and_crashes_runs_nothing_twice(
        agent in agents(),
        inputs in prop::collection::vec((inputs(), 0..2_000u64, 0..12u32), 0..120),
    ) {
        let agent = Agent { has_store: true, ..agent };
        let mut world = World::default();
        let mut host = Harness::new(agent.clone());
        for (input, wait, fate) in inputs {
            host.now = host.now.after(wait);
            if let Input::CheckpointSaved { seq } = &input {
                // No host says that it saved what it lost.
                if *seq <= world.lost {
                    continue;
                }
                world.save_up_to(*seq);
            }
            let failed = matches!(input, Input::CheckpointFailed { .. });
            let accepted = host.try_give(input).is_ok();
            if failed && accepted {
                world.lose();
            }
            world.observe(&mut host);
            match fate {
                0 => {
                    host = world.restart(agent.clone(), &host);
                    world.observe(&mut host);
                }
                1..=6 => world.save(&mut host),
                7..=9 => world.answer(&mut host),
                _ => {}
            }
        }
        for (call_id, times) in &world.handed_out {
            prop_assert!(*times <= 1, "{} was handed out {} times", call_id, times);
        }
        host.give(Input::Abort { reason: None });
        prop_assert_eq!(host.status(), Status::Idle);
        prop_assert!(host.timers.is_empty());
        check_history(&host)?;
        host.give(Input::Prompt(text("and now?")));
        prop_assert_eq!(host.status(), Status::Running);
    }
}
