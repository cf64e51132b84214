//! The stores of the crate keep the contract of `Store`, the file store on a real disk.
#![cfg(feature = "native")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

#[path = "support/store_contract.rs"]
mod store_contract;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crablet::ErrorKind;
use crablet::host::{MemoryStore, Store, Stored};
use crablet::native::FileStore;
use store_contract::keeps_the_contract;

/// A folder of its own, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("crablet-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn names(&self, id: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(id)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _already_gone = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn conversations_in_memory() {
    keeps_the_contract(&MemoryStore::default()).await;
}

#[tokio::test]
async fn conversations_in_files() {
    let folder = Folder::new("files");
    keeps_the_contract(&FileStore::new(&folder.0)).await;
}

/// As the file store of the npm package names them, so that each reads what the other wrote.
#[tokio::test]
async fn files_have_the_names_that_the_npm_package_gives_them() {
    let folder = Folder::new("names");
    let store = FileStore::new(&folder.0);
    store.replace("user:7/чат.1", 0, "{\"format\":1}\n".into()).await.unwrap();
    store.append("user:7/чат.1", 1, "two\n".into()).await.unwrap();
    assert_eq!(folder.names("user%3A7%2F%D1%87%D0%B0%D1%82%2E1"), ["0000000001.jsonl", "0000000002.jsonl"]);
}

/// What the npm package wrote goes on, whichever version wrote it.
#[tokio::test]
async fn files_of_the_npm_package_are_read() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pkg-tests/golden/older/files.json");
    let files: BTreeMap<String, String> = serde_json::from_str(&fs::read_to_string(golden).unwrap()).unwrap();
    let folder = Folder::new("older");
    for (name, text) in files {
        let path = folder.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let store = FileStore::new(&folder.0);
    for (id, version, lines) in [("monday", 2, 3), ("user:7/чат.1", 3, 2)] {
        let Stored { text, version: stored, .. } = store.read(id).await.unwrap().unwrap();
        assert_eq!((stored, text.lines().count()), (version, lines), "{id}");
        assert_eq!(store.append(id, version, "more\n".to_owned()).await.unwrap(), version + 1);
    }
}

#[tokio::test]
async fn of_many_writers_at_once_one_wins_each_version() {
    let folder = Folder::new("race");
    let store = Arc::new(FileStore::new(&folder.0));
    for version in 0..20_u64 {
        let writers = (0..8).map(|writer| {
            let store = store.clone();
            let lines = format!("{{\"format\":{version},\"by\":{writer}}}\n");
            let replaces = writer % 2 == 0;
            tokio::spawn(async move {
                let writing = if replaces || version == 0 {
                    store.replace("a", version, lines)
                } else {
                    store.append("a", version, lines)
                };
                writing.await.is_ok()
            })
        });
        let writers: Vec<_> = writers.collect();
        let mut winners = 0;
        for writer in writers {
            winners += u32::from(writer.await.unwrap());
        }
        assert_eq!(winners, 1, "version {version}");
        assert_eq!(store.read("a").await.unwrap().unwrap().version, version + 1);
    }
}

#[tokio::test]
async fn a_crash_between_the_steps_of_a_write_leaves_a_whole_conversation() {
    let folder = Folder::new("crash");
    let store = FileStore::new(&folder.0);
    store.replace("a", 0, "{\"format\":1}\n".into()).await.unwrap();
    store.append("a", 1, "two\n".into()).await.unwrap();
    // Killed while it wrote, and killed before it removed what it replaced.
    fs::write(folder.0.join("a/.3-99-0"), "half a li").unwrap();
    fs::write(folder.0.join("a/0000000003.jsonl"), "{\"format\":2}\n").unwrap();
    let stored = store.read("a").await.unwrap().unwrap();
    assert_eq!(stored, Stored { version: 3, text: "{\"format\":2}\n".into() });
    store.replace("a", 3, "{\"format\":3}\n".into()).await.unwrap();
    assert_eq!(folder.names("a"), ["0000000004.jsonl"], "what was left behind is gone");
}

#[tokio::test]
async fn what_cannot_be_written_is_told() {
    let folder = Folder::new("refused");
    fs::write(folder.0.join("file"), "").unwrap();
    let store = FileStore::new(folder.0.join("file"));
    let error = store.replace("a", 0, "x\n".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("file"), "{error}");
    let long = "x".repeat(300);
    for id in ["", &long] {
        assert_eq!(store.read(id).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
