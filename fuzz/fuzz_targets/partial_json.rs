//! The beginning of any valid JSON container completes to valid JSON; other text does not panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let is_container = text.starts_with(['{', '[']) && crablet::json::RawJson::parse(text).is_ok();
    for (offset, _) in text.char_indices().skip(1) {
        let completed = crablet::json::complete(text.get(..offset).unwrap_or_default());
        assert!(completed.is_some() || !is_container, "{text:?} cut at {offset}");
    }
});
