//! Damaged bytes.

use crate::dice::Dice;

/// Damages a text of JSON, or the event around one: a byte is another, a part is missing, or something is no UTF-8. Says
/// how.
pub(crate) fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    if bytes.is_empty() {
        bytes.push(0xff);
        return "a byte from nowhere".into();
    }
    let at = dice.roll(bytes.len());
    match dice.roll(4) {
        0 | 1 => {
            let flip = 1 + dice.roll(255) as u8;
            bytes[at] ^= flip;
            format!("byte {at} by {flip:#04x}")
        }
        2 => {
            let until = at + 1 + dice.roll(bytes.len() - at);
            bytes.drain(at..until);
            format!("bytes {at}..{until} missing")
        }
        _ => {
            bytes.splice(at..at, [0xc3, 0x28, 0xff]);
            format!("no UTF-8 at {at}")
        }
    }
}
