//! Any schema against any input: no panic, no hang, and a repaired input is valid. Any schema can be lowered
//! for each provider, or is said not to have words there.
#![no_main]

use crablet::json::schema::Dialect;
use crablet::json::{RawJson, Schema};

libfuzzer_sys::fuzz_target!(|texts: (&str, &str)| {
    let (Ok(schema), Ok(input)) = (RawJson::parse(texts.0), RawJson::parse(texts.1)) else { return };
    for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini] {
        dialect.lower(&schema);
    }
    let Ok(schema) = Schema::compile(&schema) else { return };
    if let Ok(Some(repaired)) = schema.check(&input) {
        assert!(schema.check(&repaired).is_ok(), "{texts:?}: {repaired:?}");
    }
});
