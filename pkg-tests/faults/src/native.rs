//! The native crate under faults: plays a script from its first prompt to one without faults.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crablet::agent::{Agent, Event, Policy, ToolDefinition};
use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
use crablet::host::{Conversation, Run, Runner, Tool, ToolContext, mcp};
use crablet::json::RawJson;
use crablet::mcp::protocol::EraChoice;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::model::{Model, anthropic, bedrock, gemini, openai_chat, openai_responses};
use crablet::native::NativeHost;
use serde_json::Value;

use crate::build::HANG;
use crate::clock::HurriedHost;
use crate::dice::Dice;
use crate::ledger;
use crate::place::Place;
use crate::plan::Boundary;
use crate::record::{self, Performed, Record};
use crate::script::{Script, Wire};
use crate::shim::SERVER;
use crate::store_faults::FaultyStore;

/// How often a script is prompted while things go wrong, before it goes on without faults.
const FAULTY_RUNS: usize = 3;

/// How often a conversation is opened from a store that fails, at most.
const LIVES: usize = 14;

/// How often a client asks for the tools of a server that does not answer, at most.
const LISTINGS: usize = 12;

/// What all scripts share.
#[derive(Clone)]
pub(crate) struct Native {
    pub(crate) host: HurriedHost,
    place: Place,
}

/// The tools of a script, and what they did.
#[derive(Clone, Default)]
struct Tools {
    remote: Vec<(ToolDefinition, Arc<dyn Tool>)>,
    performed: Arc<Mutex<Vec<Performed>>>,
}

impl Native {
    pub(crate) fn new(place: &Place) -> Self {
        let host = HurriedHost::new(NativeHost::new().unwrap(), Arc::default());
        Self { host, place: place.clone() }
    }

    /// Says how many tasks of crablet are at work, also when this is gone.
    pub(crate) fn tasks(&self) -> impl Fn() -> Vec<String> + use<> {
        let tasks = self.host.tasks.clone();
        move || match tasks.load(Ordering::Relaxed) {
            0 => Vec::new(),
            tasks => vec![format!("{tasks} tasks of crablet are at work")],
        }
    }

    /// Plays a script to its end.
    pub(crate) async fn play(&self, seed: u64) -> Record {
        let playing =
            Playing { native: self, host: self.host.of_script(self.place.proxy, seed), shown: Mutex::default() };
        let Ok(record) = tokio::time::timeout(HANG, playing.record(seed)).await else {
            let shown = playing.shown.lock().unwrap();
            let last: Vec<_> = shown.iter().rev().take(4).map(ToString::to_string).collect();
            return Record::of_problem(format!(
                "the script hangs behind {} events, the last of which are {last:?}",
                shown.len()
            ));
        };
        record
    }
}

/// A script that is being played.
struct Playing<'a> {
    native: &'a Native,
    /// The host with the clock of this script.
    host: HurriedHost,
    /// All that was shown so far.
    shown: Mutex<Vec<Value>>,
}

