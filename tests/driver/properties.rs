//! Whatever happens in whatever order: a run ends exactly once, leaves nothing behind, and the next prompt works.

use crablet::agent::{Approval, Event, EventKind, Save, Status};
use crablet::host::RunControl;
use crablet::{Error, ErrorKind};
use proptest::prelude::*;
use serde_json::Value;

use super::support::{ScriptedHost, ScriptedModel};
use super::{definition, runner};

/// One answer of the model.
#[derive(Clone, Debug)]
enum Answer {
    Text,
    Words,
    Calls(Vec<&'static str>),
    Overloaded,
    BreaksOff,
    Hangs,
}

/// What the reader does once it has read this many batches.
#[derive(Clone, Copy, Debug)]
enum Act {
    Abort,
    Drop,
    DetachAndResume,
    Steer,
    FollowUp,
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let tool = prop::sample::select(vec!["quick", "slow", "fails", "hangs", "guarded", "unknown"]);
    let answer = prop_oneof![
        Just(Answer::Text),
        Just(Answer::Words),
        prop::collection::vec(tool, 1..4).prop_map(Answer::Calls),
        Just(Answer::Overloaded),
        Just(Answer::BreaksOff),
        Just(Answer::Hangs),
    ];
    prop::collection::vec(answer, 0..5)
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop::sample::select(vec![Act::Abort, Act::Drop, Act::DetachAndResume, Act::Steer, Act::FollowUp]);
    prop::collection::vec((0..12_usize, act), 0..4)
}

fn script(mut model: ScriptedModel, answers: &[Answer]) -> ScriptedModel {
    for (number, answer) in answers.iter().enumerate() {
        model = match answer {
            Answer::Text => model.text("text"),
            Answer::Words => model.words("one two three", 10),
            Answer::Calls(tools) => {
                let ids: Vec<_> = (0..tools.len()).map(|call| format!("call-{number}-{call}")).collect();
                let calls: Vec<_> = ids.iter().zip(tools).map(|(id, tool)| (id.as_str(), *tool, "{}")).collect();
                model.calls(&calls)
            }
            Answer::Overloaded => model.fails_after("text", Error::new(ErrorKind::Overloaded, "no capacity")),
            Answer::BreaksOff => model.breaks_off_after("text"),
            Answer::Hangs => model.hangs_after("text"),
        };
    }
    // Enough for every step and attempt that can follow.
    (0..200).fold(model, |model, _| model.text("the end"))
}

/// Approves what is asked for; gives the number of ends.
fn approve_all(control: &RunControl, events: Vec<Event>) -> usize {
    let mut ends = 0;
    for event in events {
        assert_eq!(ends, 0, "an event after the end: {event:?}");
        match event.kind {
            EventKind::RunEnd(_) => ends += 1,
            EventKind::ApprovalRequest { call_id, .. } => control.approve(call_id, Approval::Allow).unwrap(),
            _ => {}
        }
    }
    ends
}

proptest! {
    #[test]
    fn a_run_ends_exactly_once_and_leaves_nothing_behind(answers in answers(), acts in acts(), stored: bool) {
        let host = ScriptedHost::new();
        let model = script(host.model(), &answers);
        let mut hangs = definition("hangs");
        hangs.timeout = Some(1_000);
        let mut guarded = definition("guarded");
        guarded.needs_approval = true;
        let pausing = host.clone();
        let mut runner = runner(&host, &model)
            .tool(definition("quick"), async |_: Value, _| "ok")
            .tool(definition("slow"), move |_: Value, _| {
                let host = pausing.clone();
                async move {
                    host.pause(100).await;
                    "ok"
                }
            })
            .tool(definition("fails"), async |_: Value, _| Err::<String, _>("no"))
            .tool(hangs, async |_: Value, _| std::future::pending::<String>().await)
            .tool(guarded, async |_: Value, _| "ok");
        if stored {
            let saving = host.clone();
            runner = runner.journal(move |_: Save| {
                let host = saving.clone();
                async move {
                    host.pause(3).await;
                    Ok(())
                }
            });
        }
        let conversation = runner.conversation().unwrap();
        let mut run = Some(conversation.send("go").unwrap());
        let mut ends = 0;
        let mut batches = 0;
        host.block_on(async {
            while let Some(reading) = &mut run {
                let Some(events) = reading.next().await else { break };
                let control = reading.control();
                assert_eq!(ends, 0, "events after the end: {events:?}");
                ends += approve_all(&control, events);
                for (_, act) in acts.iter().filter(|(at, _)| *at == batches) {
                    match act {
                        Act::Abort => control.abort(None),
                        Act::Drop => run = None,
                        Act::DetachAndResume => {
                            if let Some(run) = run.take() {
                                run.detach();
                            }
                            run = conversation.resume();
                        }
                        // Refused when the run is over, which changes nothing.
                        Act::Steer => drop(control.steer("psst")),
                        Act::FollowUp => drop(control.follow_up("and then")),
                    }
                }
                batches += 1;
            }
        });
        let was_read_to_its_end = run.is_some();
        drop(run);
        prop_assert!(!was_read_to_its_end || ends == 1);
        prop_assert_eq!(conversation.status(), Status::Idle);
        host.block_on(host.pause(10));
        prop_assert_eq!(host.sleepers(), 0);
        let mut next = conversation.send("next").unwrap();
        let mut ends = 0;
        host.block_on(async {
            while let Some(events) = next.next().await {
                ends += approve_all(&next.control(), events);
            }
        });
        prop_assert_eq!(ends, 1);
    }
}
