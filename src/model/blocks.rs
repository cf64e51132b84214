//! What the answers of all wires have in common: they begin once, and their blocks have numbers and are open for a while.

use super::answer::fail;
use super::event::ModelEvent;
use crate::error::ErrorKind;
use crate::json::Object;

/// The beginning of an answer, and the numbers of its blocks.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    is_started: bool,
    next: u32,
}

impl Numbering {
    pub(super) const fn is_started(&self) -> bool {
        self.is_started
    }

    /// Tells once that the answer began. `source` holds the provider's id of it and the model under these names.
    pub(super) fn start(&mut self, source: Option<&Object<'_>>, names: [&str; 2], events: &mut Vec<ModelEvent>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let [response_id, model] = names.map(|name| source.and_then(|source| source.string(name)));
        events.push(ModelEvent::Started { response_id, model });
    }

    /// The number of a block that begins.
    pub(super) const fn next(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Whether no block has begun.
    pub(super) const fn is_empty(&self) -> bool {
        self.next == 0
    }
}

/// The blocks that have begun and not ended, in the order in which they began.
#[derive(Debug)]
pub(super) struct OpenBlocks<C>(Vec<OpenBlock<C>>);

/// An open block.
#[derive(Debug)]
pub(super) struct OpenBlock<C> {
    /// What the wire knows the block by. Two may have the same.
    pub(super) index: u64,
    /// Its number in the events.
    pub(super) block: u32,
    /// What the wire remembers of it.
    pub(super) content: C,
}

/// The most blocks that are open at once. Wires have one or a few; a stream that only ever opens them must not fill the
/// memory.
pub(super) const MAX_OPEN_BLOCKS: usize = 1024;

impl<C> Default for OpenBlocks<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C> OpenBlocks<C> {
    /// Adds a block. One too many fails the answer.
    pub(super) fn open(&mut self, index: u64, block: u32, content: C, events: &mut Vec<ModelEvent>) {
        self.0.push(OpenBlock { index, block, content });
        if self.0.len() > MAX_OPEN_BLOCKS {
            fail(events, ErrorKind::Limit, "more content blocks are open at once than any answer has");
        }
    }

    /// The latest block with this index whose content fits.
    pub(super) fn find(&mut self, index: u64, fits: impl Fn(&C) -> bool) -> Option<&mut OpenBlock<C>> {
        self.0.iter_mut().rev().find(|open| open.index == index && fits(&open.content))
    }

    /// Takes out the blocks with this index.
    pub(super) fn close(&mut self, index: u64) -> Vec<OpenBlock<C>> {
        self.0.extract_if(.., |open| open.index == index).collect()
    }

    /// Takes out all blocks.
    pub(super) fn close_all(&mut self) -> Vec<OpenBlock<C>> {
        std::mem::take(&mut self.0)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
