//! The file tools over a store in memory and over a folder: what a model asks for, and what a hostile one asks for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::sync::Arc;

use crablet::agent::ToolDefinition;
use crablet::host::tools::{
    BuiltInTool, FileError, FileLimits, FileOptions, FileStore, MemoryFiles, file_tools, reading_tools,
};
use crablet::native::tools::FolderFiles;
use serde_json::json;

use super::{Folder, call};

/// A store of each kind with these files in it.
fn stores(files: &[(&str, &str)]) -> Vec<(Arc<dyn FileStore>, Option<Folder>)> {
    let folder = Folder::new();
    for (path, content) in files {
        let path = folder.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let memory = MemoryFiles::new(files.iter().copied()).unwrap();
    let opened = FolderFiles::open(&folder.0).unwrap();
    vec![(Arc::new(memory), None), (Arc::new(opened), Some(folder))]
}

async fn content(store: &Arc<dyn FileStore>, path: &str) -> String {
    String::from_utf8(store.read(path, 1_000_000).await.unwrap().expect("the file is there")).unwrap()
}

fn tools(store: &Arc<dyn FileStore>) -> Vec<BuiltInTool> {
    file_tools(store.clone(), FileOptions::default())
}

#[track_caller]
fn assert_fails(outcome: Result<String, String>, words: &str) {
    let error = outcome.expect_err(words);
    assert!(error.contains(words), "{error:?} does not hold {words:?}");
}

#[tokio::test]
async fn no_path_leads_out() {
    for (store, _folder) in stores(&[("a/b.txt", "inside")]) {
        let tools = tools(&store);
        for path in ["../secret", "a/../../secret", "a/..", "/etc/passwd", "..\\x", "C:\\x", "C:/x", "a\0b", "a\nb"] {
            assert_fails(call(&tools, "readFile", json!({ "path": path })).await, "the path");
            assert_fails(call(&tools, "writeFile", json!({ "path": path, "content": "x" })).await, "the path");
            let edit = json!({ "path": path, "oldText": "a", "newText": "b" });
            assert_fails(call(&tools, "editFile", edit).await, "the path");
            assert_fails(call(&tools, "listFiles", json!({ "path": path })).await, "the path");
            assert_fails(call(&tools, "searchFiles", json!({ "path": path, "text": "x" })).await, "the path");
        }
        assert_eq!(call(&tools, "readFile", json!({ "path": "./a//b.txt" })).await.as_deref(), Ok("inside"));
    }
}

#[tokio::test]
async fn reading_gives_lines() {
    for (store, _folder) in stores(&[("ten.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"), ("empty", "")]) {
        let tools = tools(&store);
        let read = async |input| call(&tools, "readFile", input).await;
        assert_eq!(read(json!({ "path": "ten.txt" })).await.unwrap(), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10");
        assert_eq!(
            read(json!({ "path": "ten.txt", "from": 3, "lines": 2 })).await.unwrap(),
            "3\n4\n[lines 3 to 4 of 10; read on with \"from\": 5]"
        );
        assert_eq!(read(json!({ "path": "ten.txt", "from": 9 })).await.unwrap(), "9\n10\n[lines 9 to 10 of 10]");
        assert_eq!(read(json!({ "path": "empty" })).await.unwrap(), "[empty is empty]");
        assert_fails(read(json!({ "path": "ten.txt", "from": 11 })).await, "has 10 lines, and line 11 is beyond");
        assert_fails(read(json!({ "path": "two.txt" })).await, "no two.txt; the root has empty 0, ten.txt 21");
        assert_fails(read(json!({ "path": "" })).await, "the root is a folder: list it with listFiles");
        assert_fails(read(json!({ "path": "x/y" })).await, "there is no x/y, and no folder x");
    }
}

#[tokio::test]
async fn an_edit_needs_exactly_one_place() {
    for (store, _folder) in stores(&[("a.txt", "one\ntwo\none\n"), ("dos.txt", "a\r\nb\r\n")]) {
        let tools = tools(&store);
        let edit = async |path: &str, old: &str, new: &str, all: bool| {
            let input = json!({ "path": path, "oldText": old, "newText": new, "all": all });
            call(&tools, "editFile", input).await
        };
        assert_fails(edit("a.txt", "one", "1", false).await, "occurs 2 times in a.txt, at the lines 1, 3");
        assert_fails(edit("a.txt", "four", "4", false).await, "Read the file again");
        assert_fails(edit("a.txt", "two\nthree", "4", false).await, "first line is at line 2");
        assert_fails(edit("a.txt", "", "4", false).await, "oldText is empty");
        assert_fails(edit("a.txt", "two", "two", false).await, "nothing would change");
        assert_eq!(content(&store, "a.txt").await, "one\ntwo\none\n");
        edit("a.txt", "two\n", "zwei\n", false).await.unwrap();
        edit("a.txt", "one", "1", true).await.unwrap();
        assert_eq!(content(&store, "a.txt").await, "1\nzwei\n1\n");
        edit("dos.txt", "a\nb\n", "c\nd\n", false).await.unwrap();
        assert_eq!(content(&store, "dos.txt").await, "c\r\nd\r\n", "the file keeps its line ends");
    }
}

#[tokio::test]
async fn two_edits_at_once_both_happen() {
    for (store, _folder) in stores(&[("a.txt", "one two")]) {
        let tools = tools(&store);
        let edit = async |old: &str, new: &str| {
            call(&tools, "editFile", json!({ "path": "a.txt", "oldText": old, "newText": new })).await.unwrap()
        };
        tokio::join!(edit("one", "1"), edit("two", "2"));
        assert_eq!(content(&store, "a.txt").await, "1 2");
    }
}

#[tokio::test]
async fn writing_makes_folders_and_keeps_out_of_the_way_of_others() {
    for (store, _folder) in stores(&[("a/b.txt", "old")]) {
        let tools = tools(&store);
        let write = async |path: &str| call(&tools, "writeFile", json!({ "path": path, "content": "hé" })).await;
        assert_eq!(write("new/deep/file.txt").await.unwrap(), "wrote new/deep/file.txt: 3 bytes");
        assert_eq!(content(&store, "new/deep/file.txt").await, "hé");
        assert_fails(write("a").await, "in the way");
        assert_fails(write("a/b.txt/c").await, "in the way");
        assert_fails(write("").await, "needs a name");
        assert_eq!(content(&store, "a/b.txt").await, "old");
    }
}

const TREE: &[(&str, &str)] = &[
    ("readme.md", "# Hello\n"),
    ("src/main.ts", "const answer = 42;\nlet other;\n"),
    ("src/deep/part.js", "answer();\n"),
    ("node_modules/big/index.js", "answer"),
    ("picture.png", "PNG\0answer"),
];

#[tokio::test]
async fn listing() {
    for (store, _folder) in stores(TREE) {
        let tools = tools(&store);
        let list = async |input| call(&tools, "listFiles", input).await;
        assert_eq!(list(json!({})).await.unwrap(), "node_modules/\npicture.png 10\nreadme.md 8\nsrc/");
        assert_eq!(list(json!({ "path": "src" })).await.unwrap(), "src/deep/\nsrc/main.ts 30");
        assert_eq!(
            list(json!({ "path": "src", "recursive": true })).await.unwrap(),
            "src/deep/\nsrc/deep/part.js 10\nsrc/main.ts 30"
        );
        assert_eq!(list(json!({ "glob": "*.{js,ts}" })).await.unwrap(), "src/deep/part.js 10\nsrc/main.ts 30");
        assert_eq!(list(json!({ "glob": "*.py" })).await.unwrap(), "[no file fits \"*.py\"]");
        assert_fails(list(json!({ "path": "none" })).await, "there is no none; the root has");
        assert_fails(list(json!({ "path": "readme.md" })).await, "is a file, not a folder");
    }
}

#[tokio::test]
async fn searching() {
    for (store, _folder) in stores(TREE) {
        let tools = tools(&store);
        let search = async |input| call(&tools, "searchFiles", input).await;
        assert_eq!(
            search(json!({ "text": "answer" })).await.unwrap(),
            "src/deep/part.js:1: answer();\nsrc/main.ts:1: const answer = 42;\n\
            [1 files were not searched: they are no text, too large or not readable]"
        );
        assert_eq!(
            search(json!({ "text": "^(const|let)\\s+\\w+;?", "regex": true, "glob": "*.ts" })).await.unwrap(),
            "src/main.ts:1: const answer = 42;\nsrc/main.ts:2: let other;"
        );
        let any_case = json!({ "text": "HELLO", "ignoreCase": true, "path": "readme.md" });
        assert_eq!(search(any_case).await.unwrap(), "readme.md:1: # Hello");
        assert_eq!(search(json!({ "text": "absent", "glob": "*.ts" })).await.unwrap(), "[nothing found]");
        assert_fails(search(json!({ "text": "(a", "regex": true })).await, "not a regular expression");
        assert_fails(search(json!({ "text": "((a{99}){99}){99}", "regex": true })).await, "not a regular expression");
        assert_fails(search(json!({ "text": "" })).await, "text is empty");
    }
}

#[tokio::test]
async fn what_is_large_is_cut_or_refused_with_what_to_do() {
    let (long, one) = ("line\n".repeat(1_000), "x".repeat(5_000));
    for (store, _folder) in stores(&[("long.txt", &long), ("one.txt", &one), ("many/a", "1"), ("many/b", "1")]) {
        let limited = |limits| file_tools(store.clone(), FileOptions { limits, ..FileOptions::default() });
        let limits = FileLimits { max_read_bytes: 100, max_results: 3, max_file_bytes: 6_000, ..FileLimits::default() };
        let tools = limited(limits);
        let read = call(&tools, "readFile", json!({ "path": "long.txt" })).await.unwrap();
        assert!(read.ends_with("[lines 1 to 20 of 1000; read on with \"from\": 21]"), "{read}");
        let read = call(&tools, "readFile", json!({ "path": "one.txt" })).await.unwrap();
        assert_eq!(read, format!("{}\n[line 1 has 5000 bytes and is cut.]", "x".repeat(100)));
        let found = call(&tools, "searchFiles", json!({ "text": "line" })).await.unwrap();
        assert!(found.ends_with(":3: line\n[more than 3 places: narrow the search]"), "{found}");
        let listed = call(&tools, "listFiles", json!({ "recursive": true })).await.unwrap();
        assert!(listed.contains("[more than 3 entries"), "{listed}");
        let write = json!({ "path": "b", "content": "x".repeat(6_001) });
        assert_fails(call(&tools, "writeFile", write).await, "6001 bytes, and a file may have 6000");
        let tools = limited(FileLimits { max_file_bytes: 10, max_entries: 2, ..FileLimits::default() });
        assert_fails(call(&tools, "readFile", json!({ "path": "long.txt" })).await, "5000 bytes, and at most 10");
        let listed = call(&tools, "listFiles", json!({ "recursive": true })).await.unwrap();
        assert!(listed.ends_with("[only the first 2 entries were looked at: name a folder further down]"), "{listed}");
    }
}

#[tokio::test]
async fn links_that_lead_out_pipes_and_huge_files() {
    let (outside, folder) = (Folder::new(), Folder::new());
    fs::write(outside.0.join("secret.txt"), "secret").unwrap();
    fs::create_dir(folder.0.join("sub")).unwrap();
    fs::write(folder.0.join("inside.txt"), "inside").unwrap();
    symlink(outside.0.join("secret.txt"), folder.0.join("link.txt")).unwrap();
    symlink(&outside.0, folder.0.join("linked")).unwrap();
    symlink("../..", folder.0.join("sub/up")).unwrap();
    symlink("../inside.txt", folder.0.join("sub/inside")).unwrap();
    symlink("loop", folder.0.join("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.0.join("pipe")).status().unwrap().success());
    File::create(folder.0.join("huge.bin")).unwrap().set_len(8 << 30).unwrap();
    let store: Arc<dyn FileStore> = Arc::new(FolderFiles::open(&folder.0).unwrap());
    let tools = tools(&store);

    let up = format!("sub/up/{}/secret.txt", outside.0.file_name().unwrap().to_str().unwrap());
    for path in ["link.txt", "linked/secret.txt", &up] {
        assert_fails(call(&tools, "readFile", json!({ "path": path })).await, "leads out of these files");
        let edit = json!({ "path": path, "oldText": "secret", "newText": "x" });
        assert_fails(call(&tools, "editFile", edit).await, "leads out of these files");
    }
    for path in ["linked/new.txt", "sub/up/new.txt"] {
        let outcome = call(&tools, "writeFile", json!({ "path": path, "content": "x" })).await;
        assert!(outcome.is_err(), "{path}: {outcome:?}");
    }
    assert_fails(call(&tools, "writeFile", json!({ "path": "link.txt", "content": "x" })).await, "in the way");
    assert_fails(call(&tools, "listFiles", json!({ "path": "linked" })).await, "leads out of these files");
    assert!(call(&tools, "readFile", json!({ "path": "loop" })).await.is_err());
    assert_eq!(call(&tools, "readFile", json!({ "path": "sub/inside" })).await.unwrap(), "inside");
    assert_fails(call(&tools, "readFile", json!({ "path": "pipe" })).await, "neither a file nor a folder");
    assert_fails(call(&tools, "readFile", json!({ "path": "huge.bin" })).await, "at most 10485760 are read");
    let listed = call(&tools, "listFiles", json!({ "recursive": true })).await.unwrap();
    assert!(listed.contains("link.txt (neither file nor folder)") && !listed.contains("secret"), "{listed}");
    let found = call(&tools, "searchFiles", json!({ "text": "secret" })).await.unwrap();
    assert!(!found.contains("secret.txt"), "{found}");
    assert_eq!(fs::read_to_string(outside.0.join("secret.txt")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside.0).unwrap().count(), 1);
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let (outside, folder) = (Folder::new(), Folder::new());
    fs::write(outside.0.join("file"), "outside").unwrap();
    fs::create_dir(folder.0.join("sub")).unwrap();
    fs::write(folder.0.join("sub/file"), "inside").unwrap();
    let store = FolderFiles::open(&folder.0).unwrap();
    let sub = folder.0.join("sub");
    let (kept, there) = (folder.0.join("kept"), outside.0.clone());
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let swapping = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            fs::rename(&sub, &kept).unwrap();
            // The store may have made the folder anew.
            let _made = symlink(&there, &sub);
            while fs::rename(&kept, &sub).is_err() {
                let _gone = fs::remove_file(&sub).or_else(|_| fs::remove_dir_all(&sub));
            }
        }
    });
    for _ in 0..500 {
        if let Ok(Some(read)) = store.read("sub/file", 100).await {
            assert_eq!(read, b"inside");
        }
        let _refused_while_swapped = store.write("sub/other", b"x".to_vec()).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(fs::read_dir(&outside.0).unwrap().count(), 1, "nothing was written outside");
}

#[tokio::test]
async fn a_written_file_keeps_its_mode_and_no_draft_is_left() {
    let folder = Folder::new();
    let path = folder.0.join("run.sh");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let store: Arc<dyn FileStore> = Arc::new(FolderFiles::open(&folder.0).unwrap());
    call(&tools(&store), "writeFile", json!({ "path": "run.sh", "content": "new" })).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(call(&tools(&store), "listFiles", json!({})).await.unwrap(), "run.sh 3");
}

#[tokio::test]
async fn a_store_in_memory_has_a_limit() {
    let store = MemoryFiles::default();
    store.write("a", vec![b'x'; 40 << 20]).await.unwrap();
    let full = FileError::Full { path: "b".into(), max_bytes: 64 << 20 };
    assert_eq!(store.write("b", vec![b'x'; 40 << 20]).await, Err(full));
    store.write("a", Vec::new()).await.unwrap();
    store.write("b", vec![b'x'; 40 << 20]).await.unwrap();
    assert_eq!(store.files().keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn changing_asks_and_looking_may_be_repeated() {
    let store: Arc<dyn FileStore> = Arc::new(MemoryFiles::default());
    let flags: BTreeMap<String, [bool; 3]> = tools(&store)
        .into_iter()
        .map(|(ToolDefinition { name, needs_approval, repeatable, sequential, .. }, _)| {
            (name, [needs_approval, repeatable, sequential])
        })
        .collect();
    let looking = [false, true, false];
    let changing = [true, false, true];
    let expected = [
        ("editFile", changing),
        ("listFiles", looking),
        ("readFile", looking),
        ("searchFiles", looking),
        ("writeFile", changing),
    ];
    assert_eq!(flags, expected.map(|(name, flags)| (name.to_owned(), flags)).into());
    let names: Vec<_> = reading_tools(store, FileOptions::default()).into_iter().map(|(tool, _)| tool.name).collect();
    assert_eq!(names, ["readFile", "listFiles", "searchFiles"]);
}
