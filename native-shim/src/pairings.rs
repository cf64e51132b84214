//! Codes that wait for a page: made by `pair`, used by `serve`, kept in a file between them.

use crablet::Millis;
use crablet::json::Object;
use crablet::mcp::transport::shim::{PairAnswer, PairContext, PairRequest, PairingCode, Token};
use serde::{Serialize, Serializer};

use crate::grants::Exposure;
use crate::origin::Origin;
use crate::state::{PrivateFile, StateDirectory, StateError};

/// One code, and what it opens.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pairing {
    #[serde(serialize_with = "reveal")]
    pub(crate) code: PairingCode,
    pub(crate) client: PairingClient,
    pub(crate) servers: Vec<String>,
    pub(crate) exposes: Option<Exposure>,
    pub(crate) expires_at: Millis,
    /// How many wrong codes are still borne before this one is worth nothing.
    pub(crate) attempts: u32,
    /// Who used it; `pair` waits for this.
    pub(crate) paired: Option<String>,
}

/// Who may use a code.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PairingClient {
    /// The page or extension that the code is typed into.
    AnyOrigin,
    Origin(Origin),
    /// A program that sends no `Origin`.
    Native,
}

impl Pairing {
    /// A code for five minutes and five attempts.
    pub(crate) fn new(
        code: PairingCode,
        client: PairingClient,
        servers: Vec<String>,
        exposes: Option<Exposure>,
        now: Millis,
    ) -> Self {
        let expires_at = Millis(now.0.saturating_add(LIFETIME));
        Self { code, client, servers, exposes, expires_at, attempts: MAX_ATTEMPTS, paired: None }
    }

    fn is_open(&self, now: Millis) -> bool {
        self.paired.is_none() && self.attempts > 0 && now < self.expires_at
    }

    fn admits(&self, origin: Option<&str>) -> bool {
        match (&self.client, origin) {
            (PairingClient::AnyOrigin, Some(_)) | (PairingClient::Native, None) => true,
            (PairingClient::Origin(allowed), Some(origin)) => allowed.matches(origin),
            _ => false,
        }
    }
}

/// The file of codes.
#[derive(Clone, Debug)]
pub(crate) struct PairingFile(PrivateFile);

/// What became of a code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waiting,
    Paired(String),
    /// Too old, or guessed at too often.
    Over,
}

/// A code that was right: what is answered, and what is granted.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) answer: PairAnswer,
    pub(crate) token: Token,
    pub(crate) servers: Vec<String>,
    pub(crate) exposes: Option<Exposure>,
}

impl PairingFile {
    /// The file in this directory.
    pub(crate) fn of(directory: &StateDirectory) -> Self {
        Self(directory.file("pairings.json"))
    }

    /// Adds a code, and forgets those that are over.
    pub(crate) fn add(&self, pairing: Pairing, now: Millis) -> Result<(), StateError> {
        self.0.change(LIST, read_pairing, |pairings| {
            pairings.retain(|pairing| pairing.is_open(now));
            let surplus = pairings.len().saturating_sub(MAX_PAIRINGS - 1);
            pairings.drain(..surplus);
            pairings.push(pairing);
        })
    }

    /// Forgets a code.
    pub(crate) fn remove(&self, code: &PairingCode) -> Result<(), StateError> {
        self.0.change(LIST, read_pairing, |pairings| pairings.retain(|pairing| pairing.code != *code))
    }

    pub(crate) fn progress(&self, code: &PairingCode, now: Millis) -> Result<Progress, StateError> {
        let pairing = self.0.read(LIST, read_pairing)?.into_iter().find(|pairing| pairing.code == *code);
        Ok(match pairing {
            Some(Pairing { paired: Some(client), .. }) => Progress::Paired(client),
            Some(pairing) if pairing.is_open(now) => Progress::Waiting,
            _ => Progress::Over,
        })
    }

    /// Whether a code waits that this client may use.
    pub(crate) fn awaits(&self, origin: Option<&str>, now: Millis) -> bool {
        let pairings = self.0.read(LIST, read_pairing).unwrap_or_default();
        pairings.iter().any(|pairing| pairing.is_open(now) && pairing.admits(origin))
    }

    /// Uses up the code that a request was made with. A request that fits none counts against all that it may have meant.
    pub(crate) fn redeem(
        &self,
        request: &PairRequest,
        origin: Option<&str>,
        authority: &str,
        random: ([u8; 9], [u8; 16]),
        now: Millis,
    ) -> Result<Option<Match>, StateError> {
        let context = PairContext { authority, origin: origin.unwrap_or_default() };
        self.0.change(LIST, read_pairing, |pairings| {
            let open = |pairing: &&mut Pairing| pairing.is_open(now) && pairing.admits(origin);
            let used = pairings.iter_mut().filter(open).find(|pairing| request.verify(&pairing.code, context));
            let Some(pairing) = used else {
                pairings.iter_mut().filter(open).for_each(|pairing| pairing.attempts -= 1);
                return None;
            };
            let servers = pairing.servers.clone();
            let (answer, token) = PairAnswer::new(&pairing.code, request, context, random, servers.clone());
            pairing.paired = Some(origin.unwrap_or("a program without an origin").to_owned());
            Some(Match { answer, token, servers, exposes: pairing.exposes })
        })
    }
}

