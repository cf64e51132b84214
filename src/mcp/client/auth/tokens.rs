use super::form::query_value;
use super::metadata::quoted;
use super::options::Secret;
use super::refused;
use crate::error::{Error, ErrorKind};
use crate::json::Object;
use crate::jsonrpc::Params;
use crate::model::ResponseHead;
use crate::time::Millis;

/// How long before its end a token counts as expired, in milliseconds: a request takes time to arrive, and clocks differ.
const EXPIRY_MARGIN: u64 = 30_000;

/// Tokens of one authorization server for one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) issuer: String,
    pub(super) resource: Option<String>,
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    pub(super) expires_at: Option<Millis>,
    /// Whether each use needs a proof of possession.
    pub(super) is_bound: bool,
    /// The scopes that were asked for.
    pub(super) asked: Vec<String>,
}

impl Tokens {
    pub(super) fn is_expired(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|at| at <= now.after(EXPIRY_MARGIN))
    }

    /// Whether all of these scopes were asked for.
    pub(super) fn were_asked(&self, scopes: &[String]) -> bool {
        scopes.iter().all(|scope| self.asked.contains(scope))
    }

    /// The answer of a token endpoint (RFC 6749, section 5.1). It does not say whose the tokens are.
    pub(super) fn read(now: Millis, object: &Object<'_>) -> Result<Self, Error> {
        let access = object.string("access_token").unwrap_or_default();
        let scheme = object.string("token_type").unwrap_or_default();
        let is_bound = scheme.eq_ignore_ascii_case("dpop");
        if !is_bound && !scheme.is_empty() && !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused(&["the authorization server gave a token of an unknown type, ", &quoted(&scheme)]));
        }
        if access.is_empty() || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused(&["the authorization server answered without a usable token"]));
        }
        // Some servers write the number as a text.
        let seconds = object.integer("expires_in").or_else(|| object.string("expires_in")?.parse().ok());
        Ok(Self {
            access: Secret::new(access),
            refresh: object.string("refresh_token").filter(|token| !token.is_empty()).map(Secret::new),
            expires_at: seconds.map(|seconds| now.after(seconds.saturating_mul(1_000))),
            is_bound,
            ..Self::default()
        })
    }

    /// As it is kept in a store. The scopes are those that were asked for.
    pub(super) fn to_record(&self) -> Secret {
        let mut record = Params::new().with("access_token", self.access.expose());
        if let Some(refresh) = &self.refresh {
            record.set("refresh_token", refresh.expose());
        }
        if let Some(at) = self.expires_at {
            record.set("expires_at", &at.0);
        }
        Secret::new(record.with("scope", &self.asked.join(" ")).to_raw().as_str())
    }

    pub(super) fn from_record(record: &str, issuer: &str, resource: Option<&str>) -> Option<Self> {
        let object = Object::parse(record).ok()?;
        Some(Self {
            issuer: issuer.to_owned(),
            resource: resource.map(str::to_owned),
            access: Secret::new(object.string("access_token")?),
            refresh: object.string("refresh_token").map(Secret::new),
            expires_at: object.integer("expires_at").map(Millis),
            is_bound: false,
            asked: scopes(&object.string("scope").unwrap_or_default()),
        })
    }
}

/// The scopes of a text that separates them by spaces.
pub(super) fn scopes(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The error in an answer of an authorization server (RFC 6749, section 5.2).
#[derive(Debug)]
pub(super) struct Refusal {
    /// The server's word for it; empty where it gave none.
    pub(super) code: String,
    error: Error,
}

impl Refusal {
    pub(super) fn read(head: &ResponseHead, body: &str, what: &str) -> Self {
        let object = Object::parse(body).ok();
        // Not every server writes what it refuses with as JSON.
        let form = ["?", body.trim()].concat();
        let text = |name| match &object {
            Some(object) => object.string(name),
            None => query_value(&form, name),
        };
        let code = text("error").map(|code| quoted(&code)).unwrap_or_default();
        let kind = match head.status {
            429 => ErrorKind::RateLimit,
            500.. if code.is_empty() => ErrorKind::Server,
            _ => ErrorKind::Auth,
        };
        let status = head.status.to_string();
        let mut message = ["the authorization server refused ", what, " (HTTP ", &status, ")"].concat();
        append_reason(&mut message, &code, text("error_description"));
        Self { error: Error::new(kind, message).with_status(head.status).with_code(code.clone()), code }
    }

    /// Whether the same request would be refused again: not where the server, or what stands before it, is out of order.
    pub(super) fn is_final(&self) -> bool {
        let is_outage = matches!(self.code.as_str(), "" | "server_error" | "temporarily_unavailable");
        !is_outage && self.error.kind() == ErrorKind::Auth && self.error.status().is_none_or(|status| status < 500)
    }

    /// The error without these texts, which servers repeat.
    pub(super) fn into_error(mut self, secrets: &[String]) -> Error {
        self.error.redact(secrets);
        self.error
    }
}

/// Adds the peer's own words to a message.
pub(super) fn append_reason(message: &mut String, code: &str, description: Option<String>) {
    let description = description.map(|text| quoted(&text)).unwrap_or_default();
    for text in [code, &description].into_iter().filter(|text| !text.is_empty()) {
        message.push_str(": ");
        message.push_str(text);
    }
}
