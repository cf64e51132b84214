//! Whether a run is at work, as the events of a session tell it.

use crate::agent::EventKind;

use super::event::SessionEvent;

/// Whether a run is at work as of the end of a message of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) at: At,
    pub(super) run_id: Option<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum At {
    #[default]
    None,
    Running,
    Suspended,
    Ended,
}

impl At {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Ended => "ended",
        }
    }

    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "running" => Self::Running,
            "suspended" => Self::Suspended,
            "ended" => Self::Ended,
            _ => Self::None,
        }
    }
}

impl Phase {
    /// The phase after an event.
    pub(super) fn after(&self, event: &SessionEvent) -> Self {
        let run_id = self.run_id.clone();
        match event {
            SessionEvent::SessionRestored { is_open, .. } => {
                Self { at: if *is_open { At::Running } else { At::Ended }, run_id }
            }
            SessionEvent::Run(event) => {
                let run_id_of_event = || Some(event.run_id.0.to_string());
                match &event.kind {
                    EventKind::RunStart => Self { at: At::Running, run_id: run_id_of_event() },
                    EventKind::RunSuspended => Self { at: At::Suspended, run_id: run_id_of_event() },
                    EventKind::RunEnd(_) => Self { at: At::Ended, run_id: run_id_of_event() },
                    EventKind::ApprovalResponse { .. } | EventKind::ToolResult(_) if self.at == At::Suspended => {
                        Self { at: At::Running, run_id }
                    }
                    _ => self.clone(),
                }
            }
            _ => self.clone(),
        }
    }
}
