//! The file store on a real disk.
#![cfg(feature = "native")]
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::path::PathBuf;

use crablet::ErrorKind;
use crablet::host::Store;
use crablet::native::FileStore;

/// A folder of its own, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("crablet-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _already_gone = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn what_was_saved_last_is_loaded_and_nothing_else_is_left() {
    let folder = Folder::new("saved");
    let store = FileStore::open(folder.0.join("chat.json")).unwrap();
    assert_eq!(store.load().await.unwrap(), None);
    store.save("one".to_owned()).await.unwrap();
    store.save("two".to_owned()).await.unwrap();
    drop(store);
    let store = FileStore::open(folder.0.join("chat.json")).unwrap();
    assert_eq!(store.load().await.unwrap().as_deref(), Some("two"));
    let mut names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["chat.json", "chat.json.lock"]);
}

#[tokio::test]
async fn a_second_writer_is_refused_until_the_first_one_is_gone() {
    let folder = Folder::new("locked");
    let path = folder.0.join("chat.json");
    let first = FileStore::open(&path).unwrap();
    let refused = FileStore::open(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains("chat.json"), "{refused}");
    drop(first);
    FileStore::open(&path).unwrap();
}

#[tokio::test]
async fn a_save_that_fails_leaves_the_old_snapshot() {
    let folder = Folder::new("failing");
    let path = folder.0.join("chat.json");
    let store = FileStore::open(&path).unwrap();
    store.save("old".to_owned()).await.unwrap();
    fs::create_dir(folder.0.join("chat.json.new")).unwrap();
    let error = store.save("new".to_owned()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert_eq!(store.load().await.unwrap().as_deref(), Some("old"));
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let error = FileStore::open("/no-such-folder/chat.json").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("no-such-folder"), "{error}");
}
