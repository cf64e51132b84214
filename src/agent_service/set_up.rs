//! The streams of a service, which its workers make when they are missing.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use super::chain::{Failure, Streams, passing};
use super::names::Names;
use super::store::{bucket_config, ensure_stream, set_up_bucket};
use crate::error::Error;

/// The limits of the streams of a service. What is there already is left as it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceLimits {
    /// How long events are kept. Default seven days.
    pub event_age: Duration,
    /// The most messages of events of one session: the oldest are dropped. Default 10 000.
    pub events_per_session: i64,
    /// The most bytes of all events: the oldest are dropped. Default: no limit.
    pub event_bytes: Option<i64>,
    /// How long the id of an input is remembered, so that an input that is sent again counts once. Default two minutes.
    pub duplicate_window: Duration,
    /// How often each message is kept, 1, 3 or 5. Default 1.
    pub replicas: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            event_age: Duration::from_secs(7 * 86_400),
            events_per_session: 10_000,
            event_bytes: None,
            duplicate_window: DUPLICATES,
            replicas: 1,
        }
    }
}

/// Makes what is missing, and gives the consumer that all workers share.
pub(super) async fn set_up(
    streams: &Streams,
    names: &Names,
    lease: Duration,
    limits: &ServiceLimits,
) -> Result<Consumer<pull::Config>, Error> {
    let replicas = limits.replicas;
    ensure_stream(
        streams,
        Config {
            name: names.input_stream(),
            subjects: vec![names.input_subjects()],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            discard: DiscardPolicy::New,
            duplicate_window: limits.duplicate_window,
            num_replicas: replicas,
            ..Config::default()
        },
    )
    .await?;
    ensure_stream(
        streams,
        Config {
            name: names.event_stream(),
            subjects: vec![names.event_subjects()],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            max_age: limits.event_age,
            max_messages_per_subject: limits.events_per_session,
            max_bytes: limits.event_bytes.unwrap_or(-1),
            duplicate_window: limits.event_age.min(DUPLICATES),
            num_replicas: replicas,
            ..Config::default()
        },
    )
    .await?;
    set_up_bucket(streams, &names.sessions(), replicas).await?;
    ensure_stream(streams, bucket_config(&names.claims(), replicas)).await?;
    let duplicate_window = lease.min(DUPLICATES);
    let workers = bucket_config(&names.workers(), replicas);
    ensure_stream(streams, Config { max_age: lease, duplicate_window, ..workers }).await?;
    let mut patience = streams.patience("set up");
    loop {
        match try_consumer(streams, names, lease).await {
            Ok(consumer) => return Ok(consumer),
            Err(failure) => patience.after(failure).await?,
        }
    }
}

async fn try_consumer(streams: &Streams, names: &Names, lease: Duration) -> Result<Consumer<pull::Config>, Failure> {
    let stream = streams.context.get_stream_no_info(names.input_stream()).await.map_err(passing)?;
    let config = pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: lease,
        max_deliver: -1,
        max_ack_pending: MAX_OPEN,
        max_waiting: MAX_PULLS,
        ..pull::Config::default()
    };
    stream.get_or_create_consumer(CONSUMER, config).await.map_err(passing)
}

/// The durable consumer that all workers share.
const CONSUMER: &str = "workers";
const DUPLICATES: Duration = Duration::from_secs(120);
/// The most messages that are delivered and not settled, of all workers.
const MAX_OPEN: i64 = 100_000;
/// The most requests for messages that stand, of all workers.
const MAX_PULLS: i64 = 8_192;
