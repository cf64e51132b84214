//! What a worker that has claimed a session does first.

use super::event::SessionEvent;
use super::event_queue::{Said, Tail};
use super::phase::At;
use super::saved::Saved;
use crate::time::Millis;

/// What a worker that has claimed a session does first, by what is saved of it and by how its events end.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Events that say what holds of what was shown; none when the events end as the session does.
    pub(super) events: Vec<Said>,
    /// Whether a run is to be gone on with at once.
    pub(super) resumes: bool,
    /// Whether a worker that is only slow may still be at the session.
    pub(super) fences: bool,
    /// Whether a run is not finished.
    pub(super) is_open: bool,
    /// Whether nothing is left of a run but to show its end, which the events have or `events` tells.
    pub(super) is_ending: bool,
}

/// The plan for a session of which this text is saved, empty for none.
pub(super) fn plan_of(text: &str, tail: &Tail, now: Millis) -> Plan {
    let is_clean = matches!(tail.phase.at, At::None | At::Ended);
    let saved = Saved::new(text);
    let state = saved.state();
    let (is_open, is_ending) = (state.is_open(), state.is_ending());
    let restored = || {
        let messages = saved.since_last_prompt();
        let results = if is_open { saved.open_results(&messages) } else { Vec::new() };
        Said::new(&SessionEvent::SessionRestored { is_open, messages, results }, &tail.phase)
    };
    let rests = Plan { is_open, is_ending, ..Plan::default() };
    if text.is_empty() {
        let events = if is_clean { Vec::new() } else { vec![restored()] };
        return Plan { events, ..rests };
    }
    if is_open {
        if tail.phase.at == At::Suspended && tail.phase.run_id == state.run_id() {
            return Plan { resumes: state.due_at().is_some_and(|due| due <= now), ..rests };
        }
        return Plan { events: vec![restored()], resumes: true, fences: true, ..rests };
    }
    let is_told = tail.phase.at == At::Ended && (!is_ending || tail.phase.run_id == state.run_id());
    if is_told || (is_clean && !is_ending) {
        return rests;
    }
    let run_id = state.run_id();
    let end = state.end().map(|end| Said::end(&end, run_id));
    Plan { events: std::iter::once(restored()).chain(end).collect(), fences: true, ..rests }
}

#[cfg(test)]
mod tests {
    use super::super::phase::Phase;
    use super::*;

    fn tail(at: At, run_id: &str) -> Tail {
        Tail { sequence: 7, phase: Phase { at, run_id: Some(run_id.to_owned()) } }
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.events.iter().map(|said| said.name().to_owned()).collect()
    }

    fn state(phase: &str) -> String {
        format!(
            "{{\"format\":\"crablet-session\"}}\n{{\"type\":\"state\",\"head\":null,\"run\":{{\"id\":\"r\",\"steps\":1,\
            \"timers\":[{{\"at\":50}}],\"phase\":{phase}}}}}\n"
        )
    }

    #[test]
    fn a_run_that_was_at_work_is_gone_on_with_once_slower_workers_are_kept_out() {
        let plan = plan_of(&state("{\"type\":\"calling\"}"), &tail(At::Running, "r"), Millis(1));
        assert_eq!(names(&plan), ["session-restored"]);
        assert!(plan.resumes && plan.fences && plan.is_open);
    }

    #[test]
    fn a_run_that_waits_for_a_person_is_let_be_until_its_deadline() {
        let text = state("{\"type\":\"tools\",\"calls\":[]}");
        let plan = plan_of(&text, &tail(At::Suspended, "r"), Millis(49));
        assert!(plan.events.is_empty() && !plan.resumes && !plan.fences && plan.is_open);
        assert!(plan_of(&text, &tail(At::Suspended, "r"), Millis(50)).resumes);
        assert!(plan_of(&text, &tail(At::Suspended, "another"), Millis(49)).fences);
    }

    #[test]
    fn an_end_that_was_saved_and_not_shown_is_shown() {
        let text = state("{\"type\":\"ending\",\"stopReason\":\"stop\",\"text\":\"\",\"usage\":{}}");
        let plan = plan_of(&text, &tail(At::Running, "r"), Millis(1));
        assert_eq!(names(&plan), ["session-restored", "run-end"]);
        assert!(plan.fences && !plan.resumes && plan.is_ending);
        assert!(plan_of(&text, &tail(At::Ended, "r"), Millis(1)).events.is_empty());
    }

    #[test]
    fn what_was_shown_of_a_run_that_was_never_saved_is_taken_back() {
        assert_eq!(names(&plan_of("", &tail(At::Running, "r"), Millis(1))), ["session-restored"]);
        assert!(names(&plan_of("", &tail(At::None, "r"), Millis(1))).is_empty());
    }
}
