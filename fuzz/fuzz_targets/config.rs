//! Any text as the shim's mcpServers file: it is read, or each problem has a place and a sentence; no panic.
#![no_main]

#[allow(dead_code, reason = "the file is only read here")]
#[path = "../../native-shim/src/config.rs"]
mod config;
#[allow(dead_code, reason = "limits are only read here")]
#[path = "../../native-shim/src/limits.rs"]
mod limits;
#[allow(dead_code, unused_imports, reason = "origins are only read here")]
#[path = "../../native-shim/src/origin.rs"]
mod origin;
#[path = "../../native-shim/src/relaxed_json.rs"]
mod relaxed_json;
#[allow(dead_code, reason = "values are only read here")]
#[path = "../../native-shim/src/variables.rs"]
mod variables;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match config::Config::parse(text, std::path::Path::new("")) {
        Ok(config) => assert!(config.servers.keys().all(|name| !name.is_empty())),
        Err(problems) => assert!(!problems.is_empty()),
    }
});