fn read_pairing(object: &Object<'_>) -> Option<Pairing> {
    let client = match object.string("client") {
        Some(word) if word == "any-origin" => PairingClient::AnyOrigin,
        Some(word) if word == "native" => PairingClient::Native,
        _ => PairingClient::Origin(Origin::parse(&object.object("client")?.string("origin")?).ok()?),
    };
    Some(Pairing {
        code: PairingCode::parse(&object.string("code")?).ok()?,
        client,
        servers: object.read("servers")?,
        exposes: object.object("exposes").map(|exposes| Exposure::read(&exposes)),
        expires_at: Millis(object.integer("expiresAt")?),
        attempts: u32::try_from(object.integer("attempts")?).ok()?,
        paired: object.string("paired"),
    })
}

fn reveal<S: Serializer>(code: &PairingCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&code.reveal())
}

const LIST: &str = "pairings";

/// As long as it takes to go from the terminal to the page, with a look for the right button.
const LIFETIME: u64 = 5 * 60_000;

/// A person mistypes once or twice; sixty bits are not guessed in five.
const MAX_ATTEMPTS: u32 = 5;

/// Codes that wait at the same time; older ones make room.
const MAX_PAIRINGS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000);
    const HERE: &str = "127.0.0.1:6735";
    const PAGE: Option<&str> = Some("https://a.example");

    fn code(seed: u8) -> PairingCode {
        PairingCode::from_random([seed; 12])
    }

    fn request(seed: u8, origin: Option<&str>) -> PairRequest {
        let context = PairContext { authority: HERE, origin: origin.unwrap_or_default() };
        PairRequest::new(&code(seed), [9; 16], context)
    }

    fn redeem(file: &PairingFile, seed: u8, origin: Option<&str>, now: Millis) -> Option<Match> {
        file.redeem(&request(seed, origin), origin, HERE, ([1; 9], [2; 16]), now).unwrap()
    }

    fn waiting(name: &str, client: PairingClient) -> (StateDirectory, PairingFile) {
        let directory = StateDirectory::scratch(name);
        let file = PairingFile::of(&directory);
        file.add(Pairing::new(code(1), client, vec!["files".into()], None, NOW), NOW).unwrap();
        (directory, file)
    }

    #[test]
    fn a_code_works_once() {
        let (directory, file) = waiting("pair-once", PairingClient::AnyOrigin);
        assert!(file.awaits(PAGE, NOW) && !file.awaits(None, NOW));
        assert_eq!(file.progress(&code(1), NOW).unwrap(), Progress::Waiting);
        assert_eq!(redeem(&file, 1, PAGE, NOW).unwrap().servers, ["files"]);
        assert_eq!(file.progress(&code(1), NOW).unwrap(), Progress::Paired("https://a.example".into()));
        assert!(redeem(&file, 1, PAGE, NOW).is_none());
        assert!(!file.awaits(PAGE, NOW));
        directory.remove();
    }

    #[test]
    fn wrong_codes_use_up_the_right_one() {
        let (directory, file) = waiting("pair-guess", PairingClient::AnyOrigin);
        for _ in 0..MAX_ATTEMPTS {
            assert_eq!(file.progress(&code(1), NOW).unwrap(), Progress::Waiting);
            assert!(redeem(&file, 2, PAGE, NOW).is_none());
        }
        assert_eq!(file.progress(&code(1), NOW).unwrap(), Progress::Over);
        assert!(redeem(&file, 1, PAGE, NOW).is_none());
        directory.remove();
    }

    #[test]
    fn a_code_grows_old() {
        let (directory, file) = waiting("pair-old", PairingClient::AnyOrigin);
        let late = Millis(NOW.0 + LIFETIME);
        assert!(redeem(&file, 1, PAGE, late).is_none());
        assert_eq!(file.progress(&code(1), late).unwrap(), Progress::Over);
        file.add(Pairing::new(code(3), PairingClient::Native, Vec::new(), None, late), late).unwrap();
        assert_eq!(file.0.read(LIST, read_pairing).unwrap().len(), 1);
        directory.remove();
    }

    #[test]
    fn a_code_is_for_its_client_only() {
        let origin = PairingClient::Origin(Origin::parse("https://a.example").unwrap());
        for (name, client, allowed, refused) in [
            ("pair-origin", origin, PAGE, Some("https://b.example")),
            ("pair-native", PairingClient::Native, None, PAGE),
            ("pair-page", PairingClient::AnyOrigin, PAGE, None),
        ] {
            let (directory, file) = waiting(name, client);
            assert!(redeem(&file, 1, refused, NOW).is_none());
            assert_eq!(file.0.read(LIST, read_pairing).unwrap()[0].attempts, MAX_ATTEMPTS, "not its business");
            assert!(redeem(&file, 1, allowed, NOW).is_some());
            directory.remove();
        }
    }
}
