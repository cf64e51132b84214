//! Who may come in: the checks of a handshake, in their order, on nothing but its head.

use std::collections::VecDeque;
use std::fmt;

use crablet::Millis;
use crablet::mcp::transport::shim::{
    ClientProof, EXPOSING_PATH, MAX_PROOF_AGE, PAIRING_PATH, PAIRING_SUBPROTOCOL, ProofContext, SUBPROTOCOL, Token,
    server_path, server_proof, verify_server_proof,
};
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::{Method, StatusCode};

use crate::config::Config;
use crate::grants::{EXPOSING, Exposure, Grant};
use crate::lockout::Lockout;
use crate::origin::Origin;
use crate::plain_socket::{PLAIN_SUBPROTOCOL, TOKEN_PREFIX};

/// What decides beside the request itself.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    pub(crate) config: &'a Config,
    /// The port that the shim listens on.
    pub(crate) port: u16,
    /// The origins of this run; `None` for every origin that a token names.
    pub(crate) origins: Option<&'a [Origin]>,
    pub(crate) grants: &'a [Grant],
    pub(crate) now: Millis,
}

/// A client that passed.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The name of the server it wants, or [`EXPOSING`].
    pub(crate) server: String,
    pub(crate) token: Token,
    /// The `Origin` header; `None` for a program that sends none.
    pub(crate) origin: Option<String>,
    /// What the token says about tools of its holder.
    pub(crate) exposes: Option<Exposure>,
    /// The client's nonce, to be answered; empty for one that proves nothing.
    pub(crate) nonce: String,
    /// What the client speaks.
    pub(crate) subprotocol: &'static str,
    /// The client's key for the handshake's answer.
    pub(crate) websocket_key: String,
}

/// A client that comes to be paired.
#[derive(Debug)]
pub(crate) struct PairingAdmission {
    /// The `Origin` header; `None` for a program that sends none.
    pub(crate) origin: Option<String>,
    /// The `Host` header.
    pub(crate) authority: String,
    pub(crate) websocket_key: String,
}

/// What the gate remembers from one handshake to the next.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used: UsedProofs,
    lockout: Lockout,
}

/// A client that did not: the peer gets the status only, the log the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

