//! Conversations in a key-value bucket.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::Context;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use futures_util::TryStreamExt as _;

use super::chain::{Failure, Streams, passing};
use super::names::{Place, is_plain, key_of, session_of, token_of};
use super::record::{Head, Kind, Log, fold, head_of, records_of};
use super::taken::Taken;
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Store, Stored, conflict};

/// Keeps conversations in a key-value bucket of NATS JetStream, a key each. The npm package's `natsStore` reads and writes the
/// same.
///
/// Each write is a revision of the key that names the revision it builds on, and holds only what is new: the bucket keeps every
/// revision of a key until a `replace`. A write longer than the server's `max_payload` goes as several revisions, which count
/// once the last of them is there. While the server is away, a write is tried again for 30 seconds.
#[derive(Clone)]
pub struct NatsStore {
    logs: Arc<Logs>,
    replicas: usize,
    set_up: Arc<OnceLock<()>>,
}

impl NatsStore {
    /// The store in this bucket: letters, digits, `-` and `_`. It is made with the first use.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no bucket has that name.
    pub fn new(context: Context, bucket: &str) -> Result<Self, Error> {
        if !is_plain(bucket) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "the name of a bucket is of letters, digits, \"-\" and \"_\"",
            ));
        }
        let logs = Arc::new(Logs::new(Streams::new(context, PATIENCE), bucket.to_owned()));
        Ok(Self { logs, replicas: 1, set_up: Arc::default() })
    }

    /// How often each record is kept, when the bucket is made: 1, 3 or 5.
    #[must_use]
    pub const fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    async fn logs(&self) -> Result<&Logs, Error> {
        if self.set_up.get().is_none() {
            set_up_bucket(&self.logs.streams, &self.logs.bucket, self.replicas).await?;
            // Another that made it at the same time found it there.
            let _already = self.set_up.set(());
        }
        Ok(&self.logs)
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NatsStore").field("bucket", &self.logs.bucket).finish_non_exhaustive()
    }
}

impl Store for NatsStore {
    fn read(&self, id: &str) -> BoxFuture<'static, Result<Option<Stored>, Error>> {
        let (store, id) = (self.clone(), id.to_owned());
        Box::pin(async move {
            let Log { version, text, .. } = store.logs().await?.read(&id).await?;
            Ok((version > 0).then_some(Stored { version, text }))
        })
    }

    fn append(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        let (store, id) = (self.clone(), id.to_owned());
        Box::pin(async move { store.logs().await?.write(&id, expected, Kind::Append, &lines, Taken::default()).await })
    }

    fn replace(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        let (store, id) = (self.clone(), id.to_owned());
        Box::pin(async move { store.logs().await?.write(&id, expected, Kind::Replace, &lines, Taken::default()).await })
    }

    fn delete(&self, id: &str) -> BoxFuture<'static, Result<(), Error>> {
        let (store, id) = (self.clone(), id.to_owned());
        Box::pin(async move { store.logs().await?.delete(&id).await })
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        let store = self.clone();
        Box::pin(async move { store.logs().await?.list().await })
    }
}

/// The logs of sessions, which a bucket keeps.
pub(super) struct Logs {
    streams: Streams,
    bucket: String,
    /// Version and revision that the last read or write of a session left behind.
    known: Mutex<HashMap<String, (u64, u64)>>,
}

impl Logs {
    pub(super) fn new(streams: Streams, bucket: String) -> Self {
        Self { streams, bucket, known: Mutex::default() }
    }

    /// What is kept of a session.
    pub(super) async fn read(&self, id: &str) -> Result<Log, Error> {
        let place = self.place(id)?;
        let mut records = Vec::new();
        let mut from = 1;
        while let Some(message) = self.streams.next(&place, from).await? {
            from = message.sequence + 1;
            records.push((message.sequence, String::from_utf8_lossy(&message.payload).into_owned()));
        }
        let log = fold(records.iter().map(|(sequence, text)| (*sequence, text.as_str())));
        self.remember(id, log.version, log.revision);
        Ok(log)
    }

    /// Writes as a store does, and gives the new version.
    pub(super) async fn write(
        &self,
        id: &str,
        expected: u64,
        kind: Kind,
        lines: &str,
        taken: Taken,
    ) -> Result<u64, Error> {
        let revision = self.revision_of(id, expected).await?;
        if kind == Kind::Append && expected == 0 {
            return Err(conflict(id, expected));
        }
        let version = expected + 1;
        let (first, last) = self.add(id, expected, revision, (kind, version, taken), lines).await?;
        self.remember(id, version, last);
        if kind == Kind::Replace && revision > 0 {
            self.purge_before(id, first).await;
        }
        Ok(version)
    }