impl Playing<'_> {
    async fn record(&self, seed: u64) -> Record {
        let script = self.native.place.world.with(seed, |course| course.script.clone());
        match Boundary::of(seed) {
            Boundary::Model => self.converse(&script, Tools::default()).await,
            Boundary::McpHttp | Boundary::Shim => self.converse_with_server(&script).await,
            Boundary::Store => self.converse_from_store(&script).await,
        }
    }

    /// Prompts, each restored from what was saved after the one before, the last without faults.
    async fn converse(&self, script: &Script, tools: Tools) -> Record {
        let mut record = Record::default();
        let runner = self.runner(script, hurried(), &tools);
        let mut conversation = runner.conversation().unwrap();
        for number in 0..FAULTY_RUNS {
            let run = conversation.send(format!("prompt {number}")).unwrap();
            record.runs.push(self.read(&conversation, run).await);
            conversation = runner.restore(&conversation.snapshot()).unwrap();
        }
        self.calm(script.seed);
        let calm = self.runner(script, Policy::default(), &tools);
        let conversation = calm.restore(&conversation.snapshot()).unwrap();
        let run = conversation.send("the last prompt").unwrap();
        record.runs.push(self.read(&conversation, run).await);
        record.performed = std::mem::take(&mut tools.performed.lock().unwrap());
        record
    }

    async fn converse_with_server(&self, script: &Script) -> Record {
        let connection = self.connect(script);
        let mut remote = Vec::new();
        for _ in 0..LISTINGS {
            match mcp::tools(&connection).await {
                Ok(tools) if tools.iter().any(|(tool, _)| tool.name == script.tool()) => {
                    remote = tools;
                    break;
                }
                // A damaged list, or none: the next one may be whole.
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        let mut record = self.converse(script, Tools { remote, ..Tools::default() }).await;
        connection.close().await;
        record.performed = ledger::take(&self.native.place.ledger, script.seed);
        record
    }

    fn connect(&self, script: &Script) -> Connection {
        let seed = script.seed;
        let era = [EraChoice::Auto, EraChoice::Handshake, EraChoice::Stateless][(seed / 4 % 3) as usize];
        let options = ConnectOptions { era, ..ConnectOptions::default() };
        if Boundary::of(seed) == Boundary::McpHttp {
            let bearer = vec![("authorization".to_owned(), format!("Bearer {}", self.native.place.http_token))];
            let server = HttpServer::new(format!("http://{}/mcp/{seed}", self.native.place.proxy)).headers(bearer);
            return Connection::http(&self.host, SERVER, server, options);
        }
        let server = WebSocketOptions {
            url: format!("ws://127.0.0.1:{}", self.native.place.world.shim_port),
            server: SERVER.to_owned(),
            token: self.native.place.token.clone(),
            origin: String::new(),
            resume: None,
        };
        Connection::shim(&self.host, SERVER, server, ConnectOptions::default()).unwrap()
    }

    /// Opens the conversation from a store that fails, again and again, the last time from one that does not.
    async fn converse_from_store(&self, script: &Script) -> Record {
        let (mut record, tools) = (Record::default(), Tools::default());
        let store = FaultyStore::new(self.native.place.stores.clone(), self.native.place.world.clone(), script.seed);
        let id = script.seed.to_string();
        let runner = self.runner(script, hurried(), &tools);
        let mut prompts = 0;
        for life in 0..LIVES {
            if prompts == FAULTY_RUNS {
                break;
            }
            let opened = tokio::select! {
                opened = runner.open(Arc::new(store.clone()), &id) => opened,
                () = store.stalled.notified() => continue,
            };
            let Ok(conversation) = opened else { continue };
            if store.is_damaged.load(Ordering::Relaxed) {
                if let Err(error) = runner.restore(&conversation.snapshot()) {
                    record.problems.push(format!("what was made of a damaged session cannot be restored: {error}"));
                }
                continue;
            }
            // What was open, even if only its end; then another prompt.
            let is_patient = life % 2 == 0;
            if let Some(run) = conversation.resume() {
                let Some(run) = self.read_or_stall(&conversation, run, true, &store, is_patient).await else {
                    continue;
                };
                record.runs.push(run);
                if store.is_stalled() {
                    // What does not answer would keep the next run waiting too.
                    continue;
                }
            }
            let run = conversation.send(format!("prompt of life {life}")).unwrap();
            if let Some(run) = self.read_or_stall(&conversation, run, false, &store, is_patient).await {
                prompts += usize::from(run.events.last().is_some_and(|end| end["stopReason"] == "stop"));
                record.runs.push(run);
            }
        }
        self.calm(script.seed);
        let calm = self.runner(script, Policy::default(), &tools);
        match calm.open(Arc::new(store.clone()), &id).await {
            Ok(conversation) => {
                if let Some(run) = conversation.resume() {
                    let run = self.read(&conversation, run).await;
                    record.runs.push(record::Run { is_resumed: true, is_reopened: true, ..run });
                }
                let run = conversation.send("the last prompt").unwrap();
                record.runs.push(record::Run { is_reopened: true, ..self.read(&conversation, run).await });
            }
            Err(error) => record.problems.push(format!("the store is well, and the session cannot be opened: {error}")),
        }
        store.end();
        let _nothing_was_kept = std::fs::remove_dir_all(self.native.place.stores.join(&id));
        record.performed = std::mem::take(&mut tools.performed.lock().unwrap());
        record
    }

    fn calm(&self, seed: u64) {
        self.native.place.world.with(seed, |course| course.is_calm = true);
    }

    fn runner(&self, script: &Script, policy: Policy, tools: &Tools) -> Runner<HurriedHost> {
        let agent = Agent { policy, ..Agent::new(self.model(script)) };
        let runner = Runner::new(self.host.clone(), agent).tools(tools.remote.clone());
        let (seed, performed) = (script.seed, tools.performed.clone());
        let schema = RawJson::parse(ledger::SCHEMA).unwrap();
        runner.tool(ToolDefinition::new("book", "Books something once", schema), move |input: Value, _: ToolContext| {
            let key = input["key"].as_str().unwrap_or_default().to_owned();
            let mut dice = Dice::new(seed, key.len() as u64);
            performed.lock().unwrap().push(Performed { input });
            async move {
                tokio::time::sleep(Duration::from_millis(dice.roll(4) as u64)).await;
                format!("booked {key}")
            }
        })
    }

    fn model(&self, script: &Script) -> Model {
        let base = format!("http://{}/model/{}", self.native.place.proxy, script.seed);
        match script.wire {
            Wire::Chat => openai_chat::compatible(&base, "faulty"),
            Wire::Anthropic => anthropic::model("faulty").with_base_url(base),
            Wire::Responses => openai_responses::model("faulty").with_base_url(base),
            Wire::Gemini => gemini::model("faulty").with_base_url(base),
            Wire::Bedrock => bedrock::model("us-east-1", "faulty").with_base_url(base),
        }
    }

    /// Reads a run to its end.
    async fn read(&self, conversation: &Conversation<HurriedHost>, mut run: Run<HurriedHost>) -> record::Run {
        let mut events = Vec::new();
        while let Some(batch) = run.next().await {
            self.show(&batch, &mut events);
        }
        record::Run { is_resumed: false, is_reopened: false, events, snapshot: conversation.snapshot() }
    }

    /// Reads a run to its end. When the store does not answer, somebody stops the run, which then ends all the same, or drops
    /// it, and nothing is known of its end.
    async fn read_or_stall(
        &self,
        conversation: &Conversation<HurriedHost>,
        mut run: Run<HurriedHost>,
        is_resumed: bool,
        store: &FaultyStore,
        is_patient: bool,
    ) -> Option<record::Run> {
        let mut events = Vec::new();
        loop {
            tokio::select! {
                batch = run.next() => match batch {
                    Some(batch) => self.show(&batch, &mut events),
                    None => break,
                },
                () = store.stalled.notified() => {
                    if !is_patient {
                        return None;
                    }
                    run.control().abort(Some("the disk does not answer"));
                }
            }
        }
        Some(record::Run { is_resumed, is_reopened: true, events, snapshot: conversation.snapshot() })
    }

    fn show(&self, batch: &[Event], events: &mut Vec<Value>) {
        let batch = batch.iter().map(|event| serde_json::to_value(event).unwrap());
        self.shown.lock().unwrap().extend(batch.clone());
        events.extend(batch);
    }
}

/// Short limits and no waits: what else takes minutes takes milliseconds.
fn hurried() -> Policy {
    Policy { first_byte_timeout: 400, idle_timeout: 400, max_attempts: 3, retry_base: 1, ..Policy::default() }
}
