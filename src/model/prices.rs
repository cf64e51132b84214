//! What models cost, and what an answer has cost.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::message::Usage;
use crate::json::Object;

/// An amount of money in US dollars, exact to a trillionth: sums of many small amounts are the same in any order, and the
/// same after a snapshot.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars(u64);

/// How many of the smallest amounts a dollar has.
const PARTS: u64 = 1_000_000_000_000;

/// How many digits that are.
const DIGITS: usize = 12;

impl Dollars {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// So many cents.
    pub const fn from_cents(cents: u64) -> Self {
        Self(cents.saturating_mul(PARTS / 100))
    }

    /// The amount nearest to this number of dollars; nothing for what is negative or no number.
    pub fn from_f64(dollars: f64) -> Self {
        Self((dollars * PARTS as f64).round() as u64)
    }

    /// The number of dollars.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }

    /// Both together, up to some 18 million dollars.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left of it.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// What so many tokens cost when this is the price of a million.
    const fn of_tokens(self, tokens: u64) -> Self {
        Self((self.0 / 1_000_000).saturating_mul(tokens))
    }

    /// Reads a member that is a number of dollars. What is absent, negative or no number is `None`.
    pub fn read(object: &Object<'_>, name: &str) -> Option<Self> {
        let text = object.get(name)?.get();
        exact(text).or_else(|| Some(object.read(name)?).filter(|dollars| *dollars >= 0.0).map(Self::from_f64))
    }
}

/// The amount that a plain decimal number writes, where no digit is lost.
fn exact(text: &str) -> Option<Dollars> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > DIGITS || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = fraction.bytes().chain(std::iter::repeat(b'0')).take(DIGITS);
    let parts = parts.fold(0, |parts: u64, digit| parts * 10 + u64::from(digit - b'0'));
    whole.parse::<u64>().ok()?.checked_mul(PARTS)?.checked_add(parts).map(Dollars)
}

/// As a number of dollars.
impl fmt::Display for Dollars {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PARTS, self.0 % PARTS);
        if parts == 0 {
            return write!(formatter, "{whole}");
        }
        let digits = format!("{parts:012}");
        write!(formatter, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Debug for Dollars {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${self}")
    }
}

/// As a JSON number of dollars.
impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

/// What a million tokens of a model cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Tokens read.
    pub input: Dollars,
    /// Tokens written, those of reasoning included.
    pub output: Dollars,
    /// Tokens read from the provider's cache; as `input` where it has no price of its own.
    pub cache_read: Option<Dollars>,
    /// Tokens written to the provider's cache; as `input` where it has no price of its own.
    pub cache_write: Option<Dollars>,
    /// Other prices for long requests.
    pub long: Option<LongPrices>,
}

/// Prices of requests that read more than a number of tokens. They are those of all its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongPrices {
    /// Beyond how many tokens read, those of the cache included.
    pub above: u64,
    /// As [`Prices::input`].
    pub input: Dollars,
    /// As [`Prices::output`].
    pub output: Dollars,
    /// As [`Prices::cache_read`].
    pub cache_read: Option<Dollars>,
    /// As [`Prices::cache_write`].
    pub cache_write: Option<Dollars>,
}

/// What a provider's counts leave out, and what they say, which differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Whether the tokens read leave out those of the cache.
    pub cache_apart: bool,
    /// Whether the tokens written leave out those of reasoning.
    pub reasoning_apart: bool,
    /// Whether it says itself what an answer costs, so that prices are not needed.
    pub says_cost: bool,
}

