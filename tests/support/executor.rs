//! An executor with a clock that only moves when nothing else can happen.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crablet::Millis;

type Spawned = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Virtual time, and the tasks that live in it.
#[derive(Clone, Default)]
pub(crate) struct VirtualTime {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// How much time has passed since the start.
    elapsed: u64,
    /// By how much the wall clock was set back.
    set_back: u64,
    /// By how much it was set forward.
    set_forward: u64,
    next: u64,
    sleepers: BTreeMap<(u64, u64), Waker>,
    spawned: Vec<Spawned>,
}

/// Where virtual time starts, in milliseconds of Unix time.
const START: u64 = 1_800_000_000_000;

impl VirtualTime {
    pub(crate) fn now(&self) -> Millis {
        {
            let state = self.state.lock().unwrap();
            Millis(START + state.elapsed + state.set_forward - state.set_back)
        }
    }

    pub(crate) fn sleepers(&self) -> usize {
        self.state.lock().unwrap().sleepers.len()
    }

    pub(crate) fn spawn(&self, task: Spawned) {
        self.state.lock().unwrap().spawned.push(task);
    }

    /// Drops what runs in the background, as the end of a runtime does.
    pub(crate) fn drop_spawned(&self) {
        let spawned = std::mem::take(&mut self.state.lock().unwrap().spawned);
        drop(spawned);
    }

    pub(crate) fn elapsed(&self) -> u64 {
        self.state.lock().unwrap().elapsed
    }

    /// Sets the wall clock back; sleepers sleep as long as they were told to.
    pub(crate) fn set_back(&self, milliseconds: u64) {
        self.state.lock().unwrap().set_back += milliseconds;
    }

    /// Sets the wall clock forward; sleepers sleep as long as they were told to.
    pub(crate) fn set_forward(&self, milliseconds: u64) {
        self.state.lock().unwrap().set_forward += milliseconds;
    }

    /// Lets the clock jump without any sleeper noticing, as a machine that was asleep does.
    pub(crate) fn jump(&self, milliseconds: u64) {
        self.state.lock().unwrap().elapsed += milliseconds;
    }

    pub(crate) fn sleep(&self, milliseconds: u64) -> Sleep {
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        Sleep { time: self.clone(), key: (state.elapsed.saturating_add(milliseconds), state.next) }
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut tasks: Vec<Spawned> = Vec::new();
        loop {
            // What a task has just spawned is to be polled too, before any time passes.
            while woken.0.swap(false, Ordering::SeqCst) || !self.state.lock().unwrap().spawned.is_empty() {
                if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
                    self.state.lock().unwrap().spawned.append(&mut tasks);
                    return outcome;
                }
                tasks.append(&mut self.state.lock().unwrap().spawned);
                tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            }
            let next = {
                let mut state = self.state.lock().unwrap();
                let sleeper = state.sleepers.pop_first();
                if let Some(((at, _), _)) = &sleeper {
                    state.elapsed = state.elapsed.max(*at);
                }
                sleeper
            };
            let (_, waker) = next.expect("a hang: the future waits, and no timer is left that could wake it");
            waker.wake();
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) struct Sleep {
    time: VirtualTime,
    key: (u64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.time.state.lock().unwrap();
        if state.elapsed >= self.key.0 {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.time.state.lock().unwrap().sleepers.remove(&self.key);
    }
}