impl Gate<'_> {
    /// Checks path, `Host`, `Origin`, proof and upgrade, in this order. A proof that passes is used up.
    pub(crate) fn check(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        memory: &mut Memory,
    ) -> Result<Admission, Refusal> {
        let named = || self.config.servers.iter().find(|(name, _)| server_path(name) == target);
        let (server, entry) = match target {
            EXPOSING_PATH => Some((EXPOSING, None)),
            _ => named().map(|(name, entry)| (name.as_str(), Some(entry))),
        }
        .filter(|_| *method == Method::GET)
        .ok_or_else(|| refusal(StatusCode::NOT_FOUND, format!("{method} {} is no server here", ShownTarget(target))))?;

        let host = self.check_host(headers)?;
        let origin = one_header(headers, &ORIGIN)?;
        if let Some(origin) = origin {
            let is_granted = self.grants.iter().any(|grant| grant.allows_origin(Some(origin)));
            let is_named = |origins: &[Origin]| origins.iter().any(|allowed| allowed.matches(origin));
            let is_allowed = is_granted && self.origins.is_none_or(is_named);
            let is_narrowed = entry.is_some_and(|entry| !entry.origins.is_empty() && !is_named(&entry.origins));
            if !is_allowed || is_narrowed {
                let reason = format!("the origin {} is not allowed to {}", Shown(origin), wish(server));
                return Err(refusal(StatusCode::FORBIDDEN, reason));
            }
        }

        let client = origin.unwrap_or(NO_ORIGIN);
        if let Some(wait) = memory.lockout.wait(client, self.now) {
            let reason = format!("{} offered too many wrong proofs; {wait} ms are left", Shown(client));
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, reason));
        }
        let proof = self.check_proof(server, host, origin, headers, &mut memory.used);
        match &proof {
            Ok(_) => memory.lockout.passed(client),
            Err(_) => memory.lockout.failed(client, self.now),
        }
        Ok(Admission { server: server.to_owned(), websocket_key: check_upgrade(headers)?, ..proof? })
    }

    /// Checks `Host`, `Origin` with a code that waits, and upgrade, in this order; the code itself is in the first frame.
    /// While no code waits, there is nothing at the path.
    pub(crate) fn check_pairing(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        awaits: impl FnOnce(Option<&str>) -> bool,
    ) -> Result<PairingAdmission, Refusal> {
        let host = self.check_host(headers)?;
        let origin = one_header(headers, &ORIGIN)?;
        let is_named = |header: &str| match self.origins {
            Some(origins) => origins.iter().any(|allowed| allowed.matches(header)),
            None => header != "null",
        };
        if *method != Method::GET || !origin.is_none_or(is_named) || !awaits(origin) {
            let client = origin.unwrap_or(NO_ORIGIN);
            let reason = format!("{method} {} of {}: no code waits for it", ShownTarget(target), Shown(client));
            return Err(refusal(StatusCode::NOT_FOUND, reason));
        }
        if !offered_subprotocols(headers).contains(&PAIRING_SUBPROTOCOL) {
            let reason = format!("the subprotocol {PAIRING_SUBPROTOCOL} was not offered");
            return Err(refusal(StatusCode::UNAUTHORIZED, reason));
        }
        Ok(PairingAdmission {
            origin: origin.map(str::to_owned),
            authority: host.to_owned(),
            websocket_key: check_upgrade(headers)?,
        })
    }

    pub(crate) fn check_host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
        let host = one_header(headers, &HOST)?.unwrap_or_default();
        // Of an address with the default port clients leave the port out.
        let name = match host.rsplit_once(':') {
            Some((name, port)) => Some(name).filter(|_| *port == self.port.to_string()),
            None => Some(host).filter(|_| self.port == DEFAULT_HTTP_PORT),
        };
        if matches!(name, Some("127.0.0.1" | "localhost")) {
            Ok(host)
        } else {
            Err(refusal(StatusCode::FORBIDDEN, format!("the host {} is not this shim", Shown(host))))
        }
    }

    fn check_proof(
        &self,
        server: &str,
        host: &str,
        origin: Option<&str>,
        headers: &HeaderMap,
        used: &mut UsedProofs,
    ) -> Result<Admission, Refusal> {
        let refused = |reason: String| refusal(StatusCode::UNAUTHORIZED, reason);
        let offered = offered_subprotocols(headers);
        if offered.iter().any(|offer| offer.starts_with(TOKEN_PREFIX)) {
            return self.check_token(server, origin, &offered);
        }
        let proofs: Vec<_> = offered.iter().filter_map(|offer| ClientProof::parse(offer)).collect();
        let [proof] = proofs.as_slice() else {
            return Err(refused(format!("{} proofs of a token were offered instead of one", proofs.len())));
        };
        if !offered.contains(&SUBPROTOCOL) {
            return Err(refused(format!("the subprotocol {SUBPROTOCOL} was not offered")));
        }
        let key_id = proof.key_id();
        let context = ProofContext { authority: host, origin: origin.unwrap_or_default(), server };
        let grant = self
            .grants
            .iter()
            .find(|grant| grant.token.key_id() == key_id && proof.verify(&grant.token, context))
            .ok_or_else(|| {
                refused(format!("the proof for the token {} is wrong, or the token unknown", ShownTarget(key_id)))
            })?;
        if !grant.allows_origin(origin) || !grant.allows_server(server) {
            let origin = origin.unwrap_or("no origin");
            let reason = format!("with the token {key_id}, {} may not {}", Shown(origin), wish(server));
            return Err(refusal(StatusCode::FORBIDDEN, reason));
        }
        if !proof.is_fresh(self.now) {
            return Err(refused(format!("the proof for the token {key_id} is older than {} s", MAX_PROOF_AGE / 1000)));
        }
        if !used.first_use(proof.nonce(), self.now) {
            return Err(refused(format!("the proof for the token {key_id} was used before")));
        }
        Ok(Admission {
            server: server.to_owned(),
            token: grant.token.clone(),
            origin: origin.map(str::to_owned),
            exposes: grant.exposes,
            nonce: proof.nonce().to_owned(),
            subprotocol: SUBPROTOCOL,
            websocket_key: String::new(),
        })
    }

    /// A client of plain `mcp` shows its token, where the grant says that this is enough.
    fn check_token(&self, server: &str, origin: Option<&str>, offered: &[&str]) -> Result<Admission, Refusal> {
        let refused = |reason: String| refusal(StatusCode::UNAUTHORIZED, reason);
        let tokens: Vec<_> = offered.iter().filter_map(|offer| offer.strip_prefix(TOKEN_PREFIX)).collect();
        let [token] = tokens.as_slice() else {
            return Err(refused(format!("{} tokens were offered instead of one", tokens.len())));
        };
        if !offered.contains(&PLAIN_SUBPROTOCOL) || offered.iter().any(|offer| ClientProof::parse(offer).is_some()) {
            let reason = format!("a token was offered without the subprotocol {PLAIN_SUBPROTOCOL}, or beside a proof");
            return Err(refused(reason));
        }
        let token = Token::parse(token).map_err(|_| refused("what was offered is no token".to_owned()))?;
        let key_id = token.key_id();
        // Codes are compared in constant time, which the tokens themselves are not.
        let code = server_proof(&token, PLAIN_SUBPROTOCOL);
        let is_this = |grant: &&Grant| {
            grant.plain && grant.token.key_id() == key_id && verify_server_proof(&grant.token, PLAIN_SUBPROTOCOL, &code)
        };
        let grant = self.grants.iter().find(is_this).ok_or_else(|| {
            refused(format!("the token {} is wrong, unknown, or was granted without --plain", ShownTarget(key_id)))
        })?;
        if !grant.allows_origin(origin) || !grant.allows_server(server) || server == EXPOSING {
            let origin = origin.unwrap_or("no origin");
            let reason = format!("with the token {key_id}, {} may not {}", Shown(origin), wish(server));
            return Err(refusal(StatusCode::FORBIDDEN, reason));
        }
        Ok(Admission {
            server: server.to_owned(),
            token: grant.token.clone(),
            origin: origin.map(str::to_owned),
            exposes: None,
            nonce: String::new(),
            subprotocol: PLAIN_SUBPROTOCOL,
            websocket_key: String::new(),
        })
    }
}

