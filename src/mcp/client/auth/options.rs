use std::fmt;

/// How tokens for a server are obtained. The default asks a person, and introduces itself to any authorization server that
/// takes unknown clients.
#[derive(Clone, Debug, Default)]
pub struct AuthOptions {
    /// What stands for the consent that a token needs.
    pub grant: Grant,
    /// The client, where the authorization server knows it already. Comes before every other way to be known.
    pub client: Option<RegisteredClient>,
    /// The `https` address of a client-id metadata document that describes this client. Used as its id by authorization
    /// servers that support that.
    pub client_metadata_url: Option<String>,
    /// What an authorization server that registers the client shows to the person. Default `crablet`.
    pub client_name: Option<String>,
    /// The scopes to ask for where the server's challenge names none. Default: all that its metadata lists.
    pub scopes: Vec<String>,
    /// Whether to take nothing but tokens that are bound to a key of this process (DPoP, RFC 9449). Without it they are
    /// bound where the server asks for it.
    pub dpop: bool,
}

/// What stands for the consent that a token needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// A person says yes on a page of the authorization server (OAuth 2.1, section 4.1).
    #[default]
    AuthorizationCode,
    /// The client acts for itself (OAuth 2.1, section 4.2). Needs [`AuthOptions::client`] with a secret or a key.
    ClientCredentials,
    /// A signed assertion that the caller supplies (RFC 7523, section 2.1), such as a workload's identity token. Needs
    /// [`AuthOptions::client`]. One that is refused is not tried again.
    Assertion,
    /// The organization's identity provider decides (enterprise-managed authorization): the caller supplies the person's
    /// identity token, which the provider exchanges for an assertion for the authorization server. Needs
    /// [`AuthOptions::client`].
    Enterprise(IdentityProvider),
}

/// A client that an authorization server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredClient {
    /// Its id.
    pub id: String,
    /// Its secret; `None` for a public client, and for one with a key.
    pub secret: Option<Secret>,
    /// Its private key, with which it proves itself (`private_key_jwt`).
    pub key: Option<PrivateKey>,
    /// The authorization server that knows it. When a server turns out to use another one, the client is not shown there.
    /// `None` trusts whichever the server names.
    pub issuer: Option<String>,
}

/// A private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateKey {
    /// PKCS #8 in PEM, as in a file that begins with `-----BEGIN PRIVATE KEY-----`.
    pub pem: Secret,
    /// What it signs with.
    pub algorithm: SigningAlgorithm,
    /// The name under which the authorization server knows its public half.
    pub key_id: Option<String>,
}

/// How a key signs (RFC 7518, section 3.1; RFC 8037).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    #[default]
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

impl SigningAlgorithm {
    /// The name in the header of a signed token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Es256, Self::Rs256, Self::EdDsa].into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

/// The identity provider of an organization, and what it knows this client as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Where it exchanges tokens (RFC 8693).
    pub token_endpoint: String,
    /// The client's id there.
    pub client_id: String,
    /// The client's secret there, if it has one.
    pub client_secret: Option<Secret>,
}

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}
