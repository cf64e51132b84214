//! What servers publish about themselves, and where (RFC 9728, RFC 8414, OpenID Connect Discovery).

use super::address::Address;
use super::refused;
use crate::error::Error;
use crate::json::Object;

/// Where a protected server's metadata may be, in the order in which it is looked for (revision 2026-07-28, "Protected
/// Resource Metadata Discovery Requirements").
pub(super) fn resource_metadata_urls(server: &Address, named: Option<&str>) -> Vec<String> {
    let well_known = [&server.origin, "/.well-known/oauth-protected-resource"].concat();
    let path = server.path.trim_end_matches('/');
    // Some servers name a path of their own only.
    let is_path = |url: &&str| url.starts_with('/') && !url.starts_with("//") && !url.contains('\\');
    let of_origin = named.filter(is_path).map(|path| [&server.origin, path].concat());
    let named = of_origin.or_else(|| named.map(str::to_owned)).filter(|url| server.may_lead_to(url));
    let mut urls: Vec<String> = named.into_iter().collect();
    for url in [[&well_known, path].concat(), well_known.clone()] {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Where an authorization server's metadata may be, in the order in which it is looked for.
pub(super) fn server_metadata_urls(issuer: &Address) -> Vec<String> {
    let (origin, path) = (&issuer.origin, issuer.path.trim_end_matches('/'));
    let mut urls = vec![
        [origin, "/.well-known/oauth-authorization-server", path].concat(),
        [origin, "/.well-known/openid-configuration", path].concat(),
    ];
    if !path.is_empty() {
        urls.push([origin, path, "/.well-known/openid-configuration"].concat());
    }
    urls
}

/// Whether two texts name the same authorization server: compared as texts (RFC 8414, section 3.3), but for the slash of an
/// empty path, which makes no other address (RFC 3986, section 6.2.3) and which Google's MCP servers and others write in one
/// document and not in the other.
pub(super) fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    let has_path = || Address::parse(one).is_none_or(|address| address.path.len() > 1);
    one == other || (bare(one) == bare(other) && !one.contains(['?', '#']) && !has_path())
}

/// What a protected server says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceMetadata {
    pub(super) resource: Option<String>,
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Vec<String>,
    pub(super) wants_proof: bool,
}

impl ResourceMetadata {
    /// # Errors
    ///
    /// When it is the metadata of something else: whoever wrote it could ask for tokens for another's server.
    pub(super) fn read(object: &Object<'_>, server: &Address) -> Result<Self, Error> {
        let resource = object.string("resource");
        if let Some(other) = resource.as_deref().filter(|resource| !server.is_covered_by(resource)) {
            return Err(refused(&["the MCP server's metadata is that of another server, ", &quoted(other)]));
        }
        Ok(Self {
            resource,
            authorization_servers: texts(object, "authorization_servers"),
            scopes_supported: texts(object, "scopes_supported"),
            wants_proof: object.boolean("dpop_bound_access_tokens_required").unwrap_or_default(),
        })
    }
}

/// What an authorization server says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerMetadata {
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Vec<String>,
    /// `None` where it does not say.
    pub(super) auth_methods: Option<Vec<String>>,
    pub(super) takes_metadata_documents: bool,
    pub(super) sends_issuer: bool,
    pub(super) supports_pkce: bool,
    /// The algorithms of proofs it takes; `None` where it does not say.
    pub(super) proof_algorithms: Option<Vec<String>>,
}

impl ServerMetadata {
    /// # Errors
    ///
    /// When an endpoint is where the server must not lead.
    pub(super) fn read(object: &Object<'_>, server: &Address) -> Result<Self, Error> {
        let methods = "token_endpoint_auth_methods_supported";
        let algorithms = "dpop_signing_alg_values_supported";
        let flag = |name| object.boolean(name).unwrap_or_default();
        Ok(Self {
            authorization_endpoint: endpoint(object, server, "authorization_endpoint")?.unwrap_or_default(),
            token_endpoint: endpoint(object, server, "token_endpoint")?
                .ok_or_else(|| refused(&["the authorization server's metadata names no token_endpoint"]))?,
            registration_endpoint: endpoint(object, server, "registration_endpoint")?,
            scopes_supported: texts(object, "scopes_supported"),
            auth_methods: object.get(methods).map(|_| texts(object, methods)),
            takes_metadata_documents: flag("client_id_metadata_document_supported"),
            sends_issuer: flag("authorization_response_iss_parameter_supported"),
            supports_pkce: texts(object, "code_challenge_methods_supported").iter().any(|method| method == "S256"),
            proof_algorithms: object.get(algorithms).map(|_| texts(object, algorithms)),
        })
    }

    /// The endpoints of a server of revision 2025-03-26 without metadata ("Fallbacks for Servers without Metadata
    /// Discovery").
    pub(super) fn without_document(origin: &str) -> Self {
        let at = |path: &str| [origin, path].concat();
        Self {
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: Some(at("/register")),
            supports_pkce: true,
            ..Self::default()
        }
    }
}

fn endpoint(object: &Object<'_>, server: &Address, name: &str) -> Result<Option<String>, Error> {
    let url = object.string(name);
    match &url {
        Some(named) if !server.may_lead_to(named) => {
            Err(refused(&["the authorization server's ", name, " is not an address that is safe to use"]))
        }
        _ => Ok(url),
    }
}

fn texts(object: &Object<'_>, name: &str) -> Vec<String> {
    object.read(name).unwrap_or_default()
}

/// A peer's text, short enough for a sentence and without what could move a cursor.
pub(super) fn quoted(text: &str) -> String {
    const LENGTH: usize = 200;
    text.chars().filter(|character| !character.is_control()).take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn a_protected_server_is_looked_up_from_the_nearest_place_on() {
        let server = address("https://a.example/x/mcp/?q=1");
        let named = "https://a.example/custom";
        let path = "https://a.example/.well-known/oauth-protected-resource/x/mcp";
        let root = "https://a.example/.well-known/oauth-protected-resource";
        assert_eq!(resource_metadata_urls(&server, Some(named)), [named, path, root]);
        assert_eq!(resource_metadata_urls(&server, Some(root)), [root, path]);
        assert_eq!(resource_metadata_urls(&server, Some("/custom")), [named, path, root]);
        assert_eq!(resource_metadata_urls(&server, Some("//evil.example/custom")), [path, root]);
        assert_eq!(resource_metadata_urls(&server, Some("http://169.254.169.254/")), [path, root]);
        assert_eq!(resource_metadata_urls(&address("https://a.example"), None), [root]);
    }

    #[test]
    fn an_authorization_server_is_looked_up_in_the_order_of_the_specification() {
        assert_eq!(
            server_metadata_urls(&address("https://as.example/tenant1/")),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(server_metadata_urls(&address("https://as.example/")).len(), 2);
    }

    #[test]
    fn metadata_that_leads_astray_is_refused() {
        let server = address("https://a.example/mcp");
        let object = Object::parse(r#"{"resource":"https://evil.example/mcp"}"#).unwrap();
        assert!(ResourceMetadata::read(&object, &server).is_err());
        for text in [
            r#"{"token_endpoint":"http://as.example/token"}"#,
            r#"{"token_endpoint":"https://10.0.0.1/token"}"#,
            r#"{"token_endpoint":"https://as.example/token","authorization_endpoint":"javascript:alert(1)"}"#,
            r#"{"authorization_endpoint":"https://as.example/authorize"}"#,
        ] {
            assert!(ServerMetadata::read(&Object::parse(text).unwrap(), &server).is_err(), "{text}");
        }
    }
}
