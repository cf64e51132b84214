//! Plants one defect after another in crablet, and demands that the harness finds each.

use std::process::ExitCode;

use crablet::planted::Defect;
use futures_util::StreamExt;
use futures_util::stream;

use crate::build::Which;
use crate::harness::{Stage, scripts_of};
use crate::plan::Boundary;

/// A defect is found within so many scripts, or not.
const SCRIPTS: usize = 300;

/// So many scripts of each boundary must break nothing without a defect.
const CONTROLS: usize = 24;

/// How many of them are at work at once.
const AT_ONCE: usize = 24;

/// How many scripts a leak has to show.
const LEAKING: usize = 24;

/// How long what is no leak may take to be gone, in tenths of a second.
const PATIENCE: u32 = 80;

/// Where each defect shows.
const fn boundary_of(defect: Defect) -> Boundary {
    match defect {
        Defect::AcceptsLostFrames => Boundary::Shim,
        Defect::SendsRequestsTwice => Boundary::McpHttp,
        Defect::RunsToolsTwice | Defect::SavesNothing | Defect::LeavesCallsUnanswered => Boundary::Store,
        _ => Boundary::Model,
    }
}

/// Plants all defects in turn.
pub(crate) async fn run(which: &Which) -> ExitCode {
    // What breaks without any defect would count as found with each.
    for boundary in Boundary::ALL {
        if let Some(what) = search(Stage::set(which).await, boundary, CONTROLS).await {
            println!("{}: without a defect, {what}", which.name());
            return ExitCode::FAILURE;
        }
    }
    let mut missed = 0;
    for defect in Defect::ALL {
        let stage = Stage::set(which).await;
        stage.build.plant(Some(defect)).await;
        let found = if defect == Defect::KeepsConnections {
            leak(stage).await
        } else {
            search(stage, boundary_of(defect), SCRIPTS).await
        };
        match found {
            Some(what) => println!("found {defect:?}: {what}"),
            None => {
                missed += 1;
                println!("MISSED {defect:?}");
            }
        }
    }
    let (all, name) = (Defect::ALL.len(), which.name());
    println!("{name}: {} of {all} planted defects were found", all - missed);
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The first promise that a script of the boundary breaks, in so many of them.
async fn search(stage: Stage, boundary: Boundary, scripts: usize) -> Option<String> {
    let seeds = scripts_of(boundary, 0).take(scripts);
    let play = |seed| stage.play(seed);
    let mut verdicts = stream::iter(seeds).map(play).buffer_unordered(AT_ONCE);
    let mut found = None;
    while let Some(verdict) = verdicts.next().await {
        if let Some(what) = verdict.broken.first() {
            found = Some(format!("script {}: {what}", verdict.seed));
            break;
        }
    }
    drop(verdicts);
    stage.strike(1).await;
    found
}

/// What is left behind.
async fn leak(stage: Stage) -> Option<String> {
    let seeds = scripts_of(Boundary::Model, 0).take(LEAKING);
    stream::iter(seeds).map(|seed| stage.play(seed)).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    stage.strike(PATIENCE).await.into_iter().next()
}
