//! Taking over a changed configuration file while clients are connected.

use std::path::Path;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::config::Config;
use crate::listener::Shim;
use crate::log::note;
use crate::state::Version;

/// Looks at the file for ever. A change counts for connections made after it; a file with an error changes nothing.
pub(crate) async fn follow_config(shim: &Shim, file: &Path) {
    let mut known = Version::of(file);
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let version = Version::of(file);
        // Editors that write a file anew leave a moment without one.
        if version == known || version.is_none() {
            continue;
        }
        known = version;
        match Config::read(file) {
            Ok(config) => {
                config.remarks.iter().for_each(note);
                note(format!("{} has changed; it serves now: {}", file.display(), config.names()));
                shim.replace_config(config);
            }
            Err(error) => note(format!("the changed configuration has errors, so that the last one stays:\n{error}")),
        }
    }
}

/// As long as a person takes from the editor to the browser; one look is one system call.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
