//! What `doctor` says of NATS: whether the server is there and lets the shim in, what it takes, and what it permits.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerError};
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::options::{NatsArguments, NatsError};
use crate::config::Config;
use crate::doctor::{Problems, good, remark};

/// Looks at what the flags name, without taking a call from a shim that serves the same.
pub(crate) async fn examine(arguments: &NatsArguments, file: &Path, mut problems: Problems) -> Problems {
    let Some(url) = &arguments.nats else { return problems };
    // One that cannot be read has been told of.
    if let Ok(config) = Config::read(file)
        && let Err(error) = arguments.check_names(&config)
    {
        problems.add(&error.to_string());
    }
    let told = Told::default();
    let listener = told.clone();
    let options = ConnectOptions::new().event_callback(move |event| {
        let told = listener.clone();
        async move { told.take(event) }
    });
    match arguments.connect_with(url, options).await {
        Err(error) => problems.add(&error.to_string()),
        Ok(client) => {
            introduce(&client);
            if let Err(error) = examine_permissions(arguments, client, &told, &mut problems).await {
                problems.add(&error.to_string());
            }
        }
    }
    problems
}

/// Says what the server says of itself.
fn introduce(client: &Client) {
    let info = client.server_info();
    good(&format!(
        "the NATS server {} (version {}) lets the shim in; JetStream is not needed",
        info.server_name, info.version
    ));
    let limit = client.max_payload();
    good(&format!(
        "over NATS a request and its answer have at most {limit} bytes each (max_payload of the NATS server)"
    ));
    if limit < SMALL_PAYLOAD {
        remark(&format!("{limit} bytes are little for lists of tools and for results: have max_payload raised"));
    }
}

/// Subscribes to what `serve` listens to, though not in its queue group, and sends an answer to itself.
async fn examine_permissions(
    arguments: &NatsArguments,
    client: Client,
    told: &Told,
    problems: &mut Problems,
) -> Result<(), NatsError> {
    let prefix = &arguments.nats_prefix;
    let forms = ["", ".stream", ".cancel", ".session.doctor.call"];
    let served = arguments.nats_servers.iter();
    let mut subjects: Vec<String> =
        served.flat_map(|name| forms.map(|form| format!("{prefix}.{name}{form}"))).collect();
    subjects.push("$SRV.PING.crablet-shim-doctor".to_owned());
    let inbox = client.new_inbox();
    subjects.push(inbox.clone());
    let mut subscriptions = Vec::new();
    for subject in &subjects {
        subscriptions.push(client.subscribe(subject.clone()).await?);
    }
    let answered = match subscriptions.last_mut() {
        Some(answers) if client.publish(inbox, "".into()).await.is_ok() => {
            let settled = async {
                tokio::select! {
                    _ = answers.next() => {}
                    () = told.inbox_is_refused() => {}
                }
            };
            timeout(ANSWER_LIMIT, settled).await.is_ok()
        }
        _ => false,
    };
    // The end of the connection is told after all that was refused before.
    if client.drain().await.is_ok() {
        let _ = timeout(ANSWER_LIMIT, told.closed.notified()).await;
    }
    let refusals = told.refusals();
    for refusal in &refusals {
        problems.add(&format!(
            "the NATS server does not permit what the shim needs ({refusal}; asked for without the queue group, so that no \
             call is taken from a shim that runs): docs/nats.md has the permissions"
        ));
    }
    if refusals.is_empty() && !answered {
        return Err(NatsError::Unanswered);
    }
    if refusals.is_empty() {
        good(&format!(
            "the NATS server permits the shim to serve {} at {prefix}.NAME, and to answer at _INBOX.>",
            arguments.nats_servers.join(", ")
        ));
    }
    Ok(())
}

/// What the connection told.
#[derive(Clone, Default)]
struct Told {
    refusals: Arc<Mutex<Vec<String>>>,
    refused: Arc<Notify>,
    closed: Arc<Notify>,
}

impl Told {
    fn take(&self, event: Event) {
        match event {
            Event::ServerError(ServerError::Other(sentence)) => {
                self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
                self.refused.notify_one();
            }
            Event::Closed => self.closed.notify_one(),
            _ => {}
        }
    }

    fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves when an answer, or the place where one is waited for, is refused.
    async fn inbox_is_refused(&self) {
        while !self.refusals().iter().any(|sentence| sentence.contains("_INBOX.")) {
            self.refused.notified().await;
        }
    }
}

/// Below this the list of a handful of tools may be too large.
const SMALL_PAYLOAD: usize = 64 * 1024;

/// How long the NATS server has for what it says at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
