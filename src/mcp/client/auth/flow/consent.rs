use super::super::form::{Form, query_value};
use super::super::io::{AssertionRequest, Work};
use super::super::metadata::quoted;
use super::super::options::{Grant, Secret};
use super::super::random::hash;
use super::super::tokens::{Refusal, append_reason};
use super::super::{Shared, refused};
use super::{Flow, Given, Next, Step};
use crate::error::Error;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Who says yes: a person on a page, or a token that vouches for one.
impl Flow {
    /// The page to show (OAuth 2.1, section 4.1.1; RFC 7636; RFC 8707).
    pub(super) fn ask_for_consent(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        let client = self.client.as_ref().map(|client| client.id.as_str()).unwrap_or_default();
        if self.metadata.authorization_endpoint.is_empty() {
            return Err(refused(&["the authorization server's metadata names no authorization_endpoint"]));
        }
        if !self.metadata.supports_pkce {
            let what =
                " does not say that it supports PKCE with S256, without which a stolen code is as good as a token";
            return Err(refused(&["the authorization server ", &self.issuer, what]));
        }
        self.state = Secret::new(shared.random.text());
        self.verifier = Secret::new(shared.random.text());
        let is_offline = self.asked.iter().any(|scope| scope == "offline_access");
        let form = Form::default()
            .with("response_type", "code")
            .with("client_id", client)
            .with("redirect_uri", &self.redirect_uri)
            .with("state", self.state.expose())
            .with("code_challenge", hash(self.verifier.expose()))
            .with("code_challenge_method", "S256")
            .with_some("scope", Some(&self.asked.join(" ")))
            .with_some("resource", self.resource.as_deref())
            // Without it OpenID providers leave offline access out (OpenID Connect Core, section 11).
            .with_some("prompt", is_offline.then_some("consent"));
        let endpoint = &self.metadata.authorization_endpoint;
        let separator = if endpoint.contains('?') { "&" } else { "?" };
        let url = [endpoint, separator, &form.encode()].concat();
        Ok(self.work(Step::Consent, Work::AskPerson(url)))
    }

    /// The address that the person came back to. Whose answer it is comes before what it says (RFC 9207, section 2.4).
    pub(super) fn take_callback(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        let callback = given.text.as_str();
        let value = |name| query_value(callback, name);
        let address = callback.split(['?', '#']).next().unwrap_or_default();
        let expected = self.redirect_uri.split(['?', '#']).next().unwrap_or_default();
        if address.trim_end_matches('/') != expected.trim_end_matches('/') {
            return Err(refused(&["the person came back to another address than the one that was asked for"]));
        }
        if value("state").as_deref() != Some(self.state.expose()) {
            return Err(refused(&["the answer that the person came back with belongs to another authorization"]));
        }
        match value("iss") {
            Some(issuer) if issuer != self.issuer => {
                let what = "the answer that the person came back with is from ";
                return Err(refused(&[what, &quoted(&issuer), ", and not from ", &self.issuer]));
            }
            None if self.metadata.sends_issuer => {
                let what = "the answer that the person came back with does not say that it is from ";
                return Err(refused(&[what, &self.issuer]));
            }
            _ => {}
        }
        if let Some(code) = value("error") {
            let mut message = String::from("the authorization was not granted");
            append_reason(&mut message, &quoted(&code), value("error_description"));
            let mut error = refused(&[&message]).with_code(quoted(&code));
            error.redact(&[self.state.expose().to_owned(), self.verifier.expose().to_owned()]);
            return Err(error);
        }
        let code = value("code").ok_or_else(|| refused(&["the person came back without an authorization code"]))?;
        self.form = Form::new("authorization_code")
            .with("code", code)
            .with("redirect_uri", &self.redirect_uri)
            .with("code_verifier", self.verifier.expose())
            .with_some("resource", self.resource.as_deref());
        self.request_token(shared)
    }

    pub(super) fn ask_for_assertion(&mut self, shared: &Shared) -> Next {
        let token_endpoint = match &shared.options.grant {
            Grant::Enterprise(provider) => provider.token_endpoint.clone(),
            _ => self.metadata.token_endpoint.clone(),
        };
        let request = AssertionRequest {
            issuer: self.issuer.clone(),
            token_endpoint,
            resource: self.resource.clone(),
            scope: self.asked.join(" "),
        };
        self.work(Step::Assertion, Work::Assertion(request))
    }

    /// The caller's assertion, or the identity token that is exchanged for one (RFC 8693, section 2.1; draft
    /// "Identity Assertion JWT Authorization Grant").
    pub(super) fn take_assertion(&mut self, shared: &mut Shared, given: Given) -> Result<Next, Error> {
        let assertion = given.text;
        if assertion.is_empty() {
            return Err(refused(&["no token was supplied that vouches for the client"]));
        }
        let Grant::Enterprise(provider) = &shared.options.grant else {
            return self.request_with_assertion(shared, assertion);
        };
        let form = Form::new("urn:ietf:params:oauth:grant-type:token-exchange")
            .with("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag")
            .with("audience", &self.issuer)
            .with_some("resource", self.resource.as_deref())
            .with_some("scope", Some(&self.asked.join(" ")))
            .with("subject_token", assertion)
            .with("subject_token_type", "urn:ietf:params:oauth:token-type:id_token")
            .with("client_id", &provider.client_id)
            .with_some("client_secret", provider.client_secret.as_ref().map(Secret::expose));
        let request = form.post(&provider.token_endpoint);
        self.form = form;
        Ok(self.work(Step::Exchange, Work::Fetch(request)))
    }

    pub(super) fn take_exchange(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        match given.document().and_then(|object| object.string("access_token")) {
            Some(assertion) => self.request_with_assertion(shared, assertion),
            None => {
                let refusal = Refusal::read(&given.head, &given.text, "to exchange the identity token");
                Err(refusal.into_error(&self.form.secrets()))
            }
        }
    }

    fn request_with_assertion(&mut self, shared: &mut Shared, assertion: String) -> Result<Next, Error> {
        self.form = Form::new(JWT_BEARER)
            .with("assertion", assertion)
            .with_some("scope", Some(&self.asked.join(" ")))
            .with_some("resource", self.resource.as_deref());
        self.request_token(shared)
    }
}
