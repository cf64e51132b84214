use super::super::form::Form;
use super::super::io::{KeyName, Outcome, Work};
use super::super::options::Secret;
use super::super::signed::{Proof, client_assertion, signed};
use super::super::tokens::{Refusal, Tokens};
use super::super::{Shared, refused};
use super::{Flow, Next, Step, answer};
use crate::error::Error;
use crate::json::Object;
use crate::jsonrpc::Params;
use crate::model::HttpRequest;
use crate::time::Millis;

/// The request for tokens, and its answer.
impl Flow {
    pub(super) fn request_refresh(
        &mut self,
        now: Millis,
        shared: &mut Shared,
        refresh: &Secret,
    ) -> Result<Next, Error> {
        self.is_refresh = true;
        self.form = Form::new("refresh_token")
            .with("refresh_token", refresh.expose())
            .with_some("resource", self.resource.as_deref());
        self.request_token(now, shared)
    }

    pub(super) fn request_with_credentials(&mut self, now: Millis, shared: &mut Shared) -> Result<Next, Error> {
        self.form = Form::new("client_credentials")
            .with_some("scope", Some(&self.asked.join(" ")))
            .with_some("resource", self.resource.as_deref());
        self.request_token(now, shared)
    }

    /// Sends the parameters that are there, with the proof of the client and of the key.
    pub(super) fn request_token(&mut self, now: Millis, shared: &mut Shared) -> Result<Next, Error> {
        if self.wants_proof && shared.public_key.is_none() {
            let algorithms = self.metadata.proof_algorithms.as_ref();
            if algorithms.is_some_and(|algorithms| !algorithms.iter().any(|algorithm| algorithm == "ES256")) {
                return Err(refused(
                    "the authorization server takes no proofs of possession that are signed with ES256",
                ));
            }
            return Ok(self.work(Step::PublicKey, Work::PublicKey));
        }
        let client = self.client.as_ref();
        if let Some((client, key)) = client.and_then(|client| Some((client, client.key.as_ref()?))) {
            let unsigned = client_assertion(now, &mut shared.random, &client.id, &self.issuer, key);
            let work = Work::Sign { key: KeyName::Client, message: unsigned.clone() };
            return Ok(self.work(Step::ClientAssertion { unsigned }, work));
        }
        Ok(self.prove(now, shared, self.form.clone()))
    }

    pub(super) fn take_client_assertion(
        &mut self,
        now: Millis,
        shared: &mut Shared,
        outcome: Outcome,
        unsigned: &str,
    ) -> Result<Next, Error> {
        let form = self.form.clone();
        let form = form
            .with("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            .with("client_assertion", signed(unsigned, &signature(outcome)?));
        Ok(self.prove(now, shared, form))
    }

    fn prove(&mut self, now: Millis, shared: &mut Shared, form: Form) -> Next {
        let endpoint = &self.metadata.token_endpoint;
        let client = self.client.clone().unwrap_or_default();
        let request = client.authenticate(form, endpoint, &self.metadata);
        let Some(public_key) = shared.public_key.as_ref().filter(|_| self.wants_proof) else {
            return self.work(Step::Token, Work::Fetch(request));
        };
        let nonce = shared.authorization_nonce.as_deref();
        let proof = Proof { method: "POST", url: endpoint, token: None, nonce };
        let unsigned = proof.unsigned(now, &mut shared.random, public_key);
        let work = Work::Sign { key: KeyName::Proof, message: unsigned.clone() };
        self.work(Step::Proof { request, unsigned }, work)
    }

    pub(super) fn take_proof(
        &mut self,
        outcome: Outcome,
        mut request: HttpRequest,
        unsigned: &str,
    ) -> Result<Next, Error> {
        request.set_header("dpop", signed(unsigned, &signature(outcome)?));
        Ok(self.work(Step::Token, Work::Fetch(request)))
    }

    pub(super) fn take_token(&mut self, now: Millis, shared: &mut Shared, outcome: Outcome) -> Result<Next, Error> {
        let (head, body) = answer(outcome);
        if let Some(nonce) = head.header("dpop-nonce") {
            shared.authorization_nonce = Some(nonce.to_owned());
        }
        let Some(object) = Object::parse(&body).ok().filter(|_| head.status == 200) else {
            return self.take_refusal(now, shared, Refusal::read(&head, &body, "to give a token"));
        };
        let asked = match &self.held {
            Some(held) if self.is_refresh => held.asked.clone(),
            _ => self.asked.clone(),
        };
        let before = Tokens {
            issuer: self.issuer.clone(),
            resource: self.resource.clone(),
            access: Secret::default(),
            refresh: self.held.take().filter(|_| self.is_refresh).and_then(|held| held.refresh),
            expires_at: None,
            is_bound: false,
            asked,
        };
        let tokens = Tokens::read(now, &object, before)?;
        if self.wants_proof && !tokens.is_bound {
            return Err(refused("the authorization server gave a token that is not bound to a key, as it should be"));
        }
        // The key ends with this process, and tokens that are bound to it are of no use to another.
        if !tokens.is_bound {
            let key = self.tokens_key();
            self.save(key, Some(tokens.to_record()));
            self.save_server(shared);
        }
        Ok(Next::Done(Some(tokens)))
    }

    /// Notes which tokens the server takes.
    pub(super) fn save_server(&mut self, shared: &Shared) {
        let mut note = Params::new().with("issuer", &self.issuer);
        if let Some(resource) = &self.resource {
            note.set("resource", resource);
        }
        self.save(shared.server_key(), Some(Secret::new(note.to_raw().as_str())));
    }

    fn take_refusal(&mut self, now: Millis, shared: &mut Shared, refusal: Refusal) -> Result<Next, Error> {
        let is_registered = self.client.as_ref().is_some_and(|client| client.redirect_uri.is_some());
        match refusal.code.as_str() {
            "use_dpop_nonce" if self.wants_proof && !std::mem::replace(&mut self.nonce_was_given, true) => {
                self.request_token(now, shared)
            }
            "invalid_client" | "unauthorized_client" if is_registered && !self.was_registered_anew => {
                self.is_refresh = false;
                self.register_anew(now, shared)
            }
            // The refresh token has ended: whoever agreed is asked again.
            "invalid_grant" if std::mem::take(&mut self.is_refresh) => {
                let key = self.tokens_key();
                self.save(key, None);
                self.apply(now, shared)
            }
            _ => {
                let secrets: Vec<String> =
                    self.form.secrets().chain(self.client.as_ref().and_then(|client| client.secret())).collect();
                Err(refusal.into_error(&secrets))
            }
        }
    }
}

fn signature(outcome: Outcome) -> Result<Vec<u8>, Error> {
    match outcome {
        Outcome::Signature(signature) => Ok(signature),
        _ => Err(refused("the host gave no signature")),
    }
}
