use super::super::address::Address;
use super::super::io::Work;
use super::super::metadata::{
    ResourceMetadata, ServerMetadata, is_same_issuer, quoted, resource_metadata_urls, server_metadata_urls,
};
use super::super::{Shared, refused};
use super::{Flow, Given, Next, Step};
use crate::error::Error;
use crate::model::HttpRequest;

/// Which authorization server, and where it is asked. Looked for anew by each authorization: a server may move to another.
impl Flow {
    pub(super) fn discover(&mut self, shared: &Shared) -> Result<Next, Error> {
        let named = self.challenge.resource_metadata.as_deref();
        self.candidates = resource_metadata_urls(&shared.server, named).into();
        self.look_for_resource_metadata(shared)
    }

    fn look_for_resource_metadata(&mut self, shared: &Shared) -> Result<Next, Error> {
        match self.candidates.pop_front() {
            Some(url) => Ok(self.work(Step::ResourceMetadata, Work::Fetch(get(url)))),
            // A server of revision 2025-03-26, which is its own authorization server.
            None => self.discover_server(shared, None),
        }
    }

    pub(super) fn take_resource_metadata(&mut self, shared: &Shared, given: &Given) -> Result<Next, Error> {
        let Some(object) = given.document() else {
            return self.look_for_resource_metadata(shared);
        };
        let metadata = ResourceMetadata::read(&object, &shared.server)?;
        self.resource = Some(metadata.resource.unwrap_or_else(|| shared.url.clone()));
        self.scopes_supported = metadata.scopes_supported;
        self.wants_proof = metadata.wants_proof;
        let known = shared.options.client.as_ref().and_then(|client| client.issuer.as_deref());
        let servers = metadata.authorization_servers;
        let is_known = |server: &&String| known.is_some_and(|known| is_same_issuer(known, server));
        let chosen = servers.iter().find(is_known).or(servers.first()).cloned();
        self.discover_server(shared, chosen)
    }

    fn discover_server(&mut self, shared: &Shared, issuer: Option<String>) -> Result<Next, Error> {
        self.is_guessed = issuer.is_none();
        self.issuer = issuer.unwrap_or_else(|| shared.server.origin.clone());
        let address = Address::parse(&self.issuer).filter(|_| shared.server.may_lead_to(&self.issuer));
        let Some(address) = address else {
            let what = "the MCP server names an authorization server whose address is not safe to use: ";
            return Err(refused(&[what, &quoted(&self.issuer)]));
        };
        self.candidates = server_metadata_urls(&address).into();
        self.look_for_server_metadata(shared)
    }

    fn look_for_server_metadata(&mut self, shared: &Shared) -> Result<Next, Error> {
        if let Some(url) = self.candidates.pop_front() {
            return Ok(self.work(Step::ServerMetadata, Work::Fetch(get(url))));
        }
        if !self.is_guessed {
            let what = " has no readable metadata; in a browser it must allow this origin with CORS";
            return Err(refused(&["the authorization server ", &self.issuer, what]));
        }
        self.metadata = ServerMetadata::without_document(&shared.server.origin);
        Ok(self.look_for_tokens(shared))
    }

    pub(super) fn take_server_metadata(&mut self, shared: &Shared, given: &Given) -> Result<Next, Error> {
        let Some(object) = given.document() else {
            return self.look_for_server_metadata(shared);
        };
        let issuer = object.string("issuer").unwrap_or_default();
        if !is_same_issuer(&issuer, &self.issuer) {
            let (what, other) = ("the metadata of the authorization server ", " is that of another one, ");
            return Err(refused(&[what, &self.issuer, other, &quoted(&issuer)]));
        }
        self.issuer = issuer;
        self.metadata = ServerMetadata::read(&object, &shared.server)?;
        Ok(self.look_for_tokens(shared))
    }

    fn look_for_tokens(&mut self, shared: &Shared) -> Next {
        self.wants_proof |= shared.options.dpop || self.challenge.is_dpop;
        let key = self.tokens_key();
        self.work(Step::KeptTokens, Work::Load(key))
    }
}

/// The request for a document. It has no header that a browser would ask the server about first.
fn get(url: String) -> HttpRequest {
    let mut request = HttpRequest { method: "GET", url, headers: Vec::new(), body: Vec::new() };
    request.set_header("accept", "application/json");
    request
}
