//! A queue that is bounded by bytes as well as by number, so that short messages do not wait for each other and long ones are few:
//! what waits in it can be taken, and written, at once.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

/// What takes room in a queue by its length.
pub trait Weighed {
    /// Its length.
    fn bytes(&self) -> usize;
}

/// An empty queue: room for 128 items and 4 MiB, beside the item that has found the last place.
pub(super) fn queue<T: Weighed>() -> (QueueSender<T>, QueueReceiver<T>) {
    let (items, waiting) = mpsc::unbounded_channel();
    let places = Arc::new(Semaphore::new(PLACES));
    (QueueSender { items, places: Arc::clone(&places) }, QueueReceiver { waiting, places })
}

/// The end of a queue where items go in.
#[derive(Debug)]
pub struct QueueSender<T> {
    /// Each with the places that it has.
    items: mpsc::UnboundedSender<(T, usize)>,
    places: Arc<Semaphore>,
}

/// The end of a queue where items come out. When it is dropped nothing goes in any more.
#[derive(Debug)]
pub struct QueueReceiver<T> {
    waiting: mpsc::UnboundedReceiver<(T, usize)>,
    places: Arc<Semaphore>,
}

/// A place for one item.
#[derive(Debug)]
pub(super) struct Place<'a, T> {
    items: &'a mpsc::UnboundedSender<(T, usize)>,
    places: &'a Semaphore,
    first: SemaphorePermit<'a>,
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), places: Arc::clone(&self.places) }
    }
}

impl<T: Weighed> QueueSender<T> {
    /// Waits for a place; `None` when the receiver is gone. Nothing is lost when the future is dropped.
    pub(super) async fn place(&self) -> Option<Place<'_, T>> {
        let first = self.places.acquire().await.ok()?;
        Some(Place { items: &self.items, places: &self.places, first })
    }

    /// A place if there is one now.
    pub(super) fn try_place(&self) -> Option<Place<'_, T>> {
        let first = self.places.try_acquire().ok()?;
        Some(Place { items: &self.items, places: &self.places, first })
    }

    /// Puts in an item when there is room. Gives `false` when the receiver is gone.
    pub async fn send(&self, item: T) -> bool {
        let place = self.place().await;
        let is_open = place.is_some();
        if let Some(place) = place {
            place.send(item);
        }
        is_open
    }

    /// Waits until the receiver is gone.
    pub(super) async fn closed(&self) {
        self.items.closed().await;
    }
}

impl<T: Weighed> Place<'_, T> {
    pub(super) fn send(self, item: T) {
        // A long item takes the places of those that now have to wait; when there are fewer it goes in all the same.
        let further = self.places.forget_permits(item.bytes() / PLACE_BYTES);
        self.first.forget();
        // Without a receiver nobody waits for a place.
        drop(self.items.send((item, 1 + further)));
    }
}

impl<T> QueueReceiver<T> {
    /// The next item; `None` when nothing can come any more.
    pub async fn recv(&mut self) -> Option<T> {
        let item = self.waiting.recv().await?;
        Some(self.take(item))
    }

    /// The next item if it is there already.
    pub(super) fn try_recv(&mut self) -> Option<T> {
        let item = self.waiting.try_recv().ok()?;
        Some(self.take(item))
    }

    fn take(&self, (item, places): (T, usize)) -> T {
        self.places.add_permits(places);
        item
    }
}

impl<T> Drop for QueueReceiver<T> {
    fn drop(&mut self) {
        self.places.close();
    }
}

/// A burst of calls goes through at once.
const PLACES: usize = 128;

/// How many bytes come with a place, so that all places together are 4 MiB.
const PLACE_BYTES: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    impl Weighed for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    /// How many items of so many bytes go in until one has to wait.
    async fn fill(sender: &QueueSender<usize>, bytes: usize) -> usize {
        let mut count = 0;
        while let Some(is_open) = sender.send(bytes).now_or_never() {
            assert!(is_open);
            count += 1;
            tokio::task::yield_now().await;
        }
        count
    }

    #[tokio::test]
    async fn short_items_are_bounded_by_number_and_long_ones_by_bytes() {
        let (sender, mut receiver) = queue();
        assert_eq!(fill(&sender, 100).await, PLACES);
        while receiver.try_recv().is_some() {}
        assert_eq!(fill(&sender, 1024 * 1024).await, 4);
        assert_eq!(receiver.recv().await, Some(1024 * 1024));
        assert_eq!(fill(&sender, 1024 * 1024).await, 1, "what was taken made room");
        while receiver.try_recv().is_some() {}
        assert_eq!(fill(&sender, 16 * 1024 * 1024).await, 1, "no single item is too long");
        while receiver.try_recv().is_some() {}
        assert_eq!(fill(&sender, 0).await, PLACES, "all places came back");
    }

    #[tokio::test]
    async fn each_end_learns_that_the_other_is_gone() {
        let (sender, mut receiver) = queue();
        assert!(sender.send(1).await);
        drop(sender);
        assert_eq!(receiver.recv().await, Some(1));
        assert_eq!(receiver.recv().await, None);

        let (sender, receiver) = queue::<usize>();
        fill(&sender, 1).await;
        let waits = sender.clone();
        let waits = tokio::spawn(async move { waits.send(1).await });
        tokio::task::yield_now().await;
        drop(receiver);
        assert!(!waits.await.unwrap());
        sender.closed().await;
    }
}
