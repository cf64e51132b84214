//! What the runners of cases and of recorded traffic share: replaying an answer and comparing what came of it.

#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod asked;
pub(crate) mod blocks;
pub(crate) mod bytes;
pub(crate) mod compare;
pub(crate) mod documented;
pub(crate) mod drops;
pub(crate) mod features;
pub(crate) mod files;
pub(crate) mod frames;
pub(crate) mod history;
pub(crate) mod intent;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod scanned;
pub(crate) mod sources;
