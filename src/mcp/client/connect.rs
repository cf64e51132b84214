//! Finding out the era and agreeing on a revision.

use super::super::protocol::{Era, EraChoice, EraRecord, Revision, STATELESS_VERSION, ServerInfo};
use super::super::transport::{OPAQUE_FAILURE, Outbound, RequestId};
use super::{Client, Effect, Event, Opening, PROBE_LIMIT, Pending, Phase, STARTUP_LIMIT, TimerId, TransportKind};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, quoted, read_string};
use crate::jsonrpc::{Params, RpcError, code};
use crate::time::Millis;

/// The codes that only a server of the stateless era sends.
pub(super) const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
pub(super) const STATELESS_CODES: std::ops::RangeInclusive<i64> = UNSUPPORTED_VERSION..=HEADER_MISMATCH;

/// What is under way to a connection.
#[derive(Debug, Default)]
pub(super) struct Connecting {
    discover: Option<RequestId>,
    initialize: Option<(RequestId, Revision)>,
    /// Whether discovery was tried a second time, which happens once.
    discovered_again: bool,
    /// Whether a second revision was offered, which happens once.
    offered_again: bool,
    /// Whether the way was chosen by a record that may be wrong.
    is_assumed: bool,
    /// Whether the probe failed without the platform telling why.
    was_opaque: bool,
    has_probe_timer: bool,
}

/// What an answer to the probe says about the server.
enum Finding {
    Stateless(ServerInfo),
    /// Stateless, and what was asked for is right: ask once more.
    AskAgain,
    Handshake(Revision),
    Failed(Error),
}

impl Client {
    pub(super) fn open(&mut self, now: Millis, opening: Opening) {
        self.id_prefix = opening.id_prefix;
        self.resume_id = opening.resume_id;
        self.unclaimed.is_resumed = opening.is_resumed;
        if self.options.era == EraChoice::Auto {
            self.options.era = opening.era.unwrap_or_default();
        }
        match opening.initialized {
            Some(result) => {
                self.start_connecting(now, Connecting::default());
                self.initialized(now, &result, true);
            }
            None => self.connect(now),
        }
    }

    fn connect(&mut self, now: Millis) {
        let known = self.options.known_era.map(|record| record.era);
        self.start_connecting(now, Connecting { is_assumed: known.is_some(), ..Connecting::default() });
        match (self.options.era, known) {
            (EraChoice::Auto | EraChoice::Stateless, Some(Era::Stateless)) => {
                self.ready(now, Era::Stateless, ServerInfo::default());
            }
            (EraChoice::Auto | EraChoice::Handshake, Some(Era::Handshake(revision))) => self.initialize(revision),
            (EraChoice::Handshake, _) => self.initialize(Revision::LATEST),
            (EraChoice::Auto | EraChoice::Stateless, _) => self.probe(now),
        }
    }

    /// Starts anew without what was assumed.
    pub(super) fn connect_without_record(&mut self, now: Millis) {
        self.end_connecting();
        self.options.known_era = None;
        self.connect(now);
    }

    /// Replaces a session that the server has forgotten.
    pub(super) fn renew_session(&mut self, now: Millis, revision: Revision) {
        self.start_connecting(now, Connecting::default());
        self.initialize(revision);
    }

    fn start_connecting(&mut self, now: Millis, connecting: Connecting) {
        self.stop_listening();
        self.phase = Phase::Connecting(connecting);
        self.effects.push_back(Effect::SetTimer { timer: TimerId::Startup, at: now.after(STARTUP_LIMIT) });
    }

