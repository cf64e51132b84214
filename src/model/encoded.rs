//! The encoded form of past turns, kept so that a request body is a join and not a re-serialisation.

/// Encoded turn groups of one conversation. Evictable at any time, and no part of the saved state.
#[derive(Debug, Default)]
pub struct EncodedCache {}
