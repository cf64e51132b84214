//! The encoded form of past turns, kept so that a request body is a join and not a re-serialisation.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::message::{Message, ModelRef};
use super::request::{FileKinds, Model, ToolSpec};
use super::transcript::{self, BEGINNING, CallIds, GO_ON, Group, Reader, Rules, Turn, TurnContent};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::work;

/// The most bytes of encoded turns that are kept for one conversation: more than the context window of any model.
pub const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The most histories that are kept for one conversation: its own, and those of sub-agents and of models that hooks call.
const MAX_HISTORIES: usize = 8;

/// How many groups further on the encoded form of a group is looked for: an edit leaves what it keeps in its order.
const LOOK_AHEAD: usize = 32;

/// Encoded turn groups of one conversation. Evictable at any time, and no part of the saved state.
///
/// A group is known by the very messages it was made of and by the model it was made for, so an edited message or another
/// model never gets the bytes of the old one. What a request costs is what is new since the one before.
#[derive(Debug, Default)]
pub struct EncodedCache {
    /// The one that was used last comes last.
    histories: Vec<History>,
    readers: Vec<CachedReader>,
    tools: Option<CachedTools>,
}

/// Everything that the encoding of a history depends on. The address is there since it can choose the server's peculiarities.
#[derive(Debug, PartialEq, Eq)]
struct CachedReader {
    model: ModelRef,
    address: Option<Arc<str>>,
    files: FileKinds,
    rules: Rules,
}

#[derive(Debug)]
struct CachedTools {
    reader: u32,
    tools: Arc<[ToolSpec]>,
    provider_tools: Arc<[RawJson]>,
    json: Arc<str>,
}

/// A history as it was sent last.
#[derive(Debug)]
struct History {
    reader: u32,
    messages: Vec<Arc<Message>>,
    groups: Vec<EncodedGroup>,
    calls: CallIds,
}

#[derive(Clone, Debug)]
struct EncodedGroup {
    /// Where its messages begin and end.
    range: Range<usize>,
    repetition: u32,
    is_paused: bool,
    /// Empty when nothing of it is sent.
    json: Arc<str>,
}

/// The cache, opened for one request to one model.
#[derive(Debug)]
pub(super) struct OpenCache<'cache> {
    cache: &'cache mut EncodedCache,
    reader: u32,
}

impl EncodedCache {
    /// The bytes of encoded turns that are kept.
    pub fn bytes(&self) -> usize {
        self.histories.iter().flat_map(|history| &history.groups).map(|group| group.json.len()).sum()
    }

    /// Opens the cache for a request; what earlier requests left is evicted if it is too much.
    pub(super) fn open(&mut self, model: &Model, rules: Rules) -> OpenCache<'_> {
        // First all but the last one.
        while self.histories.len() > MAX_HISTORIES || self.bytes() > MAX_CACHE_BYTES {
            self.histories.remove(0);
        }
        let address = model.address().cloned();
        let reader = CachedReader { model: model.reference(), address, files: model.files, rules };
        let known = self.readers.iter().position(|known| *known == reader);
        let position = known.unwrap_or_else(|| {
            self.readers.push(reader);
            self.readers.len() - 1
        });
        OpenCache { reader: u32::try_from(position).unwrap_or(u32::MAX), cache: self }
    }

    /// What is kept of a history: the one that goes on as this one began, or that this one looks like an edit of.
    fn history(&mut self, reader: u32, messages: &[Arc<Message>]) -> History {
        let of_reader = || self.histories.iter().enumerate().filter(|(_, known)| known.reader == reader);
        let longest = of_reader().map(|(at, known)| (shared(&known.messages, messages), at)).max();
        let newest = messages.iter().rev().take(LOOK_AHEAD);
        let is_known = |last: &Arc<Message>| newest.clone().any(|message| Arc::ptr_eq(message, last));
        let place = match longest {
            Some((1.., at)) => Some(at),
            _ => of_reader().find(|(_, known)| known.messages.last().is_some_and(is_known)).map(|(at, _)| at),
        };
        match place {
            Some(at) => self.histories.remove(at),
            None => History { reader, messages: Vec::new(), groups: Vec::new(), calls: CallIds::default() },
        }
    }
}

/// How many messages two histories have in common from the beginning.
fn shared(one: &[Arc<Message>], other: &[Arc<Message>]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
}

