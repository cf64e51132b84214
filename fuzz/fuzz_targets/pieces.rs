//! Text put together from pieces: bytes above ASCII stand for one each, the others for themselves.

pub(crate) fn text(bytes: &[u8], pieces: &[&str]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte.checked_sub(128) {
            Some(piece) => text.push_str(pieces[usize::from(piece) % pieces.len()]),
            None => text.push(char::from(*byte)),
        }
    }
    text
}
