//! The soak with the crate: `crablet-soak` reads what to do as one line of JSON, and works until a second line comes. Each
//! second it prints what it counted, as JSON; its memory is what the system says of the process.

mod scenarios;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crablet::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

/// How long a lane rests between two scenarios, in milliseconds: people read what they asked for.
const REST: u64 = 1_500;

/// Unexpected errors that are told in full; the others are counted.
const MAX_ERRORS_TOLD: usize = 10;

/// What is to be done.
#[derive(Debug, Deserialize)]
struct Given {
    /// How many lanes each scenario has.
    lanes: BTreeMap<String, usize>,
    /// The base URL of the model.
    model: String,
    /// Where the shim listens, and what opens it.
    shim: Shim,
}

#[derive(Debug, Deserialize)]
struct Shim {
    url: String,
    server: String,
    token: String,
}

/// What was done so far.
#[derive(Debug, Default, Serialize)]
struct Told {
    counts: BTreeMap<String, u64>,
    errors: Vec<String>,
}

/// Shared by all lanes.
#[derive(Clone, Debug, Default)]
struct Counter(Arc<Mutex<Told>>);

impl Counter {
    fn count(&self, what: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *told.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// An error that no scenario expects. Some kinds come when a machine has more to do than it can: they are counted only,
    /// and how many may be is for run.mjs to say.
    fn unexpected(&self, scenario: &str, error: &Error) {
        if matches!(error.kind(), ErrorKind::Network | ErrorKind::Timeout | ErrorKind::ConnectionClosed) {
            return self.count("lives out of time");
        }
        self.count("unexpected errors");
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.errors.len() < MAX_ERRORS_TOLD {
            told.errors.push(format!("native {scenario}: {}: {error}", error.kind()));
        }
    }

    fn tell(&self) {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", serde_json::to_string(&*told).unwrap_or_default());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match soak().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", error.kind());
            ExitCode::FAILURE
        }
    }
}

async fn soak() -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::new(ErrorKind::InvalidInput, error.to_string());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let line = lines.next_line().await.map_err(|error| failed(&error))?.unwrap_or_default();
    let given: Given = serde_json::from_str(&line).map_err(|error| failed(&error))?;
    let scenarios = scenarios::Scenarios::new(&given)?;
    let counter = Counter::default();
    let (stop, stopped) = watch::channel(false);
    let mut lanes = Vec::new();
    for (name, many) in given.lanes {
        for _ in 0..many {
            lanes.push(tokio::spawn(lane(name.clone(), scenarios.clone(), counter.clone(), stopped.clone())));
        }
    }
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = second.tick() => counter.tell(),
            _ = lines.next_line() => break,
        }
    }
    stop.send_replace(true);
    for lane in lanes {
        lane.await.map_err(|error| failed(&error))?;
    }
    counter.tell();
    Ok(())
}

/// One scenario after the other, each with what the one before kept open.
async fn lane(name: String, scenarios: scenarios::Scenarios, counter: Counter, mut stopped: watch::Receiver<bool>) {
    let mut kept = None;
    while !*stopped.borrow() {
        match scenarios.run(&name, &counter).await {
            Ok(new) => {
                counter.count(&name);
                counter.count("lives");
                if let Some(earlier) = std::mem::replace(&mut kept, new) {
                    earlier.close().await;
                }
            }
            Err(error) => counter.unexpected(&name, &error),
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(REST)) => {}
            _ = stopped.changed() => {}
        }
    }
    if let Some(kept) = kept {
        kept.close().await;
    }
}
