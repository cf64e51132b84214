//! An agent behind subjects of a real nats-server: workers and clients of the crate. How sessions go from a worker in Rust to one in
//! Node and back, and what becomes of them when workers are killed, is tested by `pkg-tests/agent-service`, which the suite `scale`
//! runs over both.
#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "support/ledger_agent.rs"]
mod ledger_agent;
#[path = "support/nats_server.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod nats_server;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use crablet::agent::{Agent, EventKind, RunEnd, ToolDefinition};
use crablet::agent_service::{
    AgentClient, AgentService, AgentSource, EventsFrom, NatsStore, PlacedEvent, RemoteRun, RemoteSession,
    RemoteTranscript, ServeOptions, SessionEvent,
};
use crablet::host::{Runner, Store};
use crablet::json::RawJson;
use crablet::model::{Body, CallId, Content, Message, Model, ModelEvent, ModelRequest, StopReason};
use crablet::native::NativeHost;
use crablet::{Error, ErrorKind};
use futures_util::stream;
use ledger_agent::agent_of;
use nats_server::NatsServer;

/// A server, and what is needed to serve agents and to talk to them.
struct Fixture {
    server: NatsServer,
    context: jetstream::Context,
    host: NativeHost,
}

impl Fixture {
    async fn start() -> Self {
        let server = NatsServer::start("");
        let context = jetstream::new(async_nats::connect(&server.url).await.unwrap());
        Self { server, context, host: NativeHost::new().unwrap() }
    }

    async fn serve(&self, name: &str, agents: impl AgentSource<NativeHost>) -> AgentService {
        let options = ServeOptions::new(self.context.clone(), name).lease(Duration::from_secs(2));
        AgentService::serve(options, agents).await.unwrap()
    }

    /// The agent that pays and looks, whose payments take so long.
    fn agent(&self, tool_ms: u64) -> impl AgentSource<NativeHost> + use<> {
        let (host, ledger) = (self.host.clone(), Arc::<str>::from(self.ledger().to_str().unwrap()));
        move |session: String| ready(agent_of(&host, session.into(), ledger.clone(), Duration::from_millis(tool_ms)))
    }

    fn session(&self, name: &str, id: &str) -> RemoteSession {
        AgentClient::new(self.context.clone(), name).unwrap().session(id).unwrap()
    }

    fn ledger(&self) -> std::path::PathBuf {
        self.server.folder().join("ledger")
    }

    /// Waits until a session has paid so often.
    async fn until_paid(&self, session: &str, times: usize) {
        until(async || {
            let ledger = std::fs::read_to_string(self.ledger()).unwrap_or_default();
            ledger.lines().filter(|line| line.starts_with(&format!("{session} paid"))).count() >= times
        })
        .await;
    }

    async fn until_empty(&self, stream: &str) {
        until(async || self.context.get_stream(stream).await.unwrap().cached_info().state.messages == 0).await;
    }
}

