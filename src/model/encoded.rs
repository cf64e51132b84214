//! The encoded form of past turns, kept so that a request body is a join and not a re-serialisation.

use std::collections::HashMap;
use std::sync::Arc;

use super::message::{Message, ModelRef};
use super::request::ToolSpec;
use super::transcript::{self, Group, Reader, Turn};
use crate::error::Error;

/// The most bytes of encoded turns that are kept for one conversation: more than the context window of any model.
pub const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Encoded turn groups of one conversation. Evictable at any time, and no part of the saved state.
///
/// An entry is found by the very messages it was made of and by the model it was made for, so an edited message or
/// another model never gets the bytes of the old one.
#[derive(Debug, Default)]
pub struct EncodedCache {
    entries: HashMap<Key, Entry>,
    models: Vec<ModelRef>,
    tools: Option<(u32, Arc<[ToolSpec]>, Arc<str>)>,
    bytes: usize,
    request: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    model: u32,
    /// The address of the first message. The entry holds the message, so no other one can come to this address.
    first: usize,
    repetition: u32,
}

#[derive(Debug)]
struct Entry {
    messages: Vec<Arc<Message>>,
    json: Arc<str>,
    last_used: u64,
}

/// The cache, opened for one request to one model.
#[derive(Debug)]
pub(super) struct OpenCache<'cache> {
    cache: &'cache mut EncodedCache,
    model: u32,
}

impl EncodedCache {
    /// Opens the cache for a request; what earlier requests left is evicted if it is too much.
    pub(super) fn open(&mut self, model: &ModelRef) -> OpenCache<'_> {
        if self.bytes > MAX_CACHE_BYTES {
            let last = self.request;
            self.entries.retain(|_, entry| entry.last_used == last);
            self.bytes = self.entries.values().map(|entry| entry.json.len()).sum();
        }
        if self.bytes > MAX_CACHE_BYTES {
            self.entries.clear();
            self.bytes = 0;
        }
        self.request += 1;
        let known = self.models.iter().position(|known| known == model);
        let position = known.unwrap_or_else(|| {
            self.models.push(model.clone());
            self.models.len() - 1
        });
        OpenCache { model: u32::try_from(position).unwrap_or(u32::MAX), cache: self }
    }
}

impl OpenCache<'_> {
    /// The encoded groups of a history; those that are not there are made by `encode`. A group of which nothing is sent
    /// is an empty text.
    pub(super) fn turns(
        &mut self,
        history: &[Arc<Message>],
        reader: &Reader<'_>,
        encode: impl Fn(&Turn<'_>) -> Result<String, Error>,
    ) -> Result<Vec<Arc<str>>, Error> {
        let groups = transcript::groups(history);
        let encoded = groups
            .iter()
            .map(|group| self.group(group, || group.turn(reader).map_or(Ok(String::new()), |turn| encode(&turn))));
        encoded.collect()
    }

    fn group(&mut self, group: &Group<'_>, encode: impl FnOnce() -> Result<String, Error>) -> Result<Arc<str>, Error> {
        let first = group.messages.first().map_or(0, |message| Arc::as_ptr(message) as usize);
        let key = Key { model: self.model, first, repetition: group.repetition };
        if let Some(entry) = self.cache.entries.get_mut(&key) {
            let is_same = entry.messages.len() == group.messages.len()
                && entry.messages.iter().zip(group.messages).all(|(left, right)| Arc::ptr_eq(left, right));
            if is_same {
                entry.last_used = self.cache.request;
                return Ok(entry.json.clone());
            }
        }
        let json: Arc<str> = encode()?.into();
        let entry = Entry { messages: group.messages.to_vec(), json: json.clone(), last_used: self.cache.request };
        self.cache.bytes += json.len();
        if let Some(replaced) = self.cache.entries.insert(key, entry) {
            self.cache.bytes -= replaced.json.len();
        }
        Ok(json)
    }

    /// The encoded list of tools, made by `encode` if it is not there.
    pub(super) fn tools(
        &mut self,
        tools: &Arc<[ToolSpec]>,
        encode: impl FnOnce() -> Result<String, Error>,
    ) -> Result<Arc<str>, Error> {
        let known = self.cache.tools.as_ref();
        let same = known.filter(|(model, known, _)| *model == self.model && Arc::ptr_eq(known, tools));
        if let Some((_, _, json)) = same {
            return Ok(json.clone());
        }
        let json: Arc<str> = encode()?.into();
        self.cache.tools = Some((self.model, tools.clone(), json.clone()));
        Ok(json)
    }
}
