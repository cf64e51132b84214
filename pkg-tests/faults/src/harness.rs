//! Plays scripts of the native crate until there were enough faults, and says what came of it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use crablet::native::NativeHost;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;

use crate::clock::HurriedHost;
use crate::leaks;
use crate::native::{Native, Verdict};
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

/// Everything that scripts need: the shim, the proxy in front of it, and a host.
pub(crate) struct Stage {
    pub(crate) native: Native,
    pub(crate) shim: Shim,
    folder: PathBuf,
    files_before: usize,
    tasks: Arc<AtomicUsize>,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let folder = scratch();
        let shim = Shim::start(&folder).await.unwrap();
        let world = Arc::new(World::new(shim.port, shim.token.clone()));
        let proxy = proxy::listen(world.clone()).await.unwrap();
        let files_before = leaks::open_files();
        let tasks = Arc::new(AtomicUsize::new(0));
        let native = Native {
            host: HurriedHost::new(NativeHost::new().unwrap(), tasks.clone()),
            world,
            proxy,
            token: shim.token.clone(),
            http_token: shim.http_token.clone(),
            stores: folder.join("stores"),
            ledger: shim.ledger(),
        };
        Self { native, shim, folder, files_before, tasks }
    }

    /// Takes everything down, and says what is left of the scripts after so many tenths of a second.
    pub(crate) async fn strike(self, patience: u32) -> Vec<String> {
        drop(self.native);
        let left = leaks::left_over(self.files_before, &self.tasks, &self.shim.ledger(), patience).await;
        drop(self.shim);
        let _kept_by_nobody = std::fs::remove_dir_all(&self.folder);
        left
    }
}

/// Plays what is wanted.
pub(crate) async fn run(wanted: &Wanted) -> ExitCode {
    let stage = Stage::set().await;
    let mut broken = 0;
    if let Some(seed) = wanted.only {
        let verdict = stage.native.play(seed).await;
        println!("{:#?}", verdict.record);
        tell(&verdict);
        broken += verdict.broken.len();
    } else {
        broken += play(&stage.native, wanted).await;
    }
    for what in stage.strike(leaks::PATIENCE).await {
        println!("BROKEN: when all was over, {what}");
        broken += 1;
    }
    println!("native: {broken} broken promises");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays scripts of all boundaries side by side until each has its share of faults. Gives the number of broken promises.
async fn play(native: &Native, wanted: &Wanted) -> usize {
    let started = Instant::now();
    let progress = RefCell::new(Progress::default());
    let boundaries = wanted.boundaries().map(async |boundary| {
        let is_enough = Cell::new(false);
        // Those that are under way when there is enough are played to their end, so that nothing is left of them.
        let seeds = scripts_of(boundary, wanted.seed).take_while(|_| !is_enough.get());
        let play = |seed| {
            let native = native.clone();
            tokio::spawn(async move { native.play(seed).await })
        };
        let mut verdicts = stream::iter(seeds).map(play).buffer_unordered(AT_ONCE);
        while let Some(verdict) = verdicts.next().await {
            let mut progress = progress.borrow_mut();
            progress.take(&verdict.unwrap());
            is_enough.set(progress.tally.is_enough(boundary, wanted.faults) || progress.broken >= ENOUGH);
        }
    });
    join_all(boundaries).await;
    let Progress { tally, mut broken, warm } = progress.into_inner();
    if let Some(what) = warm.and_then(|warm| leaks::growth(warm, leaks::resident())) {
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
    fn take(&mut self, verdict: &Verdict) {
        if verdict.broken.is_empty() {
            self.tally.add(&verdict.injected);
        } else {
            self.broken += 1;
            tell(verdict);
        }
        if self.tally.scripts == WARM && self.warm.is_none() {
            self.warm = Some(leaks::resident());
        }
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
