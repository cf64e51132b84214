//! What the shim keeps between its runs, held against files that are committed: as it writes them now (`tests/golden/state`, written
//! with `CRABLET_WRITE_GOLDEN=1`), and as older versions did (`tests/golden/older-state`), which it has to read for ever.

use std::fs;
use std::path::{Path, PathBuf};

use crablet::Millis;
use crablet::json::RawJson;
use crablet::mcp::transport::shim::{PairingCode, Token};

use crate::expose::{Consent, ConsentFile, Shown};
use crate::extension::ExtensionId;
use crate::grants::{Exposure, Grant, GrantFile};
use crate::http::HttpGrant;
use crate::origin::Origin;
use crate::pairings::{Pairing, PairingClient, PairingFile};
use crate::state::StateDirectory;

const NAMES: [&str; 4] = ["grants.json", "http-grants.json", "pairings.json", "consents.json"];

fn token(key: u8) -> Token {
    Token::from_random([key; 9], [2; 32])
}

fn origins(origins: &[&str]) -> Vec<Origin> {
    origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect()
}

fn servers() -> Vec<String> {
    vec!["files".to_owned(), "my notes ☂".to_owned()]
}

/// One entry of each kind in each file.
fn fill(directory: &StateDirectory) {
    let grants = GrantFile::of(directory);
    let exposes = Exposure { allow_destructive: true, accept_changes: false };
    let page = Grant::new(token(1), origins(&["https://a.example", "http://localhost:5173"]), servers(), Millis(1));
    grants.add(page.clone()).unwrap();
    grants.add(Grant { token: token(3), exposes: Some(exposes), plain: true, origins: Vec::new(), ..page }).unwrap();
    let extension = ExtensionId::parse("notes@example.org").unwrap();
    grants.allow_extension(&extension, &servers(), token(4), Millis(2)).unwrap();

    let http = HttpGrant::new(&token(5), origins(&["https://a.example"]), servers(), Millis(3));
    GrantFile::of(directory).add(http).unwrap();

    let pairings = PairingFile::of(directory);
    let clients = [
        PairingClient::AnyOrigin,
        PairingClient::Native,
        PairingClient::Origin(origins(&["https://a.example"])[0].clone()),
    ];
    for (seed, client) in (1..).zip(clients) {
        let exposes = (seed == 1).then_some(exposes);
        pairings
            .add(Pairing::new(PairingCode::from_random([seed; 12]), client, servers(), exposes, Millis(4)), Millis(4))
            .unwrap();
    }

    let waits = Consent {
        key_id: "key".to_owned(),
        origin: "https://a.example".to_owned(),
        tool: "delete".to_owned(),
        digest: "digest".to_owned(),
        agreed: false,
        reason: "destructive".to_owned(),
        seen_at: Millis(5),
        shown: Some(Shown {
            title: "Delete".to_owned(),
            description: "Deletes a note".to_owned(),
            input_schema: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        }),
    };
    let agreed = Consent { tool: "read".to_owned(), agreed: true, reason: String::new(), shown: None, ..waits.clone() };
    let consents = directory.large_file("consents.json");
    consents.change("consents", |_| None, |consents: &mut Vec<Consent>| consents.extend([waits, agreed])).unwrap();
}

fn committed(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder)
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn what_is_written_is_what_is_committed() {
    let directory = StateDirectory::scratch("state-golden");
    fill(&directory);
    for name in NAMES {
        let written = read(directory.path(), name);
        if std::env::var_os("CRABLET_WRITE_GOLDEN").is_some() {
            fs::create_dir_all(committed("state")).unwrap();
            fs::write(committed("state").join(name), &written).unwrap();
        }
        assert_eq!(read(&committed("state"), name), written, "{name}: `make golden-accept` writes it");
    }
    directory.remove();
}

/// A folder a version.
#[test]
fn what_older_versions_wrote_is_read_whole() {
    let now = StateDirectory::scratch("state-now");
    fill(&now);
    for older in fs::read_dir(committed("older-state")).unwrap() {
        let directory = StateDirectory::scratch("state-older");
        directory.create().unwrap();
        let older = older.unwrap().path();
        for name in NAMES {
            let file = directory.path().join(name);
            drop(crate::owner_only::open(&file).unwrap());
            fs::write(file, read(&older, name)).unwrap();
        }
        // A change that changes nothing writes all that was understood.
        assert!(!GrantFile::<Grant>::of(&directory).revoke("none").unwrap());
        assert!(!GrantFile::<HttpGrant>::of(&directory).revoke("none").unwrap());
        PairingFile::of(&directory).remove(&PairingCode::from_random([9; 12])).unwrap();
        assert!(ConsentFile::of(&directory).decide(&[], true).unwrap().is_empty());
        for name in NAMES {
            assert_eq!(read(directory.path(), name), read(now.path(), name), "{} of {}", name, older.display());
        }
        directory.remove();
    }
    now.remove();
}
