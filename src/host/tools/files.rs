use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::lock::Mutex;
use serde::Deserialize;

use super::edit::replace_exact;
use super::file_store::{FileEntry, FileError, FileKind, FileStore};
use super::glob::Glob;
use super::path::normal_path;
use super::search::LineMatcher;
use super::text::{clipped, decode, lines};
use super::walk::Walk;
use super::{BuiltInTool, built_in, definition};
use crate::host::{CancelToken, ToolContext};

/// How the file tools behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether a person is asked before a file is written or edited. Default: yes.
    pub needs_approval: bool,
    /// Folders that a walk through all folders does not enter. Default: `.git` and `node_modules`.
    pub ignore: BTreeSet<String>,
    /// How much is read and told.
    pub limits: FileLimits,
}

impl Default for FileOptions {
    fn default() -> Self {
        let ignore = [".git", "node_modules"].map(str::to_owned).into();
        Self { needs_approval: true, ignore, limits: FileLimits::default() }
    }
}

/// How much the file tools read and tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// The most bytes of a file that is read, edited, searched or written. Default 10 MiB.
    pub max_file_bytes: u64,
    /// The most bytes that one `readFile` gives. Default 50 000.
    pub max_read_bytes: usize,
    /// The most lines that one `listFiles` or `searchFiles` gives. Default 500.
    pub max_results: usize,
    /// The most entries of folders that one call looks at. Default 20 000.
    pub max_entries: usize,
    /// The most bytes that one `searchFiles` reads. Default 200 MiB, of which a tenth for a regular expression.
    pub max_search_bytes: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            max_file_bytes: 10 * 1024 * 1024,
            max_read_bytes: 50_000,
            max_results: 500,
            max_entries: 20_000,
            max_search_bytes: 200 * 1024 * 1024,
        }
    }
}

/// The tools `readFile`, `listFiles` and `searchFiles` over a store.
pub fn reading_tools(store: Arc<dyn FileStore>, options: FileOptions) -> Vec<BuiltInTool> {
    reading(&Arc::new(Files { store, options, writing: Mutex::new(()) }))
}

/// The tools to read, list and search, and `writeFile` and `editFile`, which ask a person first.
pub fn file_tools(store: Arc<dyn FileStore>, options: FileOptions) -> Vec<BuiltInTool> {
    let needs_approval = options.needs_approval;
    let files = Arc::new(Files { store, options, writing: Mutex::new(()) });
    let mut tools = reading(&files);
    let mut write = definition("writeFile", WRITE, WRITE_SCHEMA);
    let mut edit = definition("editFile", EDIT, EDIT_SCHEMA);
    for changing in [&mut write, &mut edit] {
        changing.needs_approval = needs_approval;
        changing.sequential = true;
    }
    let (writer, editor) = (files.clone(), files);
    tools.push(built_in(write, move |input: Write, _| {
        let files = writer.clone();
        async move { files.write(input).await }
    }));
    tools.push(built_in(edit, move |input: Edit, _| {
        let files = editor.clone();
        async move { files.edit(input).await }
    }));
    tools
}

fn reading(files: &Arc<Files>) -> Vec<BuiltInTool> {
    let mut definitions = [
        definition("readFile", READ, READ_SCHEMA),
        definition("listFiles", LIST, LIST_SCHEMA),
        definition("searchFiles", SEARCH, SEARCH_SCHEMA),
    ];
    for definition in &mut definitions {
        definition.repeatable = true;
    }
    let [read, list, search] = definitions;
    let (reader, lister, searcher) = (files.clone(), files.clone(), files.clone());
    vec![
        built_in(read, move |input: Read, _| {
            let files = reader.clone();
            async move { files.read(input).await }
        }),
        built_in(list, move |input: List, context: ToolContext| {
            let files = lister.clone();
            async move { files.list(input, &context.cancel).await }
        }),
        built_in(search, move |input: Search, context: ToolContext| {
            let files = searcher.clone();
            async move { files.search(input, &context.cancel).await }
        }),
    ]
}

struct Files {
    store: Arc<dyn FileStore>,
    options: FileOptions,
    /// Two edits of one file must not both start from the same content.
    writing: Mutex<()>,
}

