//! A task that ends with its owner.

use std::future::Future;

use tokio::task::JoinHandle;

/// A task of tokio that is aborted when this is dropped.
#[derive(Debug)]
pub(super) struct OwnedTask(JoinHandle<()>);

impl OwnedTask {
    pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) {
        // A task that panicked has ended too.
        let _panic = (&mut self.0).await;
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
