use std::collections::BTreeSet;

use super::file_store::{FileEntry, FileError, FileKind, FileStore};

/// A walk through a folder and what is below: by name, each folder before what is in it.
pub(super) struct Walk<'a> {
    store: &'a dyn FileStore,
    ignore: &'a BTreeSet<String>,
    max_depth: usize,
    left: usize,
    open: Vec<(String, FileKind, usize)>,
    unentered: Option<(String, usize)>,
    cut: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        store: &'a dyn FileStore,
        folder: &str,
        entries: Vec<FileEntry>,
        max_depth: usize,
        max_entries: usize,
        ignore: &'a BTreeSet<String>,
    ) -> Self {
        let mut walk =
            Self { store, ignore, max_depth, left: max_entries, open: Vec::new(), unentered: None, cut: false };
        walk.add(folder, entries, 0);
        walk
    }

    /// The next place; `None` at the end.
    ///
    /// # Errors
    ///
    /// When a folder cannot be listed.
    pub(super) async fn next(&mut self) -> Result<Option<(String, FileKind)>, FileError> {
        if let Some((folder, depth)) = self.unentered.take() {
            let wanted = self.left.saturating_sub(self.open.len()) + 1;
            let entries = self.store.list(&folder, wanted).await?.unwrap_or_default();
            self.add(&folder, entries, depth + 1);
        }
        let Some((path, kind, depth)) = self.open.pop() else { return Ok(None) };
        if self.left == 0 {
            self.cut = true;
            return Ok(None);
        }
        self.left -= 1;
        let name = path.rsplit('/').next().unwrap_or_default();
        if kind == FileKind::Folder && depth < self.max_depth && !self.ignore.contains(name) {
            self.unentered = Some((path.clone(), depth));
        }
        Ok(Some((path, kind)))
    }

    /// Whether the walk ended because it came to its limit.
    pub(super) fn was_cut(&self) -> bool {
        self.cut
    }

    fn add(&mut self, folder: &str, mut entries: Vec<FileEntry>, depth: usize) {
        entries.sort_by(|one, other| other.name.cmp(&one.name));
        for FileEntry { name, kind } in entries {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            self.open.push((path, kind, depth));
        }
    }
}
