//! How often the scripts met what they are meant to meet.

use std::collections::BTreeMap;

use crablet::agent::EventKind;

use crate::script::Script;
use crate::world::{Aftermath, KILL_POINTS, KillPoint};

/// How often each feature and each kill point was met.
#[derive(Default)]
pub(crate) struct Counts {
    features: BTreeMap<&'static str, u32>,
    kill_points: BTreeMap<KillPoint, u32>,
}

impl Counts {
    pub(crate) fn add(&mut self, script: &Script, crashed: &Aftermath) {
        let calls = |name: &str| script.steps.iter().any(|step| step.calls.contains(&name));
        let met = [
            ("parallel", script.steps.iter().any(|step| step.calls.len() > 1)),
            ("sequential", calls("alone")),
            ("approvals", calls("guarded")),
            ("client-side", calls("client")),
            ("sub-agent", calls("helper")),
            ("tools of sub-agents", crashed.performed.keys().any(|name| name.contains(" of task "))),
            ("validators", calls("checked")),
            ("repeatable", calls("often")),
            ("timers", calls("hanging")),
            ("hooks of tools", script.hooks.before_tool_call || script.hooks.after_tool_call),
            ("hooks of steps", script.hooks.prepare_step || script.hooks.prepare_context),
            ("retry", script.steps.iter().any(|step| step.failures > 0)),
            ("compaction", crashed.events.iter().any(|event| matches!(event.kind, EventKind::CompactionEnd { .. }))),
            ("steering", script.steps.iter().any(|step| step.steered)),
            ("objects", crashed.output().is_some()),
            (
                "objects asked for again",
                crashed.transcript.iter().any(|line| line.contains("Give the whole object again")),
            ),
            ("validators of objects", script.has_validator && crashed.output().is_some()),
            (
                "other models",
                crashed.events.iter().any(|event| matches!(event.kind, EventKind::StepRetry { model: Some(_), .. })),
            ),
            ("follow-ups", script.steps.iter().any(|step| step.followed_up)),
            ("interrupted tools", !crashed.interrupted.is_empty()),
        ];
        for (feature, is_met) in met {
            *self.features.entry(feature).or_default() += u32::from(is_met);
        }
        for (point, times) in &crashed.killed {
            *self.kill_points.entry(*point).or_default() += times;
        }
    }

    pub(crate) fn demand(&self, least: u32) {
        for (feature, times) in &self.features {
            assert!(*times >= least, "{feature} was met only {times} times");
        }
        for point in KILL_POINTS {
            assert!(self.kill_points.get(&point).is_some_and(|times| *times >= least), "{point:?} was met too rarely");
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (feature, times) in &self.features {
            writeln!(formatter, "  {feature}: {times} scripts")?;
        }
        for (point, times) in &self.kill_points {
            writeln!(formatter, "  killed at {point:?}: {times} times")?;
        }
        Ok(())
    }
}
