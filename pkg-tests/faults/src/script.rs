//! What the model of a script says: a function of the seed and of how many answers it has given.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::plan::Boundary;

/// The model's lines. Every answer names its script and its step, and every call can be told to be whole.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    /// How many calls each step makes. The last one makes none and ends the run; then it begins again.
    calls: Vec<usize>,
    pub(crate) wire: Wire,
}

/// The wire protocol that the model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Anthropic,
    Responses,
    Gemini,
    Bedrock,
}

impl Wire {
    const ALL: [Self; 5] = [Self::Chat, Self::Anthropic, Self::Responses, Self::Gemini, Self::Bedrock];
}

/// One answer of the model.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The text, in the pieces in which it is streamed.
    pub(crate) text: Vec<String>,
    pub(crate) calls: Vec<Call>,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its input, in the pieces in which it is streamed.
    pub(crate) input: Vec<String>,
}

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 3);
        let steps = 2 + dice.roll(2);
        let calls = (0..steps).map(|_| 1 + dice.roll(3)).chain([0]).collect();
        Self { seed, calls, wire: Wire::ALL[(seed / 4 % 5) as usize] }
    }

    /// What the tools of the script are called: those of an MCP server have its name in front.
    pub(crate) const fn tool(&self) -> &'static str {
        match Boundary::of(self.seed) {
            Boundary::McpHttp | Boundary::Shim => "ledger__book",
            Boundary::Model | Boundary::Store => "book",
        }
    }

    /// The text of a step.
    pub(crate) fn text(&self, step: usize) -> String {
        let mut dice = Dice::new(self.seed, 100 + step as u64);
        let mut text = format!("script {} step {step}:", self.seed);
        for word in 0..3 + dice.roll(6) {
            let _ = write!(text, " {}{word}", ["Mond", "évé", "書", "🦀", "word", "\\n\"q\""][dice.roll(6)]);
        }
        text + "."
    }

    /// What the model answers when it has answered so many times. The exchange makes the calls of each attempt unique.
    pub(crate) fn answer(&self, step: usize, exchange: u32) -> Answer {
        let mut dice = Dice::new(self.seed, 1_000 + step as u64);
        let calls = (0..self.calls[step % self.calls.len()]).map(|number| {
            let key = format!("{}.{step}.{number}.{exchange}", self.seed);
            let input = json!({ "key": key, "sum": sum(&key) }).to_string();
            Call {
                id: format!("call_{}", key.replace('.', "_")),
                name: self.tool().to_owned(),
                input: cut(&input, &mut dice),
            }
        });
        let calls = calls.collect();
        Answer { text: cut(&self.text(step), &mut dice), calls }
    }
}

/// Cuts a text into one to five pieces.
fn cut(text: &str, dice: &mut Dice) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = 1 + characters.len() / (1 + dice.roll(5));
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// What tells that a key came whole and unharmed (FNV-1a).
pub(crate) fn sum(key: &str) -> String {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// The key of a tool's input, when it came whole and unharmed.
pub(crate) fn sound_key(input: &Value) -> Option<&str> {
    let key = input.get("key")?.as_str()?;
    (input.get("sum")?.as_str()? == sum(key)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_input_is_told_from_a_whole_one() {
        let call = &Script::new(4).answer(0, 7).calls[0];
        let input: Value = serde_json::from_str(&call.input.concat()).unwrap();
        assert_eq!(sound_key(&input), Some("4.0.0.7"));
        assert_eq!(sound_key(&json!({ "key": "4.0.1.7", "sum": input["sum"] })), None);
    }

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        let script = Script::new(9);
        assert_eq!(script.answer(1, 0).text.concat(), script.text(1));
    }
}
