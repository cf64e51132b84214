//! Any bytes as a Gemini answer.
#![no_main]

mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(&crablet::model::gemini::model("m"), bytes));
