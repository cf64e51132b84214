//! Runs the cases of the area mcp-http: real-world failures of other clients, with the right answer.
//!
//! A line per case, and at the end `N passed, N failed`. With `CRABLET_CASES=<folder>` the cases of that folder are run
//! instead. Every answer of a server is also cut at every byte. Cases that are told in words are run where a function here
//! stands for them, and otherwise listed and counted apart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "../mcp_support/mod.rs"]
mod mcp_support;
mod script;
mod special;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crablet::json::Object;
use serde_json::Value;

const AREA: &str = "mcp-http";

fn main() -> ExitCode {
    let folder = std::env::var_os("CRABLET_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"),
        |folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
    );
    let (mut passed, mut failed, mut in_words) = (0, 0, 0);
    for path in files(&folder) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match read(&path).and_then(|case| case.map_or(Ok(Verdict::OtherArea), |case| run(&name, &case))) {
            Ok(Verdict::OtherArea) => {}
            Ok(Verdict::Passed(runs)) => {
                println!("ok {name} ({runs} runs)");
                passed += 1;
            }
            Ok(Verdict::InWords) => {
                println!("not data-driven: {name}");
                in_words += 1;
            }
            Err(problem) => {
                println!("FAILED {name}: {problem}");
                failed += 1;
            }
        }
    }
    if passed + failed == 0 {
        println!("no case of the area {AREA} was run in {}", folder.display());
        failed += 1;
    }
    if in_words > 0 {
        println!("not data-driven: {in_words}");
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Verdict {
    OtherArea,
    InWords,
    Passed(usize),
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    paths.sort();
    paths
}

/// The case, or `None` when it is of another area. Those may hold what only their own runner can read.
fn read(path: &Path) -> Result<Option<Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let unreadable = |error: serde_json::Error| format!("the case is not readable: {error}");
    let area = Object::parse(&text).map_err(unreadable)?.string("area").ok_or("the case has no area")?;
    if area == AREA { serde_json::from_str(&text).map(Some).map_err(unreadable) } else { Ok(None) }
}

fn run(name: &str, case: &Value) -> Result<Verdict, String> {
    // A panic of the code under test fails its case, and no other.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(|| match script::run(case) {
        Some(outcome) => outcome.map(Verdict::Passed),
        None => match special::run(name, case) {
            Some(outcome) => outcome.map(Verdict::Passed),
            None => Ok(Verdict::InWords),
        },
    }));
    drop(std::panic::take_hook());
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("?")))
    })
}
