//! Tools: run in parallel, failing in every way, reporting progress.

use std::sync::{Arc, Mutex};

use crablet::agent::{Approval, HookQuestion, HookReply, Hooks, ToolOutput};
use crablet::host::{ApprovalRequest, BoxFuture, CancelToken, HookContext, Tool, ToolContext};
use crablet::json::RawJson;
use serde::Deserialize;
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner, types};

#[derive(Deserialize)]
struct City {
    city: String,
}

/// The results of a run with one batch of calls, by call id.
fn results(events: &[Value]) -> Vec<(String, String, bool)> {
    let result = |event: &Value| {
        let text = event["output"].as_str().unwrap_or_default().to_owned();
        (event["callId"].as_str().unwrap().to_owned(), text, event["isError"].as_bool().unwrap())
    };
    events.iter().filter(|event| event["type"] == "tool-result").map(result).collect()
}

#[test]
fn a_tool_reads_its_input_into_a_type_and_its_text_goes_to_the_model() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "weather", r#"{"city":"Oslo"}"#)]).text("Take one.");
    let runner =
        runner(&host, &model).tool(definition("weather"), async |input: City, _| format!("rain in {}", input.city));
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("Umbrella?").unwrap()));
    assert_eq!(results(&events), [("c1".to_owned(), "rain in Oslo".to_owned(), false)]);
    assert_eq!(model.requests()[1].messages.len(), 3);
}

#[test]
fn calls_of_one_answer_run_at_the_same_time_and_results_keep_the_order_of_the_calls() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("slow", "wait", r#"{"ms":50}"#), ("fast", "wait", r#"{"ms":10}"#)]).text("done");
    let order = Arc::new(Mutex::new(Vec::new()));
    let (ended, waiting) = (order.clone(), host.clone());
    let runner = runner(&host, &model).tool(definition("wait"), move |input: Value, context: ToolContext| {
        let (ended, host) = (ended.clone(), waiting.clone());
        async move {
            host.pause(input["ms"].as_u64().unwrap()).await;
            ended.lock().unwrap().push(context.call_id.to_string());
            "ok"
        }
    });
    let conversation = runner.conversation().unwrap();
    host.block_on(conversation.send("go").unwrap().answer()).unwrap();
    assert_eq!(*order.lock().unwrap(), ["fast", "slow"]);
    let crablet::model::Body::Tool(tool) = &conversation.history()[2].body else { panic!("no results") };
    let order: Vec<_> = tool.results.iter().map(|result| result.call_id.as_str()).collect();
    assert_eq!(order, ["slow", "fast"]);
}

#[test]
fn whatever_a_tool_does_wrong_is_told_to_the_model_and_the_run_goes_on() {
    let host = ScriptedHost::new();
    let model = host
        .model()
        .calls(&[
            ("throws", "throws", "{}"),
            ("panics", "panics", "{}"),
            ("hangs", "hangs", "{}"),
            ("unknown", "nothing", "{}"),
            ("cut", "throws", r#"{"a":"#),
            ("shape", "typed", r#"{"city":7}"#),
        ])
        .text("I see.");
    let mut hangs = definition("hangs");
    hangs.timeout = Some(1_000);
    let runner = runner(&host, &model)
        .tool(definition("throws"), async |_: Value, _| Err::<String, _>("the disk is full"))
        .tool(definition("panics"), async |input: Value, _| {
            let text = input["absent"].as_str().expect("a member that is not there");
            text.to_owned()
        })
        .tool(hangs, async |_: Value, _| std::future::pending::<Result<String, String>>().await)
        .tool(definition("typed"), async |input: City, _| input.city);
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("go").unwrap()));
    let results = results(&events);
    let of = |id: &str| results.iter().find(|(call, ..)| call == id).unwrap();
    for (id, expected) in [
        ("throws", "the disk is full"),
        ("panics", "a member that is not there"),
        ("hangs", "1000 ms"),
        ("unknown", "nothing"),
        ("cut", "JSON"),
        ("shape", "the input does not have the shape"),
    ] {
        let (_, text, is_error) = of(id);
        assert!(*is_error && text.contains(expected), "{id}: {text}");
    }
    assert_eq!(results.len(), 6);
    assert_eq!(events.last().unwrap()["text"], "I see.");
}

