//! Faults on every way out of crablet, on a seeded schedule, and what must hold all the same.
//!
//! `crablet-faults play` plays scripts with the native crate until FAULTS=n faults were survived, from the seed SEED=s on;
//! `crablet-faults play COMMAND…` with the npm package in the process that the command starts (`pkg-tests/faults/node`).
//! AT=boundary plays those of one boundary, ONLY=s plays one script and prints all that is known of it. `sensitivity` in the
//! place of `play`, in a build that has them, plants defects and demands that each is found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test program may panic"
)]

mod build;
mod clock;
mod damage;
mod dice;
mod harness;
mod http;
mod leaks;
mod ledger;
mod mcp_proxy;
mod model;
mod model_proxy;
mod native;
mod node;
mod place;
mod plan;
mod promises;
mod proxy;
mod record;
mod script;
#[cfg(feature = "planted-defects")]
mod sensitivity;
mod shim;
mod shim_proxy;
mod store_damage;
mod store_faults;
mod tally;
mod world;

use std::process::ExitCode;

use build::Which;
use harness::Wanted;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["ledger", folder] => match ledger::serve(folder.into()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        ["play", build @ ..] => harness::run(&Which::parse(build), &Wanted::from_environment()).await,
        #[cfg(feature = "planted-defects")]
        ["sensitivity", build @ ..] => sensitivity::run(&Which::parse(build)).await,
        _ => {
            eprintln!("usage: crablet-faults play [COMMAND…] | ledger FOLDER");
            ExitCode::FAILURE
        }
    }
}