/// Waits for what has to come, however busy the machine is.
async fn until(is_there: impl AsyncFn() -> bool) {
    while !is_there().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The rest of a run.
async fn rest(mut run: RemoteRun) -> Result<Vec<PlacedEvent>, Error> {
    let mut events = Vec::new();
    while let Some(placed) = run.next().await? {
        events.push(placed);
    }
    Ok(events)
}

async fn run(session: &RemoteSession, input: &str) -> Vec<PlacedEvent> {
    rest(session.run(input).await.unwrap()).await.unwrap()
}

fn end(events: &[PlacedEvent]) -> &RunEnd {
    match events.last().and_then(|placed| placed.event.kind()) {
        Some(EventKind::RunEnd(end)) => end,
        last => panic!("the run ended with {last:?}"),
    }
}

fn names(events: &[PlacedEvent]) -> Vec<&str> {
    events.iter().map(|placed| placed.event.name()).collect()
}

fn transcript(events: &[PlacedEvent]) -> Vec<Body> {
    let mut transcript = RemoteTranscript::new();
    events.iter().for_each(|placed| transcript.apply(&placed.event));
    bodies(transcript.messages())
}

fn bodies(messages: &[Arc<Message>]) -> Vec<Body> {
    messages.iter().map(|message| message.body.clone()).collect()
}

/// All events of a session: up to the refusal of an input that says that nothing is at work.
async fn all(session: &RemoteSession) -> Vec<PlacedEvent> {
    let asked = session.abort(None).await.unwrap().input_id;
    let mut heard = session.events(EventsFrom::Start).await.unwrap();
    let mut events = Vec::new();
    loop {
        let placed = heard.next().await.unwrap();
        if matches!(&placed.event, SessionEvent::InputRefused { input_id, .. } if *input_id == asked) {
            return events;
        }
        events.push(placed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_as_it_is_stored_and_can_be_read_again_from_any_place() {
    let fixture = Fixture::start().await;
    let service = fixture.serve("clerk", fixture.agent(20)).await;
    let session = fixture.session("clerk", "чат 1");
    let events = run(&session, "2 steps").await;
    assert_eq!(end(&events).text, "2 payments, 0 of unknown end, 0 steered");
    assert_eq!(names(&events)[..2], ["input-accepted", "run-start"]);

    let store: Arc<dyn Store> = Arc::new(NatsStore::new(fixture.context.clone(), "crablet_clerk_sessions").unwrap());
    let runner = Runner::new(fixture.host.clone(), Agent::new(Model::function("none")));
    let kept = runner.open(store, "чат 1").await.unwrap();
    assert_eq!(transcript(&events), bodies(&kept.history()));

    let every = all(&session).await;
    assert_eq!(every, events);
    for place in [0, 5, every.len() - 2] {
        let mut heard = session.events(EventsFrom::After(every[place].cursor)).await.unwrap();
        for expected in &every[place + 1..] {
            assert_eq!(heard.next().await.unwrap(), *expected);
        }
    }
    // Nothing is left of what was dealt with: no input, no claim.
    fixture.until_empty("crablet_clerk_input").await;
    fixture.until_empty("KV_crablet_clerk_claims").await;
    service.stop(Duration::ZERO).await;
    fixture.until_empty("KV_crablet_clerk_workers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_wait_for_their_turn_and_a_run_takes_what_is_said_to_it() {
    let fixture = Fixture::start().await;
    let _service = fixture.serve("queues", fixture.agent(300)).await;

    let steered = fixture.session("queues", "steered");
    let running = steered.run("2 steps").await.unwrap();
    fixture.until_paid("steered", 1).await;
    let receipt = steered.steer("Faster.").await.unwrap();
    steered.follow_up("1 step").await.unwrap();
    let events = rest(running).await.unwrap();
    assert_eq!(end(&events).text, "1 payments, 0 of unknown end, 0 steered");
    assert!(transcript(&events).iter().any(|body| matches!(body, Body::Assistant(answer)
        if format!("{answer:?}").contains("2 payments, 0 of unknown end, 1 steered"))));
    let delivered = events.iter().find_map(|placed| match placed.event.kind() {
        Some(EventKind::SteerDelivered { id }) => Some(id.clone()),
        _ => None,
    });
    assert!(
        events.iter().any(|placed| matches!(&placed.event, SessionEvent::InputAccepted { input_id, message_id, .. }
        if *input_id == receipt.input_id && *message_id == delivered))
    );

    let stopped = fixture.session("queues", "stopped");
    let running = stopped.run("3 steps").await.unwrap();
    fixture.until_paid("stopped", 1).await;
    stopped.abort(Some("enough")).await.unwrap();
    assert_eq!(end(&rest(running).await.unwrap()).reason.as_str(), "aborted");
    let mut heard = stopped.events(EventsFrom::New).await.unwrap();
    let asked = stopped.steer("Hello?").await.unwrap().input_id;
    match heard.next().await.unwrap().event {
        SessionEvent::InputRefused { input_id, error } => {
            assert_eq!((input_id, error.kind()), (asked, ErrorKind::InvalidInput));
        }
        event => panic!("{event:?}"),
    }

    let queued = fixture.session("queues", "queued");
    let mut runs = Vec::new();
    for prompt in ["1 step", "2 steps", "0 steps"] {
        runs.push(queued.run_as(prompt, prompt).await.unwrap());
    }
    for (run, expected) in runs.into_iter().zip(["1 payments", "2 payments", "0 payments"]) {
        assert!(end(&rest(run).await.unwrap()).text.starts_with(expected));
    }
    assert!(queued.prompt("1 step").id("1 step").await.unwrap().is_duplicate);
    let again = rest(queued.run_as("1 step", "1 step").await.unwrap()).await.unwrap();
    assert!(end(&again).text.starts_with("1 payments"));
}

/// An agent that asks for an approval and asks a question.
fn asking(host: &NativeHost) -> Runner<NativeHost> {
    let schema = || RawJson::parse(r#"{"type": "object"}"#).unwrap();
    let mut remove = ToolDefinition::new("remove", "Removes.", schema());
    remove.needs_approval = true;
    let mut ask = ToolDefinition::new("ask", "Asks the user.", schema());
    ask.client_side = true;
    let mut runner = Runner::new(host.clone(), Agent::new(Model::function("asking")))
        .function_model("asking", |request: Arc<ModelRequest>, _| stream::iter(asked(&request).into_iter().map(Ok)))
        .tool(remove, |_: RawJson, _| ready("removed"));
    runner.agent_mut().tools.push(Arc::new(ask));
    runner
}

fn asked(request: &ModelRequest) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    let results = request.messages.iter().rev().find(|message| matches!(message.body, Body::Tool(_)));
    let reason = match results.map(|message| &message.body) {
        Some(Body::Tool(tool)) => {
            let told = tool.results.iter().map(|result| match &result.content[..] {
                _ if result.is_error => "refused",
                [Content::Text(text)] => text,
                content => panic!("{content:?}"),
            });
            let text = told.collect::<Vec<_>>().join(" and ");
            events.extend([
                ModelEvent::TextStart { block: 0 },
                ModelEvent::TextDelta { block: 0, text },
                ModelEvent::TextEnd { block: 0, replay: None },
            ]);
            StopReason::Stop
        }
        _ => {
            for (block, name) in [(0, "remove"), (1, "ask")] {
                events.extend([
                    ModelEvent::ToolInputStart { block, id: format!("{name}-1"), name: name.into() },
                    ModelEvent::ToolInputDelta { block, json: "{}".into() },
                    ModelEvent::ToolInputEnd { block, replay: None },
                ]);
            }
            StopReason::ToolUse
        }
    };
    events.push(ModelEvent::Stop { reason, raw: None });
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_a_person_is_at_no_worker_and_goes_on_at_any() {
    let fixture = Fixture::start().await;
    let service = fixture.serve("people", asking(&fixture.host)).await;
    for (id, allow) in [("yes", true), ("no", false)] {
        let session = fixture.session("people", id);
        let events = run(&session, "Tidy up.").await;
        assert_eq!(names(&events).last(), Some(&"run-suspended"));
        let (call_id, hash) = events
            .iter()
            .find_map(|placed| match placed.event.kind() {
                Some(EventKind::ApprovalRequest { call_id, input_hash, .. }) => Some((call_id.clone(), *input_hash)),
                _ => None,
            })
            .unwrap();
        until(async || service.sessions().is_empty()).await;
        let mut heard = session.events(EventsFrom::After(events.last().unwrap().cursor)).await.unwrap();
        let unknown = session.allow(&CallId::new("unknown"), None).await.unwrap().input_id;
        // It waits in the conversation, and the run goes on to wait for the person.
        session.steer("Be quick.").await.unwrap();
        if allow {
            session.allow(&call_id, Some(hash)).await.unwrap();
        } else {
            session.deny(&call_id, Some("no"), Some(hash)).await.unwrap();
        }
        session.tool_result(&CallId::new("ask-1"), "the red one").await.unwrap();
        let (mut text, mut is_unknown_refused) = (None, false);
        while text.is_none() || !is_unknown_refused {
            match heard.next().await.unwrap().event {
                SessionEvent::InputRefused { input_id, .. } => is_unknown_refused |= input_id == unknown,
                SessionEvent::Run(event) => {
                    if let EventKind::RunEnd(end) = event.kind {
                        text = Some(end.text);
                    }
                }
                _ => {}
            }
        }
        assert_eq!(text.unwrap(), format!("{} and the red one", if allow { "removed" } else { "refused" }));
    }
    fixture.until_empty("crablet_people_input").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_stopped_leaves_its_run_to_another() {
    let fixture = Fixture::start().await;
    let first = fixture.serve("moved", fixture.agent(400)).await;
    let session = fixture.session("moved", "a");
    let running = session.run("3 steps").await.unwrap();
    fixture.until_paid("a", 1).await;
    assert_eq!(first.sessions(), ["a"]);
    let _second = fixture.serve("moved", fixture.agent(400)).await;
    first.stop(Duration::ZERO).await;
    let events = rest(running).await.unwrap();
    assert_eq!(end(&events).text, "3 payments, 1 of unknown end, 0 steered");
    assert_eq!(names(&events).iter().filter(|name| **name == "session-restored").count(), 1);
    let ledger = std::fs::read_to_string(fixture.ledger()).unwrap();
    let mut paid: Vec<&str> = ledger.lines().filter(|line| line.contains("paid")).collect();
    assert_eq!(paid.len(), 3);
    paid.sort_unstable();
    paid.dedup();
    assert_eq!(paid.len(), 3, "one was paid twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_be_made_is_tried_a_few_times_and_who_waits_is_told() {
    let fixture = Fixture::start().await;
    let failures = Arc::new(AtomicU32::new(0));
    let closed = || Error::new(ErrorKind::Auth, "the vault is closed");
    let options = ServeOptions::new(fixture.context.clone(), "closed").lease(Duration::from_secs(2));
    let told = failures.clone();
    let options = options.on_error(move |session, error| {
        assert_eq!((session, error.message()), ("a", "the vault is closed"));
        told.fetch_add(1, Ordering::Relaxed);
    });
    let service = AgentService::serve(options, move |_| ready(Err::<Runner<NativeHost>, _>(closed()))).await.unwrap();
    let session = fixture.session("closed", "a");
    let refused = rest(session.run("1 step").await.unwrap()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Auth);
    let expected = "the agent of this session could not be made, which was tried 5 times: the vault is closed";
    assert_eq!(refused.message(), expected);
    assert_eq!(failures.load(Ordering::Relaxed), 5);
    fixture.until_empty("crablet_closed_input").await;
    service.stop(Duration::ZERO).await;
    let _works = fixture.serve("closed", fixture.agent(20)).await;
    assert!(end(&run(&session, "1 step").await).text.starts_with("1 payments"));
}

#[tokio::test]
async fn what_cannot_be_is_said_at_once() {
    let fixture = Fixture::start().await;
    let options = |name: &str| ServeOptions::new(fixture.context.clone(), name).patience(Duration::from_millis(200));
    for options in [options("a.b"), options("a").lease(Duration::from_millis(999)), options("a").max_sessions(0)] {
        let refused = AgentService::serve(options, fixture.agent(1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
    let client = AgentClient::new(fixture.context.clone(), "nobody").unwrap().patience(Duration::from_millis(200));
    assert_eq!(client.session("").unwrap_err().kind(), ErrorKind::InvalidInput);
    let session = client.session("a").unwrap();
    assert_eq!(session.prompt("Hello").await.unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(session.events(EventsFrom::Start).await.unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(session.prompt("Hello").id("").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(session.prompt("x".repeat(2_000_000)).await.unwrap_err().kind(), ErrorKind::Limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_documented_permissions_has_its_own_session_and_no_other() {
    let security = include_str!("../docs/security.md");
    let section = security.split("## Agents behind NATS").nth(1).unwrap().split("\n## ").next().unwrap();
    let subjects: Vec<String> = section
        .split('`')
        .filter(|code| !code.contains(' ') && (code.starts_with("PREFIX.") || code.starts_with("$JS.API.")))
        .map(|subject| subject.replace("PREFIX", "crablet").replace("NAME", "guarded").replace("TOKEN", "mine"))
        .collect();
    assert_eq!(subjects.len(), 6, "{subjects:?}");
    let server = NatsServer::start(&format!(
        "authorization {{ users = [ {{ user: worker, password: worker }}, {{ user: client, password: client, \
         permissions: {{ publish: {subjects:?}, subscribe: [\"_INBOX_client.>\"] }} }} ] }}"
    ));
    let connect = async |user: &str| {
        let options = async_nats::ConnectOptions::with_user_and_password(user.into(), user.into());
        let client = options.custom_inbox_prefix(format!("_INBOX_{user}")).connect(&server.url).await.unwrap();
        jetstream::new(client)
    };
    let (context, mut guarded) = (connect("worker").await, connect("client").await);
    let fixture = Fixture { context, host: NativeHost::new().unwrap(), server };
    let _service = fixture.serve("guarded", fixture.agent(10)).await;
    // What is not allowed is never answered.
    guarded.set_timeout(Duration::from_secs(2));
    let client = AgentClient::new(guarded, "guarded").unwrap().patience(Duration::from_millis(100));
    assert!(end(&run(&client.session("mine").unwrap(), "1 step").await).text.starts_with("1 payments"));
    let other = client.session("other").unwrap();
    assert_eq!(other.prompt("1 step").await.unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(other.events(EventsFrom::Start).await.unwrap_err().kind(), ErrorKind::Storage);
}
