use futures_channel::oneshot;

/// Whether some work is under way, and who waits for its end.
#[derive(Default)]
pub(super) struct UnderWay(Option<Vec<oneshot::Sender<()>>>);

impl UnderWay {
    /// The work begins, unless it is under way. Gives whether it begins.
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.0.is_none();
        self.0.get_or_insert_default();
        begins
    }

    /// The work is over: those who wait are told by dropping their senders.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }

    #[cfg(feature = "oauth")]
    pub(super) const fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    /// What is over with the work; `None` when none is under way.
    pub(super) fn wait(&mut self) -> Option<oneshot::Receiver<()>> {
        let (sender, receiver) = oneshot::channel();
        self.0.as_mut()?.push(sender);
        Some(receiver)
    }
}
