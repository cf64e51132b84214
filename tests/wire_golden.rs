//! What is sent for each feature to each provider, against golden files that name the vendor's document; and the tables of
//! `docs/providers.md`, which say the same.
//!
//! With `CRABLET_WRITE_GOLDEN=1` the files and tables are written instead: read the difference before it is committed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crablet::model::{EncodedCache, HttpRequest, Model, ModelRequest};
use crablet::{Error, ErrorKind};
use serde_json::{Map, Value, json};
use wire::features::{Feature, Provider, features, features_of_servers, providers, servers};
use wire::sources::source;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/requests")
}

fn writes() -> bool {
    std::env::var_os("CRABLET_WRITE_GOLDEN").is_some()
}

fn encode(request: &ModelRequest) -> Result<HttpRequest, Error> {
    wire::replay::wire(&request.model).encode(request, &mut EncodedCache::default())
}

/// What is sent for a feature, or why nothing is, with the source. Address and headers are there where the feature changes
/// them, and for the plain request.
fn golden(provider: &Provider, feature: &Feature) -> Value {
    let [document, address, read] = source(provider.name, feature.name);
    let mut golden = json!({"source": {"document": document, "address": address, "read": read}});
    let outside = |request: fn(&Model) -> ModelRequest| {
        encode(&request(&provider.model))
            .ok()
            .map(|http| (http.url, http.headers.into_iter().collect::<BTreeMap<_, _>>()))
    };
    match encode(&(feature.request)(&provider.model)) {
        Ok(http) => {
            golden["body"] = serde_json::from_slice(&http.body).unwrap();
            let around = outside(feature.request);
            if feature.name == "plain" || around != outside(feature.base) {
                let (url, headers) = around.unwrap();
                golden["url"] = url.into();
                golden["headers"] = json!(headers);
            }
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{} {}", provider.name, feature.name);
            golden["refused"] = error.message().into();
        }
    }
    golden
}

#[test]
fn bodies_are_the_golden_ones() {
    let mut files = BTreeSet::new();
    let all = providers().into_iter().map(|provider| (provider, features()));
    for (provider, features) in all.chain(servers().into_iter().map(|server| (server, features_of_servers()))) {
        let path = folder().join(format!("{}.json", provider.name));
        let of_feature = |feature: &Feature| (feature.name.to_owned(), golden(&provider, feature));
        let made: Map<String, Value> = features.iter().map(of_feature).collect();
        if writes() {
            fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&made).unwrap())).unwrap();
        }
        let known = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let known: Map<String, Value> = serde_json::from_str(&known).unwrap();
        for (feature, made) in &made {
            assert_eq!(known.get(feature), Some(made), "{} {feature}", provider.name);
        }
        assert_eq!(known.len(), made.len(), "{} has bodies of no feature", path.display());
        files.insert(path);
    }
    let there: BTreeSet<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(there, files, "files of no provider");
}

/// What becomes of a feature: a word for the table.
fn outcome(provider: &Provider, feature: &Feature) -> &'static str {
    let sent = |request: fn(&Model) -> ModelRequest| {
        encode(&request(&provider.model)).map(|http| (http.url, http.headers, String::from_utf8(http.body).unwrap()))
    };
    match (sent(feature.request), sent(feature.base)) {
        (Err(_), _) => "error",
        (Ok((_, _, body)), _) if body.contains("left out: this model") => "a note",
        (Ok(sent), Ok(base)) if sent == base => "left out",
        _ => "yes",
    }
}

/// A table of the documentation, written between two marks.
fn table(name: &str, head: &[&str], rows: &[Vec<String>]) {
    let mut lines = vec![head.join(" | "), vec!["---"; head.len()].join(" | ")];
    lines.extend(rows.iter().map(|row| row.join(" | ")));
    let made: String = lines.iter().map(|line| format!("| {line} |\n")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/providers.md");
    let text = fs::read_to_string(&path).unwrap();
    let (open, close) = (format!("<!-- table: {name} -->\n"), format!("<!-- end: {name} -->"));
    let (before, rest) = text.split_once(&open).unwrap_or_else(|| panic!("docs/providers.md has no {open}"));
    let (known, after) = rest.split_once(&close).unwrap_or_else(|| panic!("docs/providers.md has no {close}"));
    if writes() {
        fs::write(&path, format!("{before}{open}{made}{close}{after}")).unwrap();
    } else {
        assert_eq!(known, made, "the table {name} of docs/providers.md is not what happens");
    }
}

#[test]
fn the_documentation_says_what_happens() {
    let columns = ["anthropic", "openai-chat", "openai-responses", "azure-responses", "gemini", "vertex", "bedrock"];
    let all = providers();
    let named = |name: &str| all.iter().find(|provider| provider.name == name).unwrap();
    let features = features();
    let rows = features.iter().filter(|feature| !feature.row.is_empty()).map(|feature| {
        let cells = columns.iter().map(|column| outcome(named(column), feature).to_owned());
        std::iter::once(feature.row.to_owned()).chain(cells).collect()
    });
    let head = ["", "Anthropic", "OpenAI Chat", "Responses", "Azure", "Gemini", "Vertex", "Bedrock"];
    table("features", &head, &rows.collect::<Vec<_>>());

    let shown = [
        "image-bytes",
        "image-url",
        "document-bytes",
        "document-url",
        "audio",
        "video",
        "reasoning-effort",
        "reasoning-budget",
        "reasoning-off",
        "reasoning-replay",
        "user",
        "metadata",
        "cache-long",
    ];
    let of_name = |name: &str| features.iter().find(|feature| feature.name == name).unwrap();
    let rows = servers().into_iter().map(|server| {
        let cells = shown.iter().map(|name| outcome(&server, of_name(name)).to_owned());
        std::iter::once(format!("`{}`", server.name)).chain(cells).collect()
    });
    let head: Vec<_> = std::iter::once("").chain(shown.map(|name| of_name(name).name)).collect();
    table("servers", &head, &rows.collect::<Vec<_>>());
}
