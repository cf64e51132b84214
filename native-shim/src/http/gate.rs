//! Who may come in over HTTP: the checks of a request's head, in their order. They are those of the WebSocket but for the
//! token, which travels here.

use crablet::mcp::transport::shim::http_path;
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};

use super::grants::HttpGrant;
use crate::gate::{Gate, NO_ORIGIN, Refusal, Shown, ShownTarget, one_header, refusal};
use crate::grants::Kept;
use crate::lockout::Lockout;
use crate::origin::Origin;

/// What decides beside the request itself.
#[derive(Debug)]
pub(crate) struct HttpGate<'a> {
    pub(crate) gate: Gate<'a>,
    pub(crate) grants: &'a [HttpGrant],
}

/// A request that passed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) server: String,
    /// The `Origin` header, which is an allowed one.
    pub(crate) origin: Option<String>,
    /// The token's key id; `None` for a browser's question whether it may send a request.
    pub(crate) key_id: Option<String>,
}

/// A request that did not. Where the origin is an allowed one, the page may know the status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    pub(crate) origin: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, origin: None }
    }
}

impl HttpGate<'_> {
    /// Checks path, `Host`, `Origin` and token, in this order.
    pub(crate) fn check(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        lockout: &mut Lockout,
    ) -> Result<Admitted, Refused> {
        let found = self.gate.config.servers.iter().find(|(name, _)| http_path(name) == target);
        let (server, entry) = found.ok_or_else(|| {
            refusal(StatusCode::NOT_FOUND, format!("{method} {} is no server here", ShownTarget(target)))
        })?;
        self.gate.check_host(headers)?;
        let origin = one_header(headers, &ORIGIN)?;
        if let Some(origin) = origin {
            let is_named = |origins: &[Origin]| origins.iter().any(|allowed| allowed.matches(origin));
            let is_granted = |grant: &HttpGrant| grant.allows_origin(Some(origin)) && grant.allows_server(server);
            let is_allowed = self.grants.iter().any(is_granted) && self.gate.origins.is_none_or(is_named);
            if !is_allowed || (!entry.origins.is_empty() && !is_named(&entry.origins)) {
                let reason = format!("the origin {} is not allowed to use {server:?} over HTTP", Shown(origin));
                return Err(refusal(StatusCode::FORBIDDEN, reason).into());
            }
        }
        let admitted = |key_id| Admitted { server: server.clone(), origin: origin.map(str::to_owned), key_id };
        if *method == Method::OPTIONS && origin.is_some() && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return Ok(admitted(None));
        }
        let key_id = self.check_token(server, origin, headers, lockout);
        key_id.map(|key_id| admitted(Some(key_id))).map_err(|refusal| {
            let origin = origin.map(str::to_owned);
            Refused { refusal, origin }
        })
    }

    fn check_token(
        &self,
        server: &str,
        origin: Option<&str>,
        headers: &HeaderMap,
        lockout: &mut Lockout,
    ) -> Result<String, Refusal> {
        let client = origin.unwrap_or(NO_ORIGIN);
        // A request without a token is not a wrong one: a foreign page can make those, and must not lock anybody out.
        let Some(header) = one_header(headers, &AUTHORIZATION)? else {
            return Err(refusal(StatusCode::UNAUTHORIZED, format!("{} sent no token", Shown(client))));
        };
        if let Some(wait) = lockout.wait(client, self.gate.now) {
            let reason = format!("{} offered too many wrong tokens; {wait} ms are left", Shown(client));
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, reason));
        }
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let opened = token.and_then(|(_, token)| self.grants.iter().find(|grant| grant.is_opened_by(token.trim())));
        let Some(grant) = opened else {
            lockout.failed(client, self.gate.now);
            return Err(refusal(StatusCode::UNAUTHORIZED, format!("{} offered a wrong token", Shown(client))));
        };
        lockout.passed(client);
        if !grant.allows_origin(origin) || !grant.allows_server(server) {
            let reason = format!("the token {} is not for {server:?} with {}", grant.key_id(), Shown(client));
            return Err(refusal(StatusCode::FORBIDDEN, reason));
        }
        Ok(grant.key_id().to_owned())
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