impl History {
    /// Becomes this history. Groups that are not known are made by `encode`.
    fn follow(&mut self, messages: &[Arc<Message>], reader: &Reader<'_>, encode: &dyn Fn(&Turn<'_>) -> String) {
        let same = shared(&self.messages, messages);
        // Where a group ends depends on the message behind it.
        let settled = self.groups.partition_point(|group| group.range.end < same);
        let loose = self.groups.split_off(settled);
        let start = self.groups.last().map_or(0, |group| group.range.end);
        let earlier = self.messages.split_off(start);
        let of = |group: &EncodedGroup| earlier.get(group.range.start - start..group.range.end - start);
        for group in &loose {
            self.calls.forget(of(group).unwrap_or_default(), group.repetition);
        }
        let mut rest = messages.get(start..).unwrap_or_default();
        work::count(rest.len());
        self.messages.extend_from_slice(rest);
        let (mut end, mut next) = (start, 0);
        while !rest.is_empty() {
            let group = transcript::next_group(rest, reader, &mut self.calls);
            let is_same = |known: &EncodedGroup| {
                known.repetition == group.repetition
                    && known.is_paused == group.is_paused
                    && known.range.len() == group.messages.len()
                    && of(known).is_some_and(|known| shared(known, group.messages) == known.len())
            };
            let ahead = loose.iter().enumerate().skip(next).take(LOOK_AHEAD);
            let json = match ahead.into_iter().find(|(_, known)| is_same(known)) {
                Some((at, known)) => {
                    next = at + 1;
                    known.json.clone()
                }
                None => {
                    let json = group.turn(reader).map(|turn| encode(&turn)).unwrap_or_default();
                    work::count(json.len());
                    json.into()
                }
            };
            let range = end..end + group.messages.len();
            end = range.end;
            rest = rest.get(group.messages.len()..).unwrap_or_default();
            let Group { repetition, is_paused, .. } = group;
            self.groups.push(EncodedGroup { range, repetition, is_paused, json });
        }
    }

    fn group(&self, encoded: &EncodedGroup) -> Group<'_> {
        let EncodedGroup { range, repetition, is_paused, .. } = encoded;
        let messages = self.messages.get(range.clone()).unwrap_or_default();
        Group { messages, repetition: *repetition, is_paused: *is_paused }
    }
}

impl OpenCache<'_> {
    /// The encoded groups of a history; those that are not there are made by `encode`, which may make an empty text of a
    /// group of which nothing is sent.
    ///
    /// # Errors
    ///
    /// `invalid-input` when there is nothing to send.
    pub(super) fn turns(
        &mut self,
        history: &[Arc<Message>],
        reader: &Reader<'_>,
        encode: &dyn Fn(&Turn<'_>) -> String,
    ) -> Result<Vec<Arc<str>>, Error> {
        let mut kept = self.cache.history(self.reader, history);
        kept.follow(history, reader, encode);
        let sent = || kept.groups.iter().filter(|group| !group.json.is_empty());
        let mut turns: Vec<_> = sent().map(|group| group.json.clone()).collect();
        let ends = sent().next().zip(sent().next_back()).map(|(first, last)| (kept.group(first), kept.group(last)));
        let (begins_with_user, ends_with_model) = match ends {
            Some((first, last)) => (first.begins_with_user(), last.ends_with_model(reader)),
            None => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "there is nothing to send: no message has any content",
                ));
            }
        };
        self.cache.histories.push(kept);
        let note = |text| encode(&Turn::User(vec![TurnContent::Text(Cow::Borrowed(text))]));
        if reader.rules.begins_with_user && !begins_with_user {
            turns.insert(0, note(BEGINNING).into());
        }
        if reader.rules.ends_with_user && ends_with_model {
            turns.push(note(GO_ON).into());
        }
        Ok(turns)
    }

    /// The encoded tools, made by `encode` if they are not there. Tools of the provider count, since they can take the
    /// place of others.
    pub(super) fn tools(
        &mut self,
        tools: &Arc<[ToolSpec]>,
        provider_tools: &Arc<[RawJson]>,
        encode: &dyn Fn() -> Result<String, Error>,
    ) -> Result<Arc<str>, Error> {
        let is_same = |known: &&CachedTools| {
            known.reader == self.reader && Arc::ptr_eq(&known.tools, tools) && known.provider_tools == *provider_tools
        };
        if let Some(known) = self.cache.tools.as_ref().filter(is_same) {
            return Ok(known.json.clone());
        }
        let json: Arc<str> = encode()?.into();
        self.cache.tools = Some(CachedTools {
            reader: self.reader,
            tools: tools.clone(),
            provider_tools: provider_tools.clone(),
            json: json.clone(),
        });
        Ok(json)
    }
}
