//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use crablet::Millis;

/// Now, as Unix time.
pub(crate) fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
