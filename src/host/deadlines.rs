//! The timers of a session, kept safe from a wall clock that is set back.

use crate::agent::TimerId;
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// Which timers are set, in a time that follows the wall clock forwards and stands still when it is set back.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    due: OrderedMap<TimerId, Millis>,
    steady: Millis,
    wall: Millis,
}

impl Deadlines {
    /// Looks at the wall clock.
    pub(super) fn observe(&mut self, wall: Millis) {
        self.steady = self.steady.after(wall.since(self.wall));
        self.wall = wall;
    }

    /// A sleep until this moment of the steady time is over, whatever the wall clock says.
    pub(super) fn slept_until(&mut self, steady: Millis) {
        self.steady = self.steady.max(steady);
    }

    /// Sets a timer to a moment of the wall clock, replacing the one of the same name.
    pub(super) fn set(&mut self, timer: TimerId, wall: Millis) {
        self.due.insert(timer, self.steady.after(wall.since(self.wall)));
    }

    pub(super) fn clear(&mut self, timer: TimerId) {
        self.due.remove(&timer);
    }

    pub(super) fn clear_all(&mut self) {
        self.due.clear();
    }

    /// Takes the timer that has been due for longest.
    pub(super) fn take_due(&mut self) -> Option<TimerId> {
        let due = self.due.iter().filter(|(_, at)| **at <= self.steady);
        let timer = due.min_by_key(|(_, at)| **at).map(|(timer, _)| *timer)?;
        self.due.remove(&timer);
        Some(timer)
    }

    /// When the next timer is due.
    pub(super) fn next(&self) -> Option<Deadline> {
        let at = self.due.values().min().copied()?;
        Some(Deadline { at, delay: at.since(self.steady) })
    }
}

/// A moment of the steady time, and how far away it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) at: Millis,
    /// In milliseconds.
    pub(super) delay: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall: u64) -> Deadlines {
        let mut deadlines = Deadlines::default();
        deadlines.observe(Millis(wall));
        deadlines
    }

    #[test]
    fn the_timer_that_is_due_for_longest_comes_first() {
        let mut deadlines = at(1_000);
        deadlines.set(TimerId(1), Millis(1_500));
        deadlines.set(TimerId(2), Millis(1_400));
        deadlines.set(TimerId(3), Millis(9_000));
        assert_eq!(deadlines.next().unwrap().delay, 400);
        deadlines.observe(Millis(1_399));
        assert_eq!(deadlines.take_due(), None);
        deadlines.observe(Millis(2_000));
        assert_eq!(deadlines.take_due(), Some(TimerId(2)));
        assert_eq!(deadlines.take_due(), Some(TimerId(1)));
        assert_eq!(deadlines.take_due(), None);
    }

    #[test]
    fn a_clock_that_is_set_back_neither_delays_nor_loses_a_timer() {
        let mut deadlines = at(1_000_000);
        deadlines.set(TimerId(1), Millis(1_001_000));
        let deadline = deadlines.next().unwrap();
        deadlines.observe(Millis(400));
        assert_eq!(deadlines.next(), Some(deadline));
        deadlines.observe(Millis(600));
        assert_eq!(deadlines.next().unwrap().delay, 800);
        deadlines.slept_until(deadline.at);
        assert_eq!(deadlines.take_due(), Some(TimerId(1)));
    }

    #[test]
    fn a_moment_that_has_passed_is_due_at_once() {
        let mut deadlines = at(1_000);
        deadlines.set(TimerId(1), Millis(10));
        assert_eq!(deadlines.take_due(), Some(TimerId(1)));
    }
}
