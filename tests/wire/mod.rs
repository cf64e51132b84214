//! What the runners of cases and of recorded traffic share: replaying an answer and comparing what came of it.

pub(crate) mod bytes;
pub(crate) mod compare;
pub(crate) mod replay;
