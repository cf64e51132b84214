//! What a server's processes are held to.

use std::time::Duration;

/// The `limits` of a server in the configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// A process that no message goes to or comes from for so long is ended. Default: never.
    pub(crate) idle: Option<Duration>,
    /// A process that is so old is ended. Default: never.
    pub(crate) lifetime: Option<Duration>,
    /// How many processes of the server may run at the same time. Default: as many as the shim may run.
    pub(crate) processes: Option<usize>,
}
