use super::super::io::Work;
use super::super::options::Grant;
use super::super::registration::{Client, registration};
use super::super::tokens::Refusal;
use super::super::{Shared, refused};
use super::{Flow, Given, Next, Step};
use crate::error::Error;

/// What the authorization server knows the client as (revision 2026-07-28, "Client Registration"): as the caller says, by
/// its metadata document, or by a registration.
impl Flow {
    pub(super) fn identify(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        self.client = Client::from_options(&shared.options, &self.issuer, &self.metadata)?;
        if self.client.is_some() || !shared.asks_person() {
            return self.apply(shared);
        }
        let key = self.client_key();
        Ok(self.work(Step::KeptClient, Work::Load(key)))
    }

    pub(super) fn take_kept_client(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        self.client = Client::from_record(shared.now, &given.text);
        self.apply(shared)
    }

    /// Goes on as the grant has it, once it is known who the client is.
    pub(super) fn apply(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        if let Some(refresh) = self.refresh.take().filter(|_| self.client.is_some()) {
            return self.request_refresh(shared, &refresh);
        }
        if shared.asks_person() {
            return Ok(self.work(Step::RedirectUri, Work::RedirectUri));
        }
        if self.client.is_none() {
            return Err(refused(&["this grant needs the id under which the authorization server knows the client"]));
        }
        match shared.options.grant {
            Grant::ClientCredentials => self.request_with_credentials(shared),
            _ => Ok(self.ask_for_assertion(shared)),
        }
    }

    pub(super) fn take_redirect_uri(&mut self, shared: &mut Shared, given: Given) -> Result<Next, Error> {
        self.redirect_uri = given.text;
        // A server that registered the client sends people only to where it was told then.
        let is_usable = |client: &Client| client.redirect_uri.as_ref().is_none_or(|known| *known == self.redirect_uri);
        if self.client.as_ref().is_some_and(is_usable) {
            return self.ask_for_consent(shared);
        }
        self.register(shared)
    }

    fn register(&mut self, shared: &Shared) -> Result<Next, Error> {
        let Some(endpoint) = self.metadata.registration_endpoint.as_deref() else {
            let what = " does not take unknown clients; register one there and give its id";
            return Err(refused(&["the authorization server ", &self.issuer, what]));
        };
        let scope = if self.registers_plainly { String::new() } else { self.asked.join(" ") };
        let request = registration(endpoint, &self.redirect_uri, &scope, &shared.options, &self.metadata);
        Ok(self.work(Step::Registration, Work::Fetch(request)))
    }

    pub(super) fn take_registration(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        let client = given.document().and_then(|object| Client::read(&object, self.redirect_uri.clone()));
        let Some(client) = client else {
            let refusal = Refusal::read(&given.head, &given.text, "to register the client");
            // Some servers refuse scopes that they do not know, which the page may well be asked for.
            let is_about_scope = matches!(refusal.code.as_str(), "invalid_client_metadata" | "invalid_scope");
            if is_about_scope && !self.asked.is_empty() && !std::mem::replace(&mut self.registers_plainly, true) {
                return self.register(shared);
            }
            return Err(refusal.into_error(&[]));
        };
        let key = self.client_key();
        self.save(key, Some(client.to_record()));
        self.client = Some(client);
        self.ask_for_consent(shared)
    }

    /// Forgets a client that the server no longer knows, and registers another; once.
    pub(super) fn register_anew(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        self.was_registered_anew = true;
        self.client = None;
        let key = self.client_key();
        self.save(key, None);
        self.apply(shared)
    }

    fn client_key(&self) -> String {
        ["client ", &self.issuer].concat()
    }
}
