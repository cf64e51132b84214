//! Plays scripts until there were enough faults, and says what came of it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;

use crate::build::{Build, Verdict, Which};
use crate::leaks;
use crate::place::Place;
use crate::plan::Boundary;
use crate::proxy;
use crate::shim::Shim;
use crate::tally::Tally;
use crate::world::World;

/// How many scripts of each boundary are at work at once: most of them wait for a limit to end. The shim's HTTP front has no
/// more than 32 sessions for one token.
const AT_ONCE: usize = 24;

/// Behind so many scripts the memory that they use is in use.
const WARM: usize = 600;

/// After so many broken promises the rest is not worth the wait.
const ENOUGH: usize = 20;

/// What the environment asks for.
pub(crate) struct Wanted {
    /// How many faults, delays and throttles not counted.
    pub(crate) faults: usize,
    /// The first script of each boundary.
    pub(crate) seed: u64,
    /// One script alone.
    pub(crate) only: Option<u64>,
    /// One boundary alone.
    pub(crate) at: Option<Boundary>,
}

impl Wanted {
    /// Reads FAULTS, SEED, ONLY and AT.
    pub(crate) fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
        Self {
            faults: number("FAULTS").unwrap_or(10_000) as usize,
            seed: number("SEED").unwrap_or(0),
            only: number("ONLY"),
            at: std::env::var("AT").ok().and_then(|name| Boundary::parse(&name)),
        }
    }

    fn boundaries(&self) -> impl Iterator<Item = Boundary> {
        let at = self.at;
        Boundary::ALL.into_iter().filter(move |boundary| at.is_none_or(|only| only == *boundary))
    }
}

/// The scripts of a boundary from one on: those of all boundaries take turns.
pub(crate) fn scripts_of(boundary: Boundary, from: u64) -> impl Iterator<Item = u64> {
    let first = from * 4 + boundary as u64;
    (0..).map(move |count| first + 4 * count)
}

/// A folder of this process.
pub(crate) fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("crablet-faults-{}", std::process::id()))
}

/// Everything that scripts need: a build of crablet, the shim, and the proxy in front of all that crablet talks to.
pub(crate) struct Stage {
    pub(crate) build: Build,
    place: Place,
    shim: Shim,
    folder: PathBuf,
    files_before: usize,
}

impl Stage {
    pub(crate) async fn set(which: &Which) -> Self {
        let folder = scratch();
        let shim = Shim::start(&folder).await.unwrap();
        let world = Arc::new(World::new(shim.port, shim.token.clone()));
        let proxy = proxy::listen(world.clone()).await.unwrap();
        let place = Place {
            world,
            proxy,
            token: shim.token.clone(),
            http_token: shim.http_token.clone(),
            stores: folder.join("stores"),
            ledger: shim.ledger(),
        };
        let build = which.start(&place).await;
        Self { build, place, shim, folder, files_before: leaks::open_files() }
    }

    /// Plays a script and judges it.
    pub(crate) async fn play(&self, seed: u64) -> Verdict {
        self.build.play(&self.place, seed).await
    }

    /// Takes everything down, and says what is left of the scripts after so many tenths of a second.
    pub(crate) async fn strike(self, patience: u32) -> Vec<String> {
        let (files_before, ledger) = (self.files_before, self.place.ledger);
        let left = self.build.end(patience, || leaks::around(files_before, &ledger)).await;
        drop(self.shim);
        let _kept_by_nobody = std::fs::remove_dir_all(&self.folder);
        left
    }
}

/// Plays what is wanted.
pub(crate) async fn run(which: &Which, wanted: &Wanted) -> ExitCode {
    let stage = Stage::set(which).await;
    let mut broken = 0;
    if let Some(seed) = wanted.only {
        let verdict = stage.play(seed).await;
        println!("{:#?}", verdict.record);
        tell(&verdict);
        broken += verdict.broken.len();
    } else {
        broken += play(&stage, wanted).await;
    }
    for what in stage.strike(leaks::PATIENCE).await {
        println!("BROKEN: when all was over, {what}");
        broken += 1;
    }
    println!("{}: {broken} broken promises", which.name());
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays scripts of all boundaries side by side until each has its share of faults. Gives the number of broken promises.
async fn play(stage: &Stage, wanted: &Wanted) -> usize {
    let started = Instant::now();
    let progress = RefCell::new(Progress::default());
    let boundaries = wanted.boundaries().map(async |boundary| {
        let is_enough = Cell::new(false);
        // Those that are under way when there is enough are played to their end, so that nothing is left of them.
        let seeds = scripts_of(boundary, wanted.seed).take_while(|_| !is_enough.get());
        let play = |seed| {
            let (build, place) = (stage.build.clone(), stage.place.clone());
            tokio::spawn(async move { build.play(&place, seed).await })
        };
        let mut verdicts = stream::iter(seeds).map(play).buffer_unordered(AT_ONCE);
        while let Some(verdict) = verdicts.next().await {
            let is_warm = progress.borrow_mut().take(&verdict.unwrap());
            if is_warm {
                let memory = stage.build.memory().await;
                progress.borrow_mut().warm = Some(memory);
            }
            let progress = progress.borrow();
            is_enough.set(progress.tally.is_enough(boundary, wanted.faults) || progress.broken >= ENOUGH);
        }
    });
    join_all(boundaries).await;
    let Progress { tally, mut broken, warm } = progress.into_inner();
    if let Some(warm) = warm
        && let Some(what) = leaks::growth(warm, stage.build.memory().await)
    {
        println!("BROKEN: {what}");
        broken += 1;
    }
    println!("{tally}, in {} s", started.elapsed().as_secs());
    broken
}

/// What is known so far.
#[derive(Default)]
struct Progress {
    tally: Tally,
    broken: usize,
    /// The memory in use, once it is warm.
    warm: Option<u64>,
}

impl Progress {
    /// Takes what came of a script. Says whether the memory is warm with it.
    fn take(&mut self, verdict: &Verdict) -> bool {
        if verdict.broken.is_empty() {
            self.tally.add(&verdict.injected);
        } else {
            self.broken += 1;
            tell(verdict);
        }
        verdict.broken.is_empty() && self.tally.scripts == WARM
    }
}

/// Says what a script broke, and how to see it again.
pub(crate) fn tell(verdict: &Verdict) {
    println!("script {} ({}): ONLY={} plays it alone", verdict.seed, Boundary::of(verdict.seed), verdict.seed);
    for what in &verdict.broken {
        println!("  BROKEN: {what}");
    }
    for fault in &verdict.injected {
        println!("  fault: {} in exchange {}: {}", fault.kind, fault.exchange, fault.place);
    }
}
