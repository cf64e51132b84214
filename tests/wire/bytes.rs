//! The bytes of an answer, and ways to cut them.

use serde_json::Value;

/// A chunk of a case: a string, or `{"b64": …}` for exact bytes.
pub(crate) fn chunk(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::String(text) => Ok(text.clone().into_bytes()),
        Value::Object(object) => {
            let text = object.get("b64").and_then(Value::as_str).ok_or("a chunk has no `b64`")?;
            from_base64(text).ok_or_else(|| "a chunk is not base64".to_owned())
        }
        _ => Err("a chunk is neither a string nor an object".to_owned()),
    }
}

/// The chunks of an input: `chunks`, or `chunks_gen`, a recipe for many or large ones. A recipe is a list of chunks, of
/// `{"repeat": chunk, "times": n}` and of `{"line_bytes": n}`, a line of that many bytes.
pub(crate) fn chunks(input: &Value) -> Result<Vec<Vec<u8>>, String> {
    if let Some(chunks) = input["chunks"].as_array() {
        return chunks.iter().map(chunk).collect();
    }
    let recipe = input["chunks_gen"].as_array().ok_or("it has no list of chunks")?;
    let mut made = Vec::new();
    for step in recipe {
        let number =
            |name: &str| step.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        match (step.get("repeat"), number("times"), number("line_bytes")) {
            (Some(repeated), Some(times), _) => made.extend(std::iter::repeat_n(chunk(repeated)?, times)),
            (_, _, Some(length)) => made.push(["x".repeat(length.saturating_sub(1)).as_bytes(), b"\n"].concat()),
            _ => made.push(chunk(step)?),
        }
    }
    Ok(made)
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=' && !letter.is_ascii_whitespace()) {
        let value = ALPHABET.iter().position(|candidate| *candidate == letter)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Other cuttings of the same bytes: whole, single bytes, and in two at every byte; or at random places where the bytes
/// are many.
pub(crate) fn cuttings(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    const SMALL: usize = 600;
    const RANDOM: u64 = 200;
    let mut cuttings = vec![vec![bytes], bytes.chunks(1).collect()];
    if bytes.len() <= SMALL {
        cuttings.extend((1..bytes.len()).map(|at| {
            let (left, right) = bytes.split_at(at);
            vec![left, right]
        }));
    } else {
        cuttings.extend((0..RANDOM).map(|seed| random(bytes, seed)));
    }
    cuttings
}

/// Cut at random places, the same ones for the same seed.
pub(crate) fn random(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pieces = Vec::new();
    let mut rest = bytes;
    // Few large pieces for some seeds, many small ones for others.
    let longest = 1 + (bytes.len() as u64) / (1 + seed % 40);
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = 1 + usize::try_from((state >> 33) % longest).unwrap();
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
