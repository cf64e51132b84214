//! Any bytes as frames of Bedrock.
#![no_main]

mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(&crablet::model::bedrock::model("r", "m"), bytes));
