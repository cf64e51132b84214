//! How much work reading costs, which tests count so that it stays in proportion to what is read.

/// That many bytes were looked at, copied or moved. Costs nothing outside the crate's own tests.
#[cfg(not(test))]
pub(crate) const fn count(_bytes: usize) {}

#[cfg(test)]
pub(crate) use counted::count;
#[cfg(all(test, feature = "models"))]
pub(crate) use counted::of;

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    std::thread_local! {
        static DONE: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn count(bytes: usize) {
        DONE.with(|done| done.set(done.get() + bytes as u64));
    }

    /// The work that something takes.
    #[cfg(feature = "models")]
    pub(crate) fn of(something: impl FnOnce()) -> u64 {
        let before = DONE.with(Cell::get);
        something();
        DONE.with(Cell::get) - before
    }
}
