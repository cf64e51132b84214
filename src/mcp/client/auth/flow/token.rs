use super::super::form::Form;
use super::super::io::{KeyName, Work};
use super::super::options::Secret;
use super::super::signed::{Proof, client_assertion, signed};
use super::super::tokens::{Refusal, Tokens};
use super::super::{Shared, refused};
use super::{Flow, Given, Next, Step};
use crate::error::Error;
use crate::jsonrpc::Params;

/// The request for tokens, and its answer.
impl Flow {
    pub(super) fn request_refresh(&mut self, shared: &mut Shared, refresh: &Secret) -> Result<Next, Error> {
        self.is_refresh = true;
        self.form = Form::new("refresh_token")
            .with("refresh_token", refresh.expose())
            .with_some("resource", self.resource.as_deref());
        self.request_token(shared)
    }

    pub(super) fn request_with_credentials(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        self.form = Form::new("client_credentials")
            .with_some("scope", Some(&self.asked.join(" ")))
            .with_some("resource", self.resource.as_deref());
        self.request_token(shared)
    }

    /// Sends the parameters that are there, with the proof of the client and of the key.
    pub(super) fn request_token(&mut self, shared: &mut Shared) -> Result<Next, Error> {
        if self.wants_proof && shared.public_key.is_none() {
            let algorithms = self.metadata.proof_algorithms.as_ref();
            if algorithms.is_some_and(|algorithms| !algorithms.iter().any(|algorithm| algorithm == "ES256")) {
                return Err(refused(&[
                    "the authorization server takes no proofs of possession that are signed with ES256",
                ]));
            }
            return Ok(self.work(Step::PublicKey, Work::PublicKey));
        }
        let client = self.client.as_ref();
        if let Some((client, key)) = client.and_then(|client| Some((client, client.key.as_ref()?))) {
            self.unsigned = client_assertion(shared.now, &mut shared.random, &client.id, &self.issuer, key);
            let work = Work::Sign { key: KeyName::Client, message: self.unsigned.clone() };
            return Ok(self.work(Step::ClientAssertion, work));
        }
        Ok(self.prove(shared, self.form.clone()))
    }

    pub(super) fn take_client_assertion(&mut self, shared: &mut Shared, given: &Given) -> Next {
        let form = self.form.clone();
        let form = form
            .with("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            .with("client_assertion", signed(&self.unsigned, &given.signature));
        self.prove(shared, form)
    }

    fn prove(&mut self, shared: &mut Shared, form: Form) -> Next {
        let endpoint = &self.metadata.token_endpoint;
        let client = self.client.clone().unwrap_or_default();
        let request = client.authenticate(form, endpoint, &self.metadata);
        let Some(public_key) = shared.public_key.as_ref().filter(|_| self.wants_proof) else {
            return self.work(Step::Token, Work::Fetch(request));
        };
        let nonce = shared.authorization_nonce.as_deref();
        let proof = Proof { method: "POST", url: endpoint, token: None, nonce };
        self.unsigned = proof.unsigned(shared.now, &mut shared.random, public_key);
        self.request = Some(request);
        let work = Work::Sign { key: KeyName::Proof, message: self.unsigned.clone() };
        self.work(Step::Proof, work)
    }

    pub(super) fn take_proof(&mut self, given: &Given) -> Next {
        let Some(mut request) = self.request.take() else { return Next::Done(None) };
        request.set_header("dpop", signed(&self.unsigned, &given.signature));
        self.work(Step::Token, Work::Fetch(request))
    }

    pub(super) fn take_token(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        if let Some(nonce) = given.head.header("dpop-nonce") {
            shared.authorization_nonce = Some(nonce.to_owned());
        }
        // Some servers refuse with status 200, as GitHub does.
        let granted = given.document().filter(|object| object.string("error").is_none_or(|error| error.is_empty()));
        let Some(object) = granted else {
            return self.take_refusal(shared, Refusal::read(&given.head, &given.text, "to give a token"));
        };
        let before = self.held.take().filter(|_| self.is_refresh);
        let mut tokens = Tokens::read(shared.now, &object)?;
        if self.wants_proof && !tokens.is_bound {
            return Err(refused(&[
                "the authorization server gave a token that is not bound to a key, as it should be",
            ]));
        }
        tokens.issuer.clone_from(&self.issuer);
        tokens.resource.clone_from(&self.resource);
        tokens.asked = match before {
            Some(before) => {
                // A server that does not rotate the refresh token does not repeat it.
                tokens.refresh = tokens.refresh.or(before.refresh);
                before.asked
            }
            None => self.asked.clone(),
        };
        // The key ends with this process, and tokens that are bound to it are of no use to another.
        if !tokens.is_bound {
            let key = self.tokens_key();
            self.save(key, Some(tokens.to_record()));
            self.save_server(shared);
        }
        Ok(Next::Done(Some(Box::new(tokens))))
    }

    /// Notes which tokens the server takes.
    pub(super) fn save_server(&mut self, shared: &Shared) {
        let mut note = Params::new().with("issuer", &self.issuer);
        if let Some(resource) = &self.resource {
            note.set("resource", resource);
        }
        self.save(shared.server_key(), Some(Secret::new(note.to_raw().as_str())));
    }

    /// What the store has after a refresh token was refused: tokens of somebody else who was faster, which must not be lost, or
    /// those that have ended, so that whoever agreed is asked again.
    pub(super) fn take_renewed_tokens(&mut self, shared: &mut Shared, given: &Given) -> Result<Next, Error> {
        let refused = self.form.value("refresh_token").map(str::to_owned);
        let kept = Tokens::from_record(&given.text, &self.issuer, self.resource.as_deref());
        let renewed = kept.filter(|kept| kept.refresh.as_ref().map(Secret::expose) != refused.as_deref());
        match renewed.map(Box::new) {
            Some(tokens) if !tokens.is_expired(shared.now) => Ok(Next::Done(Some(tokens))),
            Some(tokens) if !std::mem::replace(&mut self.was_overtaken, true) => {
                self.refresh.clone_from(&tokens.refresh);
                self.held = Some(tokens);
                self.apply(shared)
            }
            // They are not forgotten before there are others: whoever was faster may be keeping theirs at this moment.
            _ => self.apply(shared),
        }
    }

    fn take_refusal(&mut self, shared: &mut Shared, refusal: Refusal) -> Result<Next, Error> {
        let is_registered = self.client.as_ref().is_some_and(|client| client.redirect_uri.is_some());
        match refusal.code.as_str() {
            "use_dpop_nonce" if self.wants_proof && !std::mem::replace(&mut self.nonce_was_given, true) => {
                self.request_token(shared)
            }
            "invalid_client" | "unauthorized_client" if is_registered && !self.was_registered_anew => {
                self.is_refresh = false;
                self.register_anew(shared)
            }
            // The refresh token has ended, whatever word the server has for it. Or somebody who shares the store has used it in
            // the meantime, and keeps what came of it.
            code if refusal.is_final()
                && !matches!(code, "invalid_client" | "unauthorized_client")
                && self.is_refresh =>
            {
                self.is_refresh = false;
                let key = self.tokens_key();
                Ok(self.work(Step::RenewedTokens, Work::Load(key)))
            }
            _ => {
                let mut secrets = self.form.secrets();
                secrets.extend(self.client.iter().flat_map(|client| client.secrets()));
                Err(refusal.into_error(&secrets))
            }
        }
    }
}