impl Prices {
    /// Reads `{input, output, cacheRead?, cacheWrite?, long?: {above, input, output, cacheRead?, cacheWrite?}}`, in dollars
    /// a million tokens. `None` without a price to read or to write.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        let long = object.object("long").and_then(|long| {
            Some(LongPrices {
                above: long.integer("above")?,
                input: Dollars::read(&long, "input")?,
                output: Dollars::read(&long, "output")?,
                cache_read: Dollars::read(&long, "cacheRead"),
                cache_write: Dollars::read(&long, "cacheWrite"),
            })
        });
        Some(Self {
            input: Dollars::read(object, "input")?,
            output: Dollars::read(object, "output")?,
            cache_read: Dollars::read(object, "cacheRead"),
            cache_write: Dollars::read(object, "cacheWrite"),
            long,
        })
    }

    /// What an answer costs; `None` when the provider counted nothing.
    pub fn cost(&self, usage: &Usage, counting: Counting) -> Option<Dollars> {
        if usage.input.is_none() && usage.output.is_none() {
            return None;
        }
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let (read, written) = (count(usage.cache_read), count(usage.cache_write));
        let cached = read.saturating_add(written);
        let input = count(usage.input);
        let plain = if counting.cache_apart { input } else { input.saturating_sub(cached) };
        let reasoning = if counting.reasoning_apart { count(usage.reasoning) } else { 0 };
        let prices = match self.long {
            Some(long) if plain.saturating_add(cached) > long.above => Self {
                input: long.input,
                output: long.output,
                cache_read: long.cache_read,
                cache_write: long.cache_write,
                long: None,
            },
            _ => *self,
        };
        let output = prices.output.of_tokens(count(usage.output).saturating_add(reasoning));
        let cache_read = prices.cache_read.unwrap_or(prices.input).of_tokens(read);
        let cache_write = prices.cache_write.unwrap_or(prices.input).of_tokens(written);
        Some(prices.input.of_tokens(plain).plus(output).plus(cache_read).plus(cache_write))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(number: &str) -> Option<Dollars> {
        Dollars::read(&Object::parse(&format!("{{\"n\":{number}}}")).unwrap(), "n")
    }

    fn prices() -> Prices {
        let text = r#"{"input":3,"output":15,"cacheRead":0.3,"cacheWrite":3.75,
            "long":{"above":200000,"input":6,"output":22.5}}"#;
        Prices::read(&Object::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (number, written) in [
            ("0", "0"),
            ("2.50", "2.5"),
            ("0.0028", "0.0028"),
            ("1e-7", "0.0000001"),
            ("0.000000000001", "0.000000000001"),
            ("12", "12"),
        ] {
            assert_eq!(read(number).unwrap().to_string(), written, "{number}");
        }
        for number in ["-1", "\"1\"", "null", "-0.5"] {
            assert_eq!(read(number), None, "{number}");
        }
        assert_eq!(Dollars::from_cents(250), read("2.5").unwrap());
    }

    #[test]
    fn cached_tokens_and_reasoning_are_counted_once() {
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(800_000),
            reasoning: Some(60_000),
            ..Usage::default()
        };
        let short = Prices { long: None, ..prices() };
        let within = short.cost(&usage, Counting::default()).unwrap();
        assert_eq!(within.to_string(), "2.34", "200 000 read, 800 000 from the cache, 100 000 written");
        let apart = Counting { cache_apart: true, reasoning_apart: true, says_cost: false };
        assert_eq!(short.cost(&usage, apart).unwrap().to_string(), "5.64");
        assert_eq!(short.cost(&Usage::default(), apart), None);
    }

    #[test]
    fn long_requests_have_prices_of_their_own() {
        let usage = |input| Usage { input: Some(input), output: Some(1_000_000), ..Usage::default() };
        let cost = |input| prices().cost(&usage(input), Counting::default()).unwrap().to_string();
        assert_eq!((cost(200_000), cost(200_001)), ("15.6".to_owned(), "23.700006".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(parts in any::<u64>()) {
            let amount = Dollars(parts);
            prop_assert_eq!(read(&serde_json::to_string(&amount).unwrap()), Some(amount));
        }

        #[test]
        fn no_count_panics(counts in prop::array::uniform5(any::<u64>()), apart in any::<bool>()) {
            let [input, output, read, write, reasoning] = counts.map(Some);
            let usage = Usage { input, output, cache_read: read, cache_write: write, reasoning, cost: None };
            prices().cost(&usage, Counting { cache_apart: apart, reasoning_apart: apart, says_cost: false });
        }
    }
}
