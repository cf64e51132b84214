//! The origins that a token is for.

pub(crate) use crablet::mcp::server::http::{NotAnOrigin, Origin};

/// Whether a token for these origins, or for a program without one when there are none, works with this `Origin` header, or
/// without one.
pub(crate) fn allow(origins: &[Origin], header: Option<&str>) -> bool {
    match header {
        Some(header) => origins.iter().any(|origin| origin.matches(header)),
        None => origins.is_empty(),
    }
}

/// The clients that a token for these origins is for, for a list that people read.
pub(crate) fn list(origins: &[Origin]) -> String {
    match origins {
        [] => "programs without an origin".to_owned(),
        origins => origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}
