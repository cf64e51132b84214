//! Numbers of JSON compared by their values, however large they are and however they are written. As doubles
//! 9007199254740992 and 9007199254740993 would be one, and 0.3 no multiple of 0.1.

use std::cmp::Ordering;

use super::FromJson;

/// A number of JSON, exactly.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    /// How many zeros follow the digits; with a minus, how many digits stand after the point.
    exponent: i64,
}

impl Decimal {
    /// Reads the text of a JSON number.
    pub(crate) fn read(number: &str) -> Self {
        let mut read = Self { is_negative: false, digits: String::new(), exponent: 0 };
        let mut is_fraction = false;
        for (index, byte) in number.bytes().enumerate() {
            match byte {
                b'-' => read.is_negative = true,
                b'.' => is_fraction = true,
                b'e' | b'E' => {
                    let exponent = number.get(index + 1..).unwrap_or_default();
                    // Beyond what a double can hold a number is as good as none or without end, and stays comparable.
                    let beyond = if exponent.starts_with('-') { -MAX_EXPONENT } else { MAX_EXPONENT };
                    let exponent = i64::from_json(exponent.trim_start_matches('+')).unwrap_or(beyond);
                    read.exponent += exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT);
                    break;
                }
                digit => {
                    if digit != b'0' || !read.is_zero() {
                        read.digits.push(char::from(digit));
                    }
                    read.exponent -= i64::from(is_fraction);
                }
            }
        }
        while read.digits.ends_with('0') {
            read.digits.pop();
            read.exponent += 1;
        }
        if read.is_zero() {
            read.is_negative = false;
            read.exponent = 0;
        }
        read
    }

    /// In the one form that all numbers of this value have.
    pub(crate) fn to_json(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        let digits = if self.is_zero() { "0" } else { &self.digits };
        [sign, digits, "e", &self.exponent.to_string()].concat()
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether it is a whole number of steps; `None` for a step that cannot be reckoned with: zero, a negative number, and one of
    /// more than 18 digits.
    pub(crate) fn is_multiple_of(&self, step: &Self) -> Option<bool> {
        if step.is_zero() || step.is_negative || step.digits.len() > MAX_STEP_DIGITS {
            return None;
        }
        let divisor = step.digits.bytes().fold(0, |sum, digit| sum * 10 + value_of(digit)).max(1);
        let zeros = self.exponent - step.exponent;
        if zeros < 0 {
            // Its last digit, which is not zero, stands behind that of every multiple.
            return Some(self.is_zero());
        }
        let mut remainder = self.digits.bytes().fold(0, |rest, digit| (rest * 10 + value_of(digit)) % divisor);
        for _ in 0..zeros {
            if remainder == 0 {
                break;
            }
            remainder = remainder * 10 % divisor;
        }
        Some(remainder == 0)
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn compare_without_sign(&self, other: &Self) -> Ordering {
        let places = |number: &Self| number.exponent + number.digits.len() as i64;
        let by_places = match (self.is_zero(), other.is_zero()) {
            (false, false) => places(self).cmp(&places(other)),
            (zero, other_zero) => other_zero.cmp(&zero),
        };
        by_places.then_with(|| self.digits.cmp(&other.digits))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.compare_without_sign(other),
            (true, true) => other.compare_without_sign(self),
            (negative, other_negative) => other_negative.cmp(&negative),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn value_of(digit: u8) -> u64 {
    u64::from(digit.wrapping_sub(b'0'))
}

/// Far beyond what a double can hold, and far below what an exponent is kept in.
const MAX_EXPONENT: i64 = 1 << 40;

/// What is left of a division by so many digits can be multiplied by ten within 64 bits, and a double has no more than 17.
const MAX_STEP_DIGITS: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: &str) -> Decimal {
        Decimal::read(number)
    }

    #[test]
    fn equal_numbers_are_one_however_they_are_written() {
        for same in [
            &["1", "1.0", "10e-1", "0.1E+1", "1e0"][..],
            &["0", "-0", "0.000", "0e9"],
            &["-1200", "-1.2e3", "-12E2"],
            &["0.1", "1e-1", "0.10"],
            &["9007199254740993", "9007199254740993.0", "9.007199254740993e15"],
        ] {
            for number in same {
                assert_eq!(of(number), of(same[0]), "{number}");
                assert_eq!(of(number).to_json(), of(same[0]).to_json(), "{number}");
                assert_eq!(of(&of(number).to_json()), of(number), "{number}");
            }
        }
    }

    #[test]
    fn numbers_are_in_the_order_of_their_values() {
        let ordered = [
            "-1e300",
            "-18446744073709551617",
            "-18446744073709551616",
            "-2",
            "-1.5",
            "-0.1",
            "-1e-99999999999999999999",
            "0",
            "1e-99999999999999999999",
            "1e-400",
            "0.1",
            "0.10000000000000001",
            "1",
            "1.5",
            "2",
            "9.9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "9007199254740993.5",
            "18446744073709551616",
            "1e300",
            "1e999",
        ];
        for (index, number) in ordered.iter().enumerate() {
            for (other_index, other) in ordered.iter().enumerate() {
                assert_eq!(of(number).cmp(&of(other)), index.cmp(&other_index), "{number} {other}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_told() {
        for (number, is_whole) in [("1.0", true), ("1.50e1", true), ("0.0", true), ("1.5", false), ("1e-400", false)] {
            assert_eq!(of(number).is_whole(), is_whole, "{number}");
        }
    }

    #[test]
    fn multiples_are_told() {
        for (number, step, expected) in [
            ("0.3", "0.1", Some(true)),
            ("1.1", "0.1", Some(true)),
            ("19.99", "0.01", Some(true)),
            ("-19.99", "0.01", Some(true)),
            ("0.30000000000000004", "0.1", Some(false)),
            ("0.0075", "0.0001", Some(true)),
            ("0.00751", "0.0001", Some(false)),
            ("0", "7", Some(true)),
            ("9007199254740993", "2", Some(false)),
            ("9007199254740994", "2", Some(true)),
            ("123456789012345678901234567890", "10", Some(true)),
            ("123456789012345678901234567891", "3", Some(false)),
            ("1e300", "3", Some(false)),
            ("3e300", "3", Some(true)),
            ("12391239123", "1e-8", Some(true)),
            ("1e308", "0.123456789", Some(false)),
            ("1", "0", None),
            ("1", "-1", None),
            ("1", "0.1234567890123456789", None),
        ] {
            assert_eq!(of(number).is_multiple_of(&of(step)), expected, "{number} {step}");
        }
    }
}
