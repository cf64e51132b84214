//! The packed npm package under faults: a process of Node plays the scripts, many at once, and tells what came of them.
//!
//! Both sides write lines of JSON: `{ "ask": id, "what": … }` and `{ "answer": id, "value": … }`. `pkg-tests/faults/node` is the
//! other side. Nothing is decided there: what goes wrong in a store is asked for.

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::build::HANG;
use crate::ledger;
use crate::place::Place;
use crate::plan::Boundary;
use crate::record::Record;
use crate::script::Wire;
use crate::shim::SERVER;
use crate::store_damage::{self, Mishap};

/// The process, and what is being asked. Cloning gives another handle to the same one.
#[derive(Clone)]
pub(crate) struct Node(Arc<Inner>);

struct Inner {
    place: Place,
    lines: mpsc::UnboundedSender<String>,
    asked: Mutex<Asked>,
    process: Mutex<Option<Child>>,
}

#[derive(Default)]
struct Asked {
    last: u64,
    /// Those who wait for an answer; `None` once the process has ended.
    waiting: Option<HashMap<u64, oneshot::Sender<Value>>>,
    /// What the process was told to do to a store, until it has done it.
    mishaps: HashMap<u64, Mishap>,
}

impl Node {
    /// Starts the process and waits until it has loaded the package.
    pub(crate) async fn start(command: &[String], place: &Place) -> io::Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(io::Error::other("no command was given for the client"));
        };
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("the client has no standard input and output"));
        };
        let (lines, written) = mpsc::unbounded_channel();
        let asked = Asked { waiting: Some(HashMap::new()), ..Asked::default() };
        let inner = Inner { place: place.clone(), lines, asked: Mutex::new(asked), process: Mutex::new(Some(process)) };
        let node = Self(Arc::new(inner));
        tokio::spawn(write(input, written));
        tokio::spawn(node.clone().read(BufReader::new(output).lines()));
        let begun = node.ask("begin", json!({})).await;
        begun.map(|_| node).ok_or_else(|| io::Error::other("the client ended before it began"))
    }

    /// Plays a script to its end.
    pub(crate) async fn play(&self, seed: u64) -> Record {
        let Place { world, proxy, token, http_token, stores, ledger } = &self.0.place;
        let script = world.with(seed, |course| course.script.clone());
        let boundary = Boundary::of(seed);
        let era = ["auto", "handshake", "stateless"][(seed / 4 % 3) as usize];
        let told = json!({
            "seed": seed,
            "boundary": boundary.name(),
            "wire": wire_name(script.wire),
            "tool": script.tool(),
            "schema": serde_json::from_str::<Value>(ledger::SCHEMA).unwrap(),
            "model": format!("http://{proxy}/model/{seed}"),
            "http": { "url": format!("http://{proxy}/mcp/{seed}"), "token": http_token, "era": era },
            "shim": { "way": format!("ws://{proxy}/shim/{seed}"), "token": token.reveal() },
            "server": SERVER,
            "store": stores,
        });
        let Ok(answer) = tokio::time::timeout(HANG, self.ask("play", told)).await else {
            let seen = self.ask("seen", json!({ "seed": seed })).await.unwrap_or_default();
            return Record::of_problem(format!("the script hangs: {seen}"));
        };
        let mut record = match answer {
            Some(told) => Record::from_json(&told),
            None => Record::of_problem("the client has ended".to_owned()),
        };
        if matches!(boundary, Boundary::McpHttp | Boundary::Shim) {
            record.performed = ledger::take(ledger, seed);
        }
        record
    }

    /// Plants the defect of this number in the package, which has to be built for that.
    #[cfg(feature = "planted-defects")]
    pub(crate) async fn plant(&self, defect: u8) {
        self.ask("plant", json!({ "defect": defect })).await;
    }

    /// The heap and the memory of the module, in KiB.
    pub(crate) async fn memory(&self) -> u64 {
        let used = self.ask("memory", json!({})).await.unwrap_or_default();
        used.as_u64().unwrap_or_default()
    }

    /// Timers, sockets, files and whatever else keeps a process of Node at work.
    pub(crate) async fn left(&self) -> Vec<String> {
        match self.ask("left", json!({})).await {
            Some(left) => {
                left.as_array().into_iter().flatten().filter_map(|what| Some(what.as_str()?.to_owned())).collect()
            }
            None => vec!["the client has ended".to_owned()],
        }
    }

    /// Ends the process.
    pub(crate) async fn end(&self) {
        let process = self.0.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut process) = process {
            let _gone_already = process.kill().await;
        }
    }

    /// Asks the process; `None` when it has ended.
    async fn ask(&self, what: &str, mut question: Value) -> Option<Value> {
        let answer = {
            let mut asked = self.asked();
            asked.last += 1;
            let id = asked.last;
            question["ask"] = json!(id);
            question["what"] = json!(what);
            let (tell, answer) = oneshot::channel();
            asked.waiting.as_mut()?.insert(id, tell);
            answer
        };
        self.0.lines.send(format!("{question}\n")).ok()?;
        answer.await.ok()
    }

    /// Reads what the process writes until it ends.
    async fn read(self, mut lines: Lines<BufReader<ChildStdout>>) {
        while let Ok(Some(line)) = lines.next_line().await {
            // The last line is not whole when the process was ended while it wrote.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(id) = message["answer"].as_u64() {
                let waiting = self.asked().waiting.as_mut().and_then(|waiting| waiting.remove(&id));
                if let Some(waiting) = waiting {
                    let _gave_up = waiting.send(message["value"].clone());
                }
            } else {
                let answer = json!({ "answer": message["ask"], "value": self.answer(&message) });
                let _has_ended = self.0.lines.send(format!("{answer}\n"));
            }
        }
        self.asked().waiting = None;
    }

    /// What the process asks.
    fn answer(&self, question: &Value) -> Value {
        let world = &self.0.place.world;
        let seed = question["seed"].as_u64().unwrap_or_default();
        match question["what"].as_str().unwrap_or_default() {
            "calm" => world.with(seed, |course| course.is_calm = true),
            "write" => {
                let expected = question["expected"].as_u64().unwrap_or_default();
                let length = question["length"].as_u64().unwrap_or_default() as usize;
                return match store_damage::write(world, seed, expected, length) {
                    Some((act, mishap)) => self.told(act.to_json(), mishap),
                    None => Value::Null,
                };
            }
            "read" => {
                return match store_damage::read(world, seed, question["text"].as_str()) {
                    Some((act, mishap)) => self.told(act.to_json(), mishap),
                    None => Value::Null,
                };
            }
            "happened" => {
                let id = question["mishap"].as_u64().unwrap_or_default();
                let mishap = self.asked().mishaps.remove(&id);
                if let Some(mishap) = mishap {
                    mishap.happened();
                }
            }
            other => eprintln!("the client asks {other:?}, which nobody knows"),
        }
        Value::Null
    }

    /// What the process is to do to its store, with the number by which it says that it has done it.
    fn told(&self, mut act: Value, mishap: Mishap) -> Value {
        let mut asked = self.asked();
        asked.last += 1;
        let id = asked.last;
        asked.mishaps.insert(id, mishap);
        act["mishap"] = json!(id);
        act
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

const fn wire_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "chat",
        Wire::Anthropic => "anthropic",
        Wire::Responses => "responses",
        Wire::Gemini => "gemini",
        Wire::Bedrock => "bedrock",
    }
}
