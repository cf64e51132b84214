//! Any bytes as a Responses answer.
#![no_main]

mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(&crablet::model::openai_responses::model("m"), bytes));