impl Files {
    async fn read(&self, input: Read) -> Result<String, String> {
        let name = normal(&input.path)?;
        let text = self.text(&name).await?;
        let all: Vec<&str> = lines(&text).collect();
        let first = input.from.unwrap_or(1).max(1);
        if all.is_empty() {
            return Ok(format!("[{name} is empty]"));
        }
        if first > all.len() {
            return Err(format!("{name} has {} lines, and line {first} is beyond", all.len()));
        }
        let max_bytes = self.options.limits.max_read_bytes;
        let (mut given, mut count) = (String::new(), 0);
        for line in all.iter().skip(first - 1).take(input.lines.unwrap_or(usize::MAX)) {
            if count > 0 && given.len() + 1 + line.len() > max_bytes {
                break;
            }
            if count > 0 {
                given.push('\n');
            }
            given.push_str(line);
            count += 1;
        }
        let last = first + count - 1;
        let next = last + 1;
        if given.len() > max_bytes {
            let bytes = given.len();
            let more = if last < all.len() { format!(" The next line is {next}.") } else { String::new() };
            return Ok(format!("{}\n[line {first} has {bytes} bytes and is cut.{more}]", clipped(&given, max_bytes)));
        }
        if first == 1 && last == all.len() {
            return Ok(given);
        }
        let more = if last < all.len() { format!("; read on with \"from\": {next}") } else { String::new() };
        Ok(format!("{given}\n[lines {first} to {last} of {}{more}]", all.len()))
    }

    async fn list(&self, input: List, cancel: &CancelToken) -> Result<String, String> {
        let folder = normal(input.path.as_deref().unwrap_or_default())?;
        let glob = input.glob.as_deref().map(Glob::parse).transpose()?;
        let depth = if input.recursive == Some(true) || glob.is_some() { MAX_DEPTH } else { 0 };
        let mut walk = self.walk(&folder, self.folder(&folder).await?, depth);
        let mut found = Vec::new();
        let max_results = self.options.limits.max_results;
        while let Some((path, kind)) = walk.next().await.map_err(told)? {
            stop_if(cancel)?;
            if let Some(glob) = &glob
                && (kind == FileKind::Folder || !glob.fits(below(&folder, &path)))
            {
                continue;
            }
            if found.len() >= max_results {
                found.push(format!("[more than {max_results} entries: list a folder of these, or give a glob]"));
                break;
            }
            found.push(described(&path, kind));
        }
        if walk.was_cut() {
            found.push(self.too_many());
        }
        match (found.is_empty(), input.glob) {
            (false, _) => Ok(found.join("\n")),
            (true, Some(glob)) => Ok(format!("[no file fits {glob:?}]")),
            (true, None) => Ok("[the folder is empty]".to_owned()),
        }
    }

    async fn search(&self, input: Search, cancel: &CancelToken) -> Result<String, String> {
        let is_regex = input.regex == Some(true);
        let matcher = LineMatcher::new(&input.text, is_regex, input.ignore_case == Some(true))?;
        let start = normal(input.path.as_deref().unwrap_or_default())?;
        let glob = input.glob.as_deref().map(Glob::parse).transpose()?;
        let limits = self.options.limits;
        let mut bytes = if is_regex { limits.max_search_bytes / 10 } else { limits.max_search_bytes };
        let mut found = Found::default();
        let Some(entries) = self.store.list(&start, limits.max_entries + 1).await.map_err(told)? else {
            let text = self.text(&start).await?;
            found.search(&start, &text, &matcher, limits.max_results);
            return Ok(found.told());
        };
        let mut walk = self.walk(&start, entries, MAX_DEPTH);
        while let Some((path, kind)) = walk.next().await.map_err(told)? {
            stop_if(cancel)?;
            let is_wanted =
                matches!(kind, FileKind::File(_)) && glob.as_ref().is_none_or(|glob| glob.fits(below(&start, &path)));
            if !is_wanted {
                continue;
            }
            let content = self.store.read(&path, limits.max_file_bytes).await.ok().flatten();
            let size = content.as_ref().map_or(0, |content| u64::try_from(content.len()).unwrap_or(u64::MAX));
            let Some(text) = content.and_then(decode) else {
                found.skipped += 1;
                continue;
            };
            if !found.search(&path, &text, &matcher, limits.max_results) {
                return Ok(found.told());
            }
            bytes = bytes.saturating_sub(size);
            if bytes == 0 {
                found
                    .lines
                    .push("[there is more than one search can go through: narrow it with path or glob]".to_owned());
                break;
            }
        }
        if walk.was_cut() {
            found.lines.push(self.too_many());
        }
        Ok(found.told())
    }