    /// What the start takes a person for does not count.
    pub(super) fn wait_longer_for_start(&mut self, now: Millis) {
        if self.connecting().is_some() {
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Startup, at: now.after(STARTUP_LIMIT) });
        }
    }

    fn connecting(&mut self) -> Option<&mut Connecting> {
        match &mut self.phase {
            Phase::Connecting(connecting) => Some(connecting),
            _ => None,
        }
    }

    fn probe(&mut self, now: Millis) {
        let id = self.send_request(Era::Stateless, Pending::Discover, "server/discover", Params::new());
        let waits = self.options.era == EraChoice::Auto && self.options.transport == TransportKind::Pipe;
        if waits {
            self.effects.push_back(Effect::SetTimer { timer: TimerId::Probe, at: now.after(PROBE_LIMIT) });
        }
        if let Some(connecting) = self.connecting() {
            connecting.discover = Some(id);
            connecting.has_probe_timer |= waits;
        }
    }

    /// Sends `initialize`, unless it is already on its way.
    fn initialize(&mut self, revision: Revision) {
        if self.connecting().is_none_or(|connecting| connecting.initialize.is_some()) {
            return;
        }
        let params = Params::new()
            .with("protocolVersion", revision.as_str())
            .with("capabilities", &self.options.capabilities)
            .with("clientInfo", &self.options.client);
        let id = self.send_request(Era::Handshake(revision), Pending::Initialize, "initialize", params);
        if let Some(connecting) = self.connecting() {
            connecting.initialize = Some((id, revision));
        }
    }

    pub(super) fn probe_timed_out(&mut self) {
        if let Some(connecting) = self.connecting() {
            connecting.has_probe_timer = false;
            self.initialize(Revision::LATEST);
        }
    }

    pub(super) fn startup_timed_out(&mut self) {
        let message = format!("the MCP server did not answer within {} s of connecting", STARTUP_LIMIT / 1_000);
        self.connect_failed(Error::new(ErrorKind::Timeout, message));
    }

    /// An answer to `server/discover`.
    pub(super) fn discovered(&mut self, now: Millis, status: Option<u16>, outcome: Result<RawJson, RpcError>) {
        let finding = match outcome {
            Ok(result) => match Object::parse(result.as_str()) {
                Ok(object) => from_versions(&version_names(&object, "supportedVersions"), || {
                    Finding::Stateless(ServerInfo::from_discover(&object))
                }),
                Err(_) => Finding::Handshake(Revision::LATEST),
            },
            Err(error) => self.refused_probe(status, error),
        };
        self.take_finding(now, finding);
    }

    /// What a JSON-RPC error in answer to the probe says (revision 2026-07-28, "Backward compatibility").
    fn refused_probe(&mut self, status: Option<u16>, error: RpcError) -> Finding {
        let is_http = self.options.transport == TransportKind::Http;
        match (error.code, status) {
            (UNSUPPORTED_VERSION, _) => {
                let asked_again = self.connecting().is_some_and(|connecting| connecting.discovered_again);
                from_versions(&supported_versions(&error), || match asked_again {
                    false => Finding::AskAgain,
                    true => Finding::Failed(error.clone().into()),
                })
            }
            (HEADER_MISMATCH | MISSING_CAPABILITY, _) if is_http => Finding::Stateless(ServerInfo::default()),
            // A stateless server that lacks only this method; servers of the other era use another status.
            (code::METHOD_NOT_FOUND, Some(404)) => Finding::Stateless(ServerInfo::default()),
            (_, Some(500..)) => Finding::Failed(error.into()),
            _ => Finding::Handshake(Revision::LATEST),
        }
    }

    /// The probe had no answer.
    pub(super) fn probe_ended(&mut self, now: Millis, error: Error) {
        let is_opaque = error.code() == Some(OPAQUE_FAILURE);
        if let Some(connecting) = self.connecting() {
            connecting.was_opaque = is_opaque;
        }
        let is_final = match error.kind() {
            ErrorKind::Auth | ErrorKind::Timeout | ErrorKind::RateLimit | ErrorKind::Limit => true,
            ErrorKind::Server | ErrorKind::Overloaded => true,
            ErrorKind::Network => !is_opaque,
            _ => false,
        };
        let finding = if is_final { Finding::Failed(error) } else { Finding::Handshake(Revision::LATEST) };
        self.take_finding(now, finding);
    }

    fn take_finding(&mut self, now: Millis, finding: Finding) {
        let choice = self.options.era;
        let Some(connecting) = self.connecting() else { return };
        connecting.discover = None;
        match finding {
            Finding::Stateless(server) => self.ready(now, Era::Stateless, server),
            Finding::AskAgain => {
                connecting.discovered_again = true;
                self.probe(now);
            }
            Finding::Handshake(revision) if choice == EraChoice::Auto => self.initialize(revision),
            Finding::Handshake(_) => {
                let message = format!("the MCP server does not speak the stateless revision {STATELESS_VERSION}");
                self.connect_failed(Error::new(ErrorKind::UnsupportedVersion, message));
            }
            Finding::Failed(error) => self.connect_failed(error),
        }
    }

    /// The result of `initialize`; `is_resumed` when an earlier client got it.
    pub(super) fn initialized(&mut self, now: Millis, result: &RawJson, is_resumed: bool) {
        if let Some(connecting) = self.connecting() {
            connecting.initialize = None;
        }
        let Ok(object) = Object::parse(result.as_str()) else {
            let message = "the MCP server's answer to initialize is not a JSON object";
            return self.connect_failed(Error::new(ErrorKind::Protocol, message));
        };
        let version = object.string("protocolVersion").unwrap_or_default();
        let Some(revision) = Revision::from_name(&version) else {
            let latest = Revision::LATEST.as_str();
            let message = format!(
                "the MCP server answered initialize with revision {}; this client speaks {latest} and older",
                quoted(&version)
            );
            return self.connect_failed(Error::new(ErrorKind::UnsupportedVersion, message));
        };
        let era = Era::Handshake(revision);
        if !is_resumed {
            self.send_notification(era, "notifications/initialized", &Params::new());
        }
        self.ready(now, era, ServerInfo::from_initialize(&object));
    }

    /// `initialize` was refused. A server that names other revisions is offered the newest of them once.
    pub(super) fn initialize_refused(&mut self, now: Millis, error: RpcError) {
        let Some(connecting) = self.connecting() else { return };
        let offered = connecting.initialize.take().map(|(_, revision)| revision);
        if connecting.is_assumed {
            return self.connect_without_record(now);
        }
        let names = supported_versions(&error);
        let revisions = names.iter().filter_map(|name| Revision::from_name(name));
        match revisions.filter(|revision| Some(*revision) != offered).max() {
            Some(revision) if !connecting.offered_again => {
                connecting.offered_again = true;
                self.initialize(revision);
            }
            _ if !names.is_empty() => self.connect_failed(no_common_version(&names)),
            _ => {
                let code = error.code.to_string();
                let message = format!("the MCP server refused to initialize: {}", Error::from(error));
                self.connect_failed(Error::new(ErrorKind::Rpc, message).with_code(code));
            }
        }
    }

    /// `initialize` had no answer.
    pub(super) fn initialize_ended(&mut self, now: Millis, error: Error) {
        let Some(connecting) = self.connecting() else { return };
        connecting.initialize = None;
        if connecting.is_assumed && error.kind() == ErrorKind::BadRequest {
            return self.connect_without_record(now);
        }
        if connecting.was_opaque && error.code() == Some(OPAQUE_FAILURE) {
            let message = format!(
                "{error}. MCP needs Access-Control-Allow-Headers to list content-type, mcp-protocol-version, \
                 mcp-session-id, mcp-method and mcp-name, and Access-Control-Expose-Headers to list mcp-session-id"
            );
            return self.connect_failed(Error::new(ErrorKind::Network, message).with_code(OPAQUE_FAILURE));
        }
        self.connect_failed(error);
    }

    fn ready(&mut self, now: Millis, era: Era, server: ServerInfo) {
        let is_assumed = self.connecting().is_some_and(|connecting| connecting.is_assumed);
        self.end_connecting();
        self.generation += 1;
        self.cache.clear();
        self.server = server.clone();
        self.phase = Phase::Ready { era, is_assumed };
        let resume_id = self.resume_id.clone();
        self.events.push_back(Event::Connected { record: EraRecord { era, at: now }, server, resume_id });
        self.listen(now);
        self.send_waiting(now);
    }

    /// Forgets what is under way to a connection; answers that still come mean nothing.
    pub(super) fn end_connecting(&mut self) {
        let Phase::Connecting(connecting) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        self.pending.retain(|_, pending| matches!(pending, Pending::Operation(_)));
        self.effects.push_back(Effect::ClearTimer(TimerId::Startup));
        if connecting.has_probe_timer {
            self.effects.push_back(Effect::ClearTimer(TimerId::Probe));
        }
        let open = connecting.discover.into_iter().chain(connecting.initialize.map(|(id, _)| id));
        self.effects.extend(open.map(|id| Effect::Send(Outbound::Cancel { id })));
    }

    fn connect_failed(&mut self, error: Error) {
        self.end_connecting();
        self.end_operations(&error);
        self.phase = Phase::Closed(error.clone());
        self.effects.push_back(Effect::Send(Outbound::Close));
        self.events.push_back(Event::Closed { reason: error, exit_code: None, stderr_tail: None });
    }
}

