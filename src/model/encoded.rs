//! The encoded form of past turns, kept so that a request body is a join and not a re-serialisation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::message::{Message, ModelRef};
use super::request::{FileKinds, Model, ToolSpec};
use super::transcript::{self, BEGINNING, GO_ON, Group, Reader, Turn, TurnContent};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;

/// The most bytes of encoded turns that are kept for one conversation: more than the context window of any model.
pub const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Encoded turn groups of one conversation. Evictable at any time, and no part of the saved state.
///
/// An entry is found by the very messages it was made of and by the model it was made for, so an edited message or
/// another model never gets the bytes of the old one.
#[derive(Debug, Default)]
pub struct EncodedCache {
    entries: HashMap<Key, Entry, BuildHasherDefault<KeyHasher>>,
    readers: Vec<CachedReader>,
    tools: Option<CachedTools>,
    bytes: usize,
    request: u64,
}

/// Everything of a model that its encoding depends on. The address is there since it can choose the server's peculiarities.
#[derive(Debug, PartialEq, Eq)]
struct CachedReader {
    model: ModelRef,
    address: Option<Arc<str>>,
    files: FileKinds,
}

#[derive(Debug)]
struct CachedTools {
    reader: u32,
    tools: Arc<[ToolSpec]>,
    provider_tools: Arc<[RawJson]>,
    json: Arc<str>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    reader: u32,
    /// The address of the first message. The entry holds the message, so no other one can come to this address.
    first: usize,
    repetition: u32,
    is_paused: bool,
}

/// Spreads a key's numbers by multiplication. All groups of a history are looked up for every request, and nobody outside
/// can choose an address, which is what the standard library's slower hash guards against.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let number = chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            self.write_u64(number);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// The map takes the place from the low bits and a tag from the high ones; the multiplication mixes upwards only.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
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
    reader: u32,
}

impl EncodedCache {
    /// The bytes of encoded turns that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Opens the cache for a request; what earlier requests left is evicted if it is too much.
    pub(super) fn open(&mut self, model: &Model) -> OpenCache<'_> {
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
        let reader = CachedReader { model: model.reference(), address: model.address().cloned(), files: model.files };
        let known = self.readers.iter().position(|known| *known == reader);
        let position = known.unwrap_or_else(|| {
            self.readers.push(reader);
            self.readers.len() - 1
        });
        OpenCache { reader: u32::try_from(position).unwrap_or(u32::MAX), cache: self }
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
        let groups = transcript::groups(history, reader);
        let mut turns = Vec::with_capacity(groups.len() + 2);
        let mut sent = Vec::with_capacity(groups.len());
        for group in &groups {
            let json = self.group(group, &|| group.turn(reader).map(|turn| encode(&turn)).unwrap_or_default());
            if !json.is_empty() {
                turns.push(json);
                sent.push(group);
            }
        }
        let (Some(first), Some(last)) = (sent.first(), sent.last()) else {
            return Err(Error::new(ErrorKind::InvalidInput, "there is nothing to send: no message has any content"));
        };
        let note = |text| encode(&Turn::User(vec![TurnContent::Text(Cow::Borrowed(text))]));
        if reader.rules.begins_with_user && !first.begins_with_user() {
            turns.insert(0, note(BEGINNING).into());
        }
        if reader.rules.ends_with_user && last.ends_with_model(reader) {
            turns.push(note(GO_ON).into());
        }
        Ok(turns)
    }

    fn group(&mut self, group: &Group<'_>, encode: &dyn Fn() -> String) -> Arc<str> {
        let first = group.messages.first().map_or(0, |message| Arc::as_ptr(message) as usize);
        let key = Key { reader: self.reader, first, repetition: group.repetition, is_paused: group.is_paused };
        if let Some(entry) = self.cache.entries.get_mut(&key) {
            let is_same = entry.messages.len() == group.messages.len()
                && entry.messages.iter().zip(group.messages).all(|(left, right)| Arc::ptr_eq(left, right));
            if is_same {
                entry.last_used = self.cache.request;
                return entry.json.clone();
            }
        }
        let json: Arc<str> = encode().into();
        let entry = Entry { messages: group.messages.to_vec(), json: json.clone(), last_used: self.cache.request };
        self.cache.bytes += json.len();
        if let Some(replaced) = self.cache.entries.insert(key, entry) {
            self.cache.bytes -= replaced.json.len();
        }
        json
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