    async fn write(&self, input: Write) -> Result<String, String> {
        let name = normal(&input.path)?;
        let bytes = input.content.len();
        let _turn = self.writing.lock().await;
        self.put(&name, input.content).await?;
        Ok(format!("wrote {name}: {bytes} bytes"))
    }

    async fn edit(&self, input: Edit) -> Result<String, String> {
        let name = normal(&input.path)?;
        let _turn = self.writing.lock().await;
        let content = self.text(&name).await?;
        let all = input.all == Some(true);
        let content = replace_exact(&name, &content, &input.old_text, &input.new_text, all)?;
        self.put(&name, content).await?;
        Ok(format!("edited {name}"))
    }

    async fn put(&self, name: &str, content: String) -> Result<(), String> {
        if name.is_empty() {
            return Err(told(FileError::NoName));
        }
        let (size, max) = (content.len(), self.options.limits.max_file_bytes);
        if u64::try_from(size).unwrap_or(u64::MAX) > max {
            return Err(format!("the content has {size} bytes, and a file may have {max}: split it"));
        }
        self.store.write(name, content.into_bytes()).await.map_err(told)
    }

    async fn text(&self, name: &str) -> Result<String, String> {
        let content = match name {
            "" => None,
            name => self.store.read(name, self.options.limits.max_file_bytes).await.map_err(told)?,
        };
        let Some(content) = content else { return Err(self.missing(name).await) };
        let bytes = content.len();
        decode(content).ok_or_else(|| format!("{name} is not a text file ({bytes} bytes of other data)"))
    }

    async fn folder(&self, name: &str) -> Result<Vec<FileEntry>, String> {
        match self.store.list(name, self.options.limits.max_entries + 1).await.map_err(told)? {
            Some(entries) => Ok(entries),
            None => Err(self.missing(name).await),
        }
    }

    /// Why nothing is there, and what is there instead.
    async fn missing(&self, name: &str) -> String {
        if let Ok(Some(_)) = self.store.list(name, 1).await {
            let shown = if name.is_empty() { "the root" } else { name };
            return format!("{shown} is a folder: list it with listFiles");
        }
        if !matches!(self.store.read(name, 0).await, Ok(None)) {
            return format!("{name} is a file, not a folder");
        }
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let Ok(Some(beside)) = self.store.list(parent, NAMED_SIBLINGS + 1).await else {
            return format!("there is no {name}, and no folder {parent}: look with listFiles");
        };
        let more = if beside.len() > NAMED_SIBLINGS { ", and more" } else { "" };
        let mut names: Vec<String> =
            beside.iter().take(NAMED_SIBLINGS).map(|entry| described(&entry.name, entry.kind)).collect();
        names.sort();
        let place = if parent.is_empty() { "the root" } else { parent };
        let shown = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        format!("there is no {name}; {place} has {shown}{more}")
    }

    fn walk(&self, folder: &str, entries: Vec<FileEntry>, max_depth: usize) -> Walk<'_> {
        let FileOptions { ignore, limits, .. } = &self.options;
        Walk::new(&*self.store, folder, entries, max_depth, limits.max_entries, ignore)
    }

    fn too_many(&self) -> String {
        let max_entries = self.options.limits.max_entries;
        format!("[only the first {max_entries} entries were looked at: name a folder further down]")
    }
}

/// What a search has found so far.
#[derive(Default)]
struct Found {
    lines: Vec<String>,
    skipped: usize,
}

impl Found {
    /// Searches one file; `false` once there are enough places.
    fn search(&mut self, path: &str, text: &str, matcher: &LineMatcher, max_results: usize) -> bool {
        for (index, line) in lines(text).enumerate() {
            if !matcher.matches(line) {
                continue;
            }
            if self.lines.len() >= max_results {
                self.lines.push(format!("[more than {max_results} places: narrow the search]"));
                return false;
            }
            self.lines.push(format!("{path}:{}: {}", index + 1, clipped(line, MAX_FOUND_LINE)));
        }
        true
    }