    async fn delete(&self, id: &str) -> Result<(), Error> {
        self.forget(id);
        let place = self.place(id)?;
        let mut patience = self.streams.patience("deleted");
        loop {
            match self.try_delete(&place).await {
                Ok(()) => return Ok(()),
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    async fn try_delete(&self, place: &Place) -> Result<(), Failure> {
        let stream = self.streams.context.get_stream_no_info(&place.stream).await.map_err(passing)?;
        stream.purge().filter(place.subject.clone()).await.map_err(passing)?;
        Ok(())
    }

    async fn list(&self) -> Result<Vec<String>, Error> {
        let mut patience = self.streams.patience("listed");
        loop {
            match self.try_list().await {
                Ok(mut ids) => {
                    ids.sort_unstable();
                    return Ok(ids);
                }
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    async fn try_list(&self) -> Result<Vec<String>, Failure> {
        let Place { stream, subject } = key_of(&self.bucket, "");
        let stream = self.streams.context.get_stream_no_info(stream).await.map_err(passing)?;
        let subjects = stream.info_with_subjects(format!("{subject}>")).await.map_err(passing)?;
        let subjects: Vec<(String, usize)> = subjects.try_collect().await.map_err(passing)?;
        Ok(subjects.iter().filter_map(|(key, _)| session_of(key.strip_prefix(&subject)?)).collect())
    }

    /// Keeps no place in memory for a session that is not at work any more.
    pub(super) fn forget(&self, id: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Makes every write fail that builds on what was there before.
    pub(super) async fn fence(&self, id: &str, log: &Log) -> Result<(), Error> {
        let write = (Kind::Fence, log.version, log.taken.clone());
        let (_, revision) = self.add(id, log.version, log.revision, write, "").await?;
        self.remember(id, log.version, revision);
        Ok(())
    }

    /// The revision that a write of this version builds on.
    async fn revision_of(&self, id: &str, version: u64) -> Result<u64, Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        if let Some((known, revision)) = known
            && known == version
        {
            return Ok(revision);
        }
        let Some(last) = self.streams.last(&self.place(id)?).await? else {
            return if version == 0 { Ok(0) } else { Err(conflict(id, version)) };
        };
        let text = String::from_utf8_lossy(&last.payload);
        let head = text.split('\n').next().and_then(head_of);
        if let Some(head) = head
            && (head.kind == Kind::Fence || head.part + 1 == head.parts)
            && head.version == version
        {
            return Ok(last.sequence);
        }
        // The end of a write that was not made to its end, or another version.
        let log = self.read(id).await?;
        if log.version == version { Ok(log.revision) } else { Err(conflict(id, version)) }
    }

    /// The sequences of the first and the last record.
    async fn add(
        &self,
        id: &str,
        expected: u64,
        previous: u64,
        (kind, version, taken): (Kind, u64, Taken),
        lines: &str,
    ) -> Result<(u64, u64), Error> {
        let place = self.place(id)?;
        let write = super::nonce()?;
        let head = Head { v: 1, id: write.clone(), version, kind, taken, part: 0, parts: 1 };
        let mut first = None;
        let mut revision = previous;
        for (part, record) in records_of(&head, lines, self.streams.max_bytes()).iter().enumerate() {
            let written = self.streams.chain(&place, revision, &format!("{write}.{part}"), record).await;
            let sequence = match written {
                Ok(Some(sequence)) => sequence,
                Ok(None) => {
                    self.forget(id);
                    return Err(conflict(id, expected));
                }
                Err(error) => {
                    self.forget(id);
                    return Err(error);
                }
            };
            first = first.or(Some(sequence));
            revision = sequence;
        }
        Ok((first.unwrap_or(revision), revision))
    }

    /// Takes away what a replacement stands for. Readers do not look at it: what fails here is only space, which the next
    /// replacement frees.
    async fn purge_before(&self, id: &str, first: u64) {
        if let Ok(place) = self.place(id)
            && let Ok(stream) = self.streams.context.get_stream_no_info(&place.stream).await
        {
            let _later = stream.purge().filter(place.subject).sequence(first).await;
        }
    }

    fn place(&self, id: &str) -> Result<Place, Error> {
        Ok(key_of(&self.bucket, &token_of(id)?))
    }

    fn remember(&self, id: &str, version: u64, revision: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(id.to_owned(), (version, revision));
    }
}

/// Makes the bucket of sessions: every revision counts until a replacement takes the place of all.
pub(super) async fn set_up_bucket(streams: &Streams, bucket: &str, replicas: usize) -> Result<(), Error> {
    ensure_stream(streams, Config { max_messages_per_subject: -1, ..bucket_config(bucket, replicas) }).await
}

/// What makes a stream a key-value bucket.
pub(super) fn bucket_config(bucket: &str, replicas: usize) -> Config {
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        num_replicas: replicas,
        ..Config::default()
    }
}

/// Makes a stream unless it is there; one that is there is left as it is.
pub(super) async fn ensure_stream(streams: &Streams, config: Config) -> Result<(), Error> {
    let mut patience = streams.patience("set up");
    loop {
        match try_ensure(&streams.context, &config).await {
            Ok(()) => return Ok(()),
            Err(failure) => patience.after(failure).await?,
        }
    }
}

async fn try_ensure(context: &Context, config: &Config) -> Result<(), Failure> {
    if context.get_stream(&config.name).await.is_ok() {
        return Ok(());
    }
    let Err(error) = context.create_stream(config).await else { return Ok(()) };
    // Somebody else may have made it in the meantime.
    if context.get_stream(&config.name).await.is_ok() { Ok(()) } else { Err(passing(error)) }
}

/// How long something is tried again while the server is away.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Sessions whose last revision is kept in mind; of others it is read again.
const MAX_KNOWN: usize = 10_000;