#[test]
fn progress_is_shown_while_the_tool_runs_and_ignored_afterwards() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "work", "{}")]).text("done");
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let runner = runner(&host, &model).tool(definition("work"), move |_: Value, context: ToolContext| {
        let keep = keep.clone();
        async move {
            context.progress(RawJson::parse("1").unwrap());
            context.progress(RawJson::parse("2").unwrap());
            *keep.lock().unwrap() = Some(context);
            "ok"
        }
    });
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(async {
        let events = events(conversation.send("go").unwrap()).await;
        kept.lock().unwrap().as_ref().unwrap().progress(RawJson::parse("3").unwrap());
        events
    });
    let data: Vec<_> =
        events.iter().filter(|event| event["type"] == "tool-progress").map(|event| &event["data"]).collect();
    assert_eq!(data, [1, 2]);
}

#[test]
fn an_approver_decides_call_by_call() {
    let host = ScriptedHost::new();
    let model =
        host.model().calls(&[("c1", "delete", r#"{"path":"a"}"#), ("c2", "delete", r#"{"path":"b"}"#)]).text("done");
    let mut delete = definition("delete");
    delete.needs_approval = true;
    let runner = runner(&host, &model).tool(delete, async |_: Value, _| "deleted").approver(
        async |request: ApprovalRequest, _: CancelToken| match request.input.as_str().contains("\"a\"") {
            true => Approval::Allow,
            false => Approval::Deny { reason: Some("not that one".to_owned()) },
        },
    );
    let conversation = runner.conversation().unwrap();
    let results = results(&host.block_on(events(conversation.send("go").unwrap())));
    let of = |id: &str| results.iter().find(|(call, ..)| call == id).unwrap();
    assert_eq!(of("c1").1, "deleted");
    assert!(of("c2").2 && of("c2").1.contains("not that one"), "{results:?}");
}

#[test]
fn a_run_waits_for_a_person_and_can_be_put_aside_meanwhile() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "delete", "{}")]).text("done");
    let mut delete = definition("delete");
    delete.needs_approval = true;
    let runner = runner(&host, &model).tool(delete, async |_: Value, _| "deleted");
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    let call_id = host.block_on(async {
        loop {
            for event in run.next().await.unwrap() {
                if let crablet::agent::EventKind::ApprovalRequest { call_id, .. } = event.kind {
                    return call_id;
                }
            }
        }
    });
    let control = run.control();
    run.detach();
    let run = conversation.resume().unwrap();
    assert!(conversation.resume().is_none(), "one reader at a time");
    control.approve(call_id, Approval::Allow).unwrap();
    assert_eq!(host.block_on(run.answer()).unwrap().text, "done");
    assert!(conversation.resume().is_none(), "nothing is left to go on with");
}

#[test]
fn a_hook_denies_a_call_and_one_that_fails_denies_too() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "a", "{}"), ("c2", "b", "{}"), ("c3", "c", "{}")]).text("done");
    let tool = async |_: Value, _: ToolContext| "ran";
    let runner =
        runner(&host, &model).tool(definition("a"), tool).tool(definition("b"), tool).tool(definition("c"), tool);
    let runner = runner.hooks(
        Hooks { before_tool_call: true, ..Hooks::default() },
        async |question: HookQuestion, _: HookContext| match question {
            HookQuestion::BeforeToolCall { tool, .. } if tool.name == "a" => {
                Ok(HookReply::Deny("not today".to_owned()))
            }
            HookQuestion::BeforeToolCall { tool, .. } if tool.name == "b" => {
                Err("the policy server is down".to_owned())
            }
            _ => Ok(HookReply::Continue),
        },
    );
    let conversation = runner.conversation().unwrap();
    let results = results(&host.block_on(events(conversation.send("go").unwrap())));
    let of = |id: &str| results.iter().find(|(call, ..)| call == id).unwrap();
    assert!(of("c1").2 && of("c1").1.contains("not today"), "{results:?}");
    assert!(of("c2").2 && of("c2").1.contains("the policy server is down"), "{results:?}");
    assert_eq!(of("c3").1, "ran");
}

