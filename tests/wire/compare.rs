//! What was expected against what came.
//!
//! The rules are plain, since the runner of the packed npm package has the same: members that are absent or null are not
//! compared; numbers are compared by value; a call that is expected as invalid may be left out but not run. The recordings
//! write `{}` for a call whose arguments had not begun when the output limit was reached. Nobody can tell such a call from one
//! without arguments, so crablet takes it for cut off and does not run it: there, and only there, it may be invalid too.

use serde_json::Value;

/// Every difference, in words.
pub(crate) fn differences(expected: &Value, observed: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (expected_name, observed_name) in [
        ("text", "text"),
        ("thinking", "reasoning"),
        ("reasoning", "reasoning"),
        ("stopReason", "stopReason"),
        ("refusal", "refusal"),
        ("stopReasonRaw", "stopReasonRaw"),
    ] {
        member(expected, expected_name, observed, observed_name, &mut found);
    }
    for name in ["citations", "signatures", "encryptedReasoning", "blocks"] {
        member(expected, name, observed, name, &mut found);
    }
    for name in ["input", "output", "cacheRead", "cacheWrite", "reasoning"] {
        member(&expected["usage"], name, &observed["usage"], name, &mut found);
    }
    if let Some(order) = expected.get("order").and_then(Value::as_array) {
        // Cases call a tool call `tool`.
        let named = |block: &Value| if block == "tool_use" { Value::from("tool") } else { block.clone() };
        let got: Vec<_> = observed["blocks"].as_array().unwrap().iter().map(named).collect();
        if *order != got {
            found.push(format!("order: expected {order:?}, got {got:?}"));
        }
    }
    member(&expected["replay"], "reasoning_details", &observed["replay"], "reasoning_details", &mut found);
    if let Some(calls) = expected.get("toolCalls").and_then(Value::as_array) {
        compare_calls(calls, observed, &mut found);
    }
    compare_errors(expected, &observed["error"], &mut found);
    found
}

fn member(expected: &Value, expected_name: &str, observed: &Value, observed_name: &str, found: &mut Vec<String>) {
    let Some(wanted) = expected.get(expected_name).filter(|wanted| !wanted.is_null()) else { return };
    let got = &observed[observed_name];
    let is_equal = match (wanted.as_f64(), got.as_f64()) {
        (Some(wanted), Some(got)) => (wanted - got).abs() < f64::EPSILON,
        _ => wanted == got,
    };
    if !is_equal {
        found.push(format!("{expected_name}: expected {wanted}, got {got}"));
    }
}

fn compare_calls(expected: &[Value], answer: &Value, found: &mut Vec<String>) {
    let observed = answer["toolCalls"].as_array().unwrap();
    let runnable = |calls: &[Value]| -> Vec<Value> {
        calls.iter().filter(|call| call.get("invalid").is_none()).cloned().collect()
    };
    let is_at_limit = answer["stopReason"] == "length";
    let was_cut = |call: &Value| {
        let is_same = |got: &Value| got["cutBeforeInput"] == true && got["name"] == call["name"];
        is_at_limit && call["arguments"] == serde_json::json!({}) && observed.iter().any(is_same)
    };
    let (wanted, got) = (runnable(expected), runnable(observed));
    let wanted: Vec<_> = wanted.into_iter().filter(|call| !was_cut(call)).collect();
    if wanted.len() != got.len() {
        return found.push(format!("calls that run: expected {wanted:?}, got {got:?}"));
    }
    for (wanted, got) in wanted.iter().zip(&got) {
        let is_id = match wanted.get("id").and_then(Value::as_str) {
            None | Some("<generated>") => got["id"].as_str().is_some_and(|id| !id.is_empty()),
            Some(id) => got["id"] == id,
        };
        // The free text of a tool that takes no object is the member `input` of one.
        let is_input = match wanted.get("customInput") {
            Some(text) => got["arguments"]["input"] == *text,
            None => wanted["arguments"] == got["arguments"],
        };
        if !is_id || wanted["name"] != got["name"] || !is_input {
            found.push(format!("call: expected {wanted}, got {got}"));
        }
    }
    let ids: std::collections::BTreeSet<_> = got.iter().map(|call| call["id"].as_str()).collect();
    if ids.len() != got.len() {
        found.push("two calls have the same id".to_owned());
    }
    let broken = |calls: &[Value]| {
        calls
            .iter()
            .filter(|call| call.get("invalid").is_some() && !(is_at_limit && call["cutBeforeInput"] == true))
            .count()
    };
    if broken(observed) > broken(expected) {
        found.push(format!("calls that are malformed: expected {expected:?}, got {observed:?}"));
    }
}

fn compare_errors(expected: &Value, observed: &Value, found: &mut Vec<String>) {
    let Some(wanted) = expected.get("error").filter(|wanted| !wanted.is_null()) else {
        if expected["stopReason"] != "error" && !observed.is_null() {
            found.push(format!("an unexpected error: {observed}"));
        }
        return;
    };
    for name in ["kind", "status", "code", "retryable", "retry_after_s"] {
        member(wanted, name, observed, name, found);
    }
    let part = wanted.get("message_contains").and_then(Value::as_str).unwrap_or_default();
    if !observed["message"].as_str().is_some_and(|message| message.contains(part)) {
        found.push(format!("the message lacks {part:?}: {}", observed["message"]));
    }
}
