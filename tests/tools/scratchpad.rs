//! The scratchpad that agents share.

use crablet::host::tools::{Scratchpad, ScratchpadError};
use serde_json::json;

use super::call;

#[tokio::test]
async fn what_one_agent_writes_another_reads() {
    let pad = Scratchpad::default();
    let (writer, reader) = (pad.tools(), pad.clone().tools());
    assert_eq!(call(&reader, "readScratchpad", json!({})).await.unwrap(), "[the scratchpad is empty]");
    call(&writer, "writeScratchpad", json!({ "key": "plan", "value": "rest" })).await.unwrap();
    assert_eq!(call(&reader, "readScratchpad", json!({ "key": "plan" })).await.unwrap(), "rest");
    let missing = call(&reader, "readScratchpad", json!({ "key": "b" })).await.unwrap_err();
    assert_eq!(missing, "there is no note \"b\". There are:\nplan (4 bytes)");
    call(&writer, "writeScratchpad", json!({ "key": "plan" })).await.unwrap();
    assert!(call(&writer, "writeScratchpad", json!({ "key": "plan" })).await.is_err());
}

#[test]
fn a_scratchpad_has_limits() {
    let pad = Scratchpad::default();
    assert_eq!(pad.set("", "x"), Err(ScratchpadError::Key));
    assert_eq!(pad.set("a", &"x".repeat(100_001)), Err(ScratchpadError::Value));
    let large = "x".repeat(100_000);
    for number in 0..20 {
        pad.set(&number.to_string(), &large).unwrap();
    }
    assert_eq!(pad.set("more", "x"), Err(ScratchpadError::Full));
    pad.set("0", "").unwrap();
    pad.set("more", "x").unwrap();
    let small = Scratchpad::default();
    for number in 0..1_000 {
        small.set(&number.to_string(), "").unwrap();
    }
    assert_eq!(small.set("more", ""), Err(ScratchpadError::Keys));
}