    fn told(mut self) -> String {
        if self.lines.is_empty() {
            self.lines.push("[nothing found]".to_owned());
        }
        if self.skipped > 0 {
            let skipped = self.skipped;
            self.lines
                .push(format!("[{skipped} files were not searched: they are no text, too large or not readable]"));
        }
        self.lines.join("\n")
    }
}

fn normal(path: &str) -> Result<String, String> {
    normal_path(path).map_err(|error| error.to_string())
}

fn told(error: FileError) -> String {
    error.to_string()
}

fn stop_if(cancel: &CancelToken) -> Result<(), String> {
    if cancel.is_cancelled() { Err("the call was cancelled".to_owned()) } else { Ok(()) }
}

fn below<'path>(folder: &str, path: &'path str) -> &'path str {
    path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/')
}

fn described(path: &str, kind: FileKind) -> String {
    match kind {
        FileKind::Folder => format!("{path}/"),
        FileKind::Other => format!("{path} (neither file nor folder)"),
        FileKind::File(Some(size)) => format!("{path} {size}"),
        FileKind::File(None) => path.to_owned(),
    }
}

#[derive(Deserialize)]
struct Read {
    path: String,
    from: Option<usize>,
    lines: Option<usize>,
}

#[derive(Deserialize)]
struct List {
    path: Option<String>,
    glob: Option<String>,
    recursive: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Search {
    text: String,
    path: Option<String>,
    glob: Option<String>,
    regex: Option<bool>,
    ignore_case: Option<bool>,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edit {
    path: String,
    old_text: String,
    new_text: String,
    all: Option<bool>,
}

const READ: &str = "Read a text file. Gives the whole file, or some lines of it. A long file is cut, with a note that says how to read on.";
const LIST: &str = "List a folder: folders end in a slash, files have their size in bytes.";
const SEARCH: &str = "Search text files, line by line. Gives path, line number and line of each place found.";
const WRITE: &str = "Write a text file: makes it, with the folders that lead to it, or replaces its whole content.";
const EDIT: &str = "Replace a text in a file. The text must occur once in it; read the file first.";

const READ_SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"Relative to the root, such as \"folder/file.txt\""},
"from":{"type":"integer","minimum":1,"description":"The first line wanted. Default: 1"},
"lines":{"type":"integer","minimum":1,"description":"How many lines. Default: as many as fit"}
},"required":["path"],"additionalProperties":false}"#;

const LIST_SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"A folder, relative to the root. Default: the root"},
"recursive":{"type":"boolean","description":"Whether to list all folders below too. Default: false"},
"glob":{"type":"string","description":"Only files that fit, such as \"*.md\"; lists all folders below too"}
},"additionalProperties":false}"#;

const SEARCH_SCHEMA: &str = r#"{"type":"object","properties":{
"text":{"type":"string","description":"What to search for, as it is unless regex is true"},
"regex":{"type":"boolean","description":"Whether text is a regular expression. Default: false"},
"ignoreCase":{"type":"boolean","description":"Default: false"},
"path":{"type":"string","description":"A folder or file, relative to the root. Default: the root"},
"glob":{"type":"string","description":"Only files that fit, such as \"*.md\" or \"src/**/*.{js,ts}\""}
},"required":["text"],"additionalProperties":false}"#;

const WRITE_SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"Relative to the root, such as \"folder/file.txt\""},
"content":{"type":"string","description":"The whole content"}
},"required":["path","content"],"additionalProperties":false}"#;

const EDIT_SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"Relative to the root, such as \"folder/file.txt\""},
"oldText":{"type":"string","description":"The file's own text, to the character, with enough around it"},
"newText":{"type":"string","description":"What stands there afterwards"},
"all":{"type":"boolean","description":"Whether to replace every place. Default: false"}
},"required":["path","oldText","newText"],"additionalProperties":false}"#;

/// The longest part of a line that a search tells, in bytes.
const MAX_FOUND_LINE: usize = 300;

/// The deepest folder that is walked to.
const MAX_DEPTH: usize = 64;

/// How many names of a folder an error tells.
const NAMED_SIBLINGS: usize = 20;
