//! Faults on every way out of crablet, on a seeded schedule, and what must hold all the same.
//!
//! `crablet-faults native` plays scripts with the native crate until FAULTS=n faults were survived, from the seed SEED=s on.
//! AT=boundary plays those of one boundary, ONLY=s plays one script and prints all that is known of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test program may panic"
)]

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
mod plan;
mod promises;
mod proxy;
mod record;
mod script;
#[cfg(feature = "planted-defects")]
mod sensitivity;
mod shim;
mod shim_proxy;
mod store_faults;
mod tally;
mod world;

use std::process::ExitCode;

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
        #[cfg(feature = "planted-defects")]
        ["sensitivity"] => sensitivity::run().await,
        ["native"] => harness::run(&Wanted::from_environment()).await,
        _ => {
            eprintln!("usage: crablet-faults native | ledger FOLDER");
            ExitCode::FAILURE
        }
    }
}
