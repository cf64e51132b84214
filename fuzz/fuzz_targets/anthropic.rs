//! Any bytes as an Anthropic Messages answer.
#![no_main]

mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(&crablet::model::anthropic::model("m"), bytes));
