//! Answers that a stateless server allows to be used again for a while (revision 2026-07-28, "Caching").
//!
//! One connection has one authorization, so that answers for it alone (`cacheScope: "private"`) are kept like all others.

use super::{Client, Collection, Era, OperationId, Phase, Reply, Request};
use crate::json::{Object, RawJson, read_string};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// The most answers that are kept. The one that is good for the shortest time makes way for a newer one.
const ANSWER_LIMIT: usize = 64;

/// The largest resource that is kept, in bytes.
const SIZE_LIMIT: usize = 256 * 1024;

/// The longest time that an answer is kept, in milliseconds, whatever the server says: one day.
const LONGEST: u64 = 24 * 60 * 60 * 1_000;

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Cache(OrderedMap<Key, Kept>);

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    List(&'static str),
    Resource(String),
}

#[derive(Debug)]
struct Kept {
    reply: Reply,
    until: Millis,
}

impl Cache {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The milliseconds for which an answer is good; 0 when it does not say.
pub(super) fn time_to_live(result: &RawJson) -> u64 {
    let object = Object::parse(result.as_str()).ok();
    object.and_then(|object| object.integer("ttlMs")).map_or(0, |milliseconds: u64| milliseconds.min(LONGEST))
}

fn key(request: &Request) -> Option<Key> {
    match request {
        Request::ListTools => Some(Key::List(Collection::Tools.method())),
        Request::List(collection) => Some(Key::List(collection.method())),
        Request::Other { method, params } if method == "resources/read" => {
            read_string(params.member("uri")?.as_str()).map(Key::Resource)
        }
        _ => None,
    }
}

impl Client {
    /// The answer that was kept for a request, while it is good.
    pub(super) fn kept(&self, now: Millis, request: &Request) -> Option<Reply> {
        let Phase::Ready { era: Era::Stateless, .. } = self.phase else { return None };
        let kept = self.cache.0.get(&key(request)?).filter(|kept| now < kept.until)?;
        // The same list can be asked for in two forms.
        let fits = matches!(
            (request, &kept.reply),
            (Request::ListTools, Reply::Tools(_)) | (Request::List(_), Reply::Entries(_)) | (_, Reply::Value(_))
        );
        fits.then(|| kept.reply.clone())
    }

    /// Keeps an answer for as long as the server allows.
    pub(super) fn keep(&mut self, now: Millis, operation: OperationId, time_to_live: u64, reply: &Reply) {
        let Phase::Ready { era: Era::Stateless, .. } = self.phase else { return };
        let Some(key) = self.operations.get(&operation).and_then(|operation| key(&operation.request)) else { return };
        let is_large = matches!(reply, Reply::Value(value) if value.as_str().len() > SIZE_LIMIT);
        if time_to_live == 0 || is_large {
            return self.forget(&key);
        }
        self.cache.0.retain(|_, kept| now < kept.until);
        if self.cache.0.len() >= ANSWER_LIMIT {
            let soonest = self.cache.0.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone());
            if let Some(key) = soonest {
                self.forget(&key);
            }
        }
        self.cache.0.insert(key, Kept { reply: reply.clone(), until: now.after(time_to_live) });
    }

    /// Forgets what a notification says has changed.
    pub(super) fn forget_changed(&mut self, method: &str, uri: Option<String>) {
        let lists: &[Collection] = match method {
            "notifications/tools/list_changed" => &[Collection::Tools],
            "notifications/prompts/list_changed" => &[Collection::Prompts],
            "notifications/resources/list_changed" => &[Collection::Resources, Collection::ResourceTemplates],
            _ => &[],
        };
        for list in lists {
            self.forget(&Key::List(list.method()));
        }
        if let Some(uri) = uri {
            self.forget(&Key::Resource(uri));
        }
    }

    fn forget(&mut self, key: &Key) {
        self.cache.0.remove(key);
    }
}