/// What a server that names its versions is. One that names none is of the era in which nobody did.
fn from_versions(names: &[String], stateless: impl FnOnce() -> Finding) -> Finding {
    if names.iter().any(|name| name == STATELESS_VERSION) {
        return stateless();
    }
    match names.iter().filter_map(|name| Revision::from_name(name)).max() {
        Some(revision) => Finding::Handshake(revision),
        None if names.is_empty() => Finding::Handshake(Revision::LATEST),
        None => Finding::Failed(no_common_version(names)),
    }
}

/// The versions that an error names.
fn supported_versions(error: &RpcError) -> Vec<String> {
    let data = error.data.as_ref().and_then(|data| Object::parse(data.as_str()).ok());
    data.map(|data| version_names(&data, "supported")).unwrap_or_default()
}

fn version_names(object: &Object<'_>, member: &str) -> Vec<String> {
    let elements = object.array(member).unwrap_or_default();
    elements.into_iter().filter_map(|element| read_string(element.get())).collect()
}

fn no_common_version(names: &[String]) -> Error {
    let message = format!(
        "the MCP server speaks only {}; this client speaks {STATELESS_VERSION}, and {} and older",
        names.join(", "),
        Revision::LATEST.as_str()
    );
    Error::new(ErrorKind::UnsupportedVersion, message)
}
