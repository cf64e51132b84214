//! Any bytes as a Chat Completions answer.
#![no_main]

mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(
    &crablet::model::openai_chat::model(crablet::model::openai_chat::Profile::Custom, "m"),
    bytes
));