/// The nonces of proofs that passed, for as long as their proofs would be fresh.
#[derive(Debug, Default)]
pub(crate) struct UsedProofs(VecDeque<(Millis, String)>);

impl UsedProofs {
    /// Whether a nonce was not used before; it is from now on. Only nonces of verified proofs get here, so that nobody
    /// without a token can fill the memory.
    fn first_use(&mut self, nonce: &str, now: Millis) -> bool {
        // A proof may be ahead of the clock by its greatest age, and is then fresh for twice as long.
        while self.0.front().is_some_and(|(used_at, _)| now.since(*used_at) > 2 * MAX_PROOF_AGE) {
            self.0.pop_front();
        }
        if self.0.len() >= MAX_USED_PROOFS || self.0.iter().any(|(_, used)| used == nonce) {
            return false;
        }
        self.0.push_back((now, nonce.to_owned()));
        true
    }
}

/// What a client of a server, or one that offers tools of its own, wants to do.
fn wish(server: &str) -> String {
    if server == EXPOSING { "offer tools".to_owned() } else { format!("use {server:?}") }
}

/// Whether a request is one for a pairing.
pub(crate) fn is_pairing(target: &str) -> bool {
    target == PAIRING_PATH
}

/// Text of a stranger, safe to stand in a log line.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start: String = self.0.chars().take(MAX_SHOWN).collect();
        write!(formatter, "{start:?}")
    }
}

/// What a stranger asked for, safe to stand in a log line: tokens that were put into an address by mistake are left out.
pub(crate) struct ShownTarget<'a>(pub(crate) &'a str);

impl fmt::Display for ShownTarget<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.split(['?', '#']).next().unwrap_or_default();
        let shown = |part| if str::len(part) > MAX_SHOWN_PART { "…" } else { part };
        let parts: Vec<&str> = path.split('/').map(shown).collect();
        Shown(&parts.join("/")).fmt(formatter)
    }
}

/// In bytes: less than the secret of a token, which has 43.
const MAX_SHOWN_PART: usize = 40;

pub(crate) fn refusal(status: StatusCode, reason: String) -> Refusal {
    Refusal { status, reason }
}

/// A header that may come once. One that comes twice, or is no ASCII text, is a trick.
pub(crate) fn one_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str());
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(refusal(StatusCode::FORBIDDEN, format!("the header {name} came twice or is not ASCII"))),
    }
}

fn offered_subprotocols(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).collect()
}

fn check_upgrade(headers: &HeaderMap) -> Result<String, Refusal> {
    let says = |name: HeaderName, token: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    let key = one_header(headers, &SEC_WEBSOCKET_KEY)?.filter(|key| key.len() == 24);
    let is_upgrade = says(CONNECTION, "upgrade") && says(UPGRADE, "websocket") && says(SEC_WEBSOCKET_VERSION, "13");
    key.filter(|_| is_upgrade).map(str::to_owned).ok_or_else(|| {
        refusal(StatusCode::UPGRADE_REQUIRED, "the request is no WebSocket handshake of version 13".to_owned())
    })
}

const DEFAULT_HTTP_PORT: u16 = 80;

/// What a client without an `Origin` is called, which no header can say.
pub(crate) const NO_ORIGIN: &str = "a program without an origin";

/// Proofs of two minutes; far beyond what clients need, since a connection lives for hours.
const MAX_USED_PROOFS: usize = 10_000;

/// As much of a stranger's text as a log line shows.
const MAX_SHOWN: usize = 120;

#[cfg(test)]
#[path = "gate_tests.rs"]
pub(crate) mod tests;