#[test]
fn a_client_side_tool_is_answered_through_the_controls() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "locate", "{}")]).text("In Oslo.");
    let mut locate = definition("locate");
    locate.client_side = true;
    let mut runner = runner(&host, &model);
    runner.agent_mut().tools.push(Arc::new(locate));
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("Where am I?").unwrap();
    let control = run.control();
    host.block_on(async {
        while let Some(batch) = run.next().await {
            if batch.iter().any(|event| event.kind == crablet::agent::EventKind::RunSuspended) {
                control.tool_result(crablet::model::CallId::new("c1"), ToolOutput::text("Oslo")).unwrap();
            }
        }
    });
    assert_eq!(conversation.history().len(), 4);
}

#[test]
fn a_message_steered_in_by_a_tool_reaches_the_model_before_its_next_answer() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "ask", "{}")]).text("In Bergen, then.");
    let control = Arc::new(Mutex::new(None::<crablet::host::RunControl>));
    let steering = control.clone();
    let runner = runner(&host, &model).tool(definition("ask"), move |_: Value, _| {
        steering.lock().unwrap().as_ref().unwrap().steer("I meant Bergen").unwrap();
        async { "rain" }
    });
    let conversation = runner.conversation().unwrap();
    let run = conversation.send("Weather?").unwrap();
    *control.lock().unwrap() = Some(run.control());
    let events = host.block_on(events(run));
    assert!(types(&events).contains("steer-delivered message-added"), "{}", types(&events));
    assert_eq!(model.requests()[1].messages.len(), 4);
}

#[test]
fn a_timeout_comes_in_time_although_the_clock_is_set_back() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "hangs", "{}")]).text("I see.");
    let mut hangs = definition("hangs");
    hangs.timeout = Some(1_000);
    let clock = host.clone();
    let runner = runner(&host, &model).tool(hangs, move |_: Value, _| {
        clock.set_back(3_600_000);
        std::future::pending::<String>()
    });
    let started = host.elapsed();
    host.block_on(runner.run("go")).unwrap();
    assert_eq!(host.elapsed() - started, 1_000);
}

#[test]
fn a_timeout_comes_in_time_although_the_clock_was_set_forward_before() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "jumps", "{}")]).calls(&[("c2", "hangs", "{}")]).text("I see.");
    let (mut jumps, mut hangs) = (definition("jumps"), definition("hangs"));
    jumps.timeout = Some(100_000);
    hangs.timeout = Some(20_000);
    let clock = host.clone();
    let runner = runner(&host, &model)
        .tool(jumps, move |_: Value, _| {
            let clock = clock.clone();
            async move {
                clock.pause(1).await;
                // The sleep for this tool's timeout ends soon by the clock, and knows nothing of it.
                clock.set_forward(90_000);
                "jumped"
            }
        })
        .tool(hangs, |_: Value, _| std::future::pending::<String>());
    let started = host.elapsed();
    host.block_on(runner.run("go")).unwrap();
    assert_eq!(host.elapsed() - started, 20_001);
}

/// A tool that knows for itself which calls need no one's word.
struct Careful;

impl Tool for Careful {
    fn execute(&self, input: RawJson, _context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        Box::pin(std::future::ready(Ok(ToolOutput::text(input.as_str()))))
    }

    fn decide(&self, input: &RawJson) -> Option<Approval> {
        match input.as_str() {
            r#"{"n":1}"# => Some(Approval::Allow),
            r#"{"n":2}"# => Some(Approval::Deny { reason: Some("never".to_owned()) }),
            _ => None,
        }
    }
}

#[test]
fn a_tool_may_decide_before_anyone_is_asked() {
    let host = ScriptedHost::new();
    let calls = [("c1", "careful", r#"{"n":1}"#), ("c2", "careful", r#"{"n":2}"#), ("c3", "careful", r#"{"n":3}"#)];
    let model = host.model().calls(&calls).text("done");
    let mut careful = definition("careful");
    careful.needs_approval = true;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let runner = runner(&host, &model).tools([(careful, Arc::new(Careful) as Arc<dyn Tool>)]).approver(
        move |request: ApprovalRequest, _: CancelToken| {
            seen.lock().unwrap().push(request.call_id.to_string());
            std::future::ready(Approval::Allow)
        },
    );
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("go").unwrap()));
    let failed = results(&events).into_iter().filter(|(_, _, is_error)| *is_error).map(|(id, ..)| id);
    assert_eq!(failed.collect::<Vec<_>>(), ["c2"]);
    assert_eq!(*asked.lock().unwrap(), ["c3"]);
}
