use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use thiserror::Error;

use super::{BuiltInTool, built_in, definition};

/// Texts by key, for agents to leave notes to themselves and to each other: clones share one content.
///
/// Holds at most 1000 keys of 200 bytes, and values of 100 000 bytes, 2 000 000 together.
#[derive(Clone, Default)]
pub struct Scratchpad(Arc<Mutex<BTreeMap<String, String>>>);

/// Why a scratchpad did not take a value. The message is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScratchpadError {
    /// The key is empty or too long.
    #[error("a key has 1 to {MAX_KEY} bytes")]
    Key,
    /// The value is too long.
    #[error("a value may have {MAX_VALUE} bytes: shorten it")]
    Value,
    /// There are too many keys.
    #[error("there are {MAX_KEYS} keys already: delete some first")]
    Keys,
    /// All values together are too long.
    #[error("the scratchpad is full: delete or shorten values first")]
    Full,
}

impl Scratchpad {
    /// Sets a value, in the place of the one before.
    ///
    /// # Errors
    ///
    /// When a limit is reached.
    pub fn set(&self, key: &str, value: &str) -> Result<(), ScratchpadError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(ScratchpadError::Key);
        }
        if value.len() > MAX_VALUE {
            return Err(ScratchpadError::Value);
        }
        let mut values = self.lock();
        if values.len() >= MAX_KEYS && !values.contains_key(key) {
            return Err(ScratchpadError::Keys);
        }
        let others: usize = values.iter().filter(|(other, _)| *other != key).map(|(_, value)| value.len()).sum();
        if others + value.len() > MAX_TOTAL {
            return Err(ScratchpadError::Full);
        }
        values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Deletes a key. Whether there was one.
    pub fn delete(&self, key: &str) -> bool {
        self.lock().remove(key).is_some()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<String> {
        self.lock().get(key).cloned()
    }

    /// All of it, to be saved; [`set`](Self::set) takes it up again.
    pub fn values(&self) -> BTreeMap<String, String> {
        self.lock().clone()
    }

    /// The tools `readScratchpad` and `writeScratchpad`.
    pub fn tools(&self) -> Vec<BuiltInTool> {
        let mut read = definition(
            "readScratchpad",
            "Read a note from the shared scratchpad, or list the keys of all notes.",
            READ_SCHEMA,
        );
        read.repeatable = true;
        let mut write = definition(
            "writeScratchpad",
            "Write a note to the shared scratchpad, in the place of what stood under its key, or delete it.",
            WRITE_SCHEMA,
        );
        write.sequential = true;
        let (reader, writer) = (self.clone(), self.clone());
        vec![
            built_in(read, move |input: Read, _| std::future::ready(reader.told(input.key.as_deref()))),
            built_in(write, move |input: Write, _| std::future::ready(writer.written(input))),
        ]
    }

    fn told(&self, key: Option<&str>) -> Result<String, String> {
        let values = self.lock();
        if let Some(value) = key.and_then(|key| values.get(key)) {
            return Ok(value.clone());
        }
        let keys: Vec<String> = values.iter().map(|(key, value)| format!("{key} ({} bytes)", value.len())).collect();
        let told = if keys.is_empty() { "[the scratchpad is empty]".to_owned() } else { keys.join("\n") };
        match key {
            Some(key) => Err(format!("there is no note {key:?}. There are:\n{told}")),
            None => Ok(told),
        }
    }

    fn written(&self, input: Write) -> Result<String, String> {
        let Write { key, value } = input;
        match value {
            Some(value) => self.set(&key, &value).map(|()| format!("wrote {key:?}")).map_err(|error| error.to_string()),
            None if self.delete(&key) => Ok(format!("deleted {key:?}")),
            None => Err(format!("there is no note {key:?}")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // Nothing fails while the lock is held, so a poisoned map is still a whole one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scratchpad {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.lock().keys()).finish()
    }
}

#[derive(Deserialize)]
struct Read {
    key: Option<String>,
}

#[derive(Deserialize)]
struct Write {
    key: String,
    value: Option<String>,
}

const READ_SCHEMA: &str = r#"{"type":"object","properties":{
"key":{"type":"string","description":"The note wanted. Without it: all keys"}
},"additionalProperties":false}"#;

const WRITE_SCHEMA: &str = r#"{"type":"object","properties":{
"key":{"type":"string","description":"A short name for the note"},
"value":{"type":"string","description":"The note. Without it: the key is deleted"}
},"required":["key"],"additionalProperties":false}"#;

const MAX_KEYS: usize = 1_000;
const MAX_KEY: usize = 200;
const MAX_VALUE: usize = 100_000;
const MAX_TOTAL: usize = 2_000_000;
