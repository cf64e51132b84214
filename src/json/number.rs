//! JSON numbers read as floating point.
//!
//! serde_json's way takes a table of all powers of ten, which is 2.4 KB that cannot be compressed. Here a number is multiplied up from
//! three of them, with 64 bits where `f64` has 53.

/// Reads the JSON text of one number; `None` when it is none or too large. It is the nearest `f64` where there are at most 15 digits and a
/// power of at most 22, else that or the one beside it. Of more than 19 digits the others do not count.
pub(super) fn read_number(json: &str) -> Option<f64> {
    let (is_negative, rest) = match json.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (whole, rest) = digits(rest)?;
    if matches!(whole, [b'0', _, ..]) {
        return None;
    }
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => digits(rest)?,
        rest => ([].as_slice(), rest),
    };
    let (power, rest) = match rest {
        [b'e' | b'E', rest @ ..] => power(rest)?,
        rest => (0, rest),
    };
    if !rest.is_empty() {
        return None;
    }
    let (mut significand, mut power) = (0_u64, power);
    for (digits, shift) in [(whole, 0), (fraction, 1)] {
        for digit in digits {
            power -= shift;
            if significand < MOST_BEFORE_ANOTHER {
                significand = significand * 10 + u64::from(digit - b'0');
            } else {
                power += 1;
            }
        }
    }
    let number = scaled(significand, power);
    let number = if is_negative { -number } else { number };
    number.is_finite().then_some(number)
}

/// The digits that come next, at least one, and what follows them.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).filter(|_| end > 0)
}

/// The number behind the letter for "times ten to the power of", and what follows it.
fn power(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] | rest => (1, rest),
    };
    let (digits, rest) = digits(text)?;
    let power = digits.iter().fold(0, |power: i64, digit| BEYOND.min(power * 10 + i64::from(digit - b'0')));
    Some((sign * power, rest))
}

fn scaled(mut significand: u64, mut power: i64) -> f64 {
    if significand == 0 {
        return 0.0;
    }
    // Equal numbers are read equal, however many zeros they are written with.
    while significand.is_multiple_of(10) {
        significand /= 10;
        power += 1;
    }
    let count = power.unsigned_abs();
    if significand < MOST_EXACT && count <= MOST_EXACT_POWER {
        let factor = (0..count).fold(1.0, |factor, _| factor * 10.0);
        return if power < 0 { significand as f64 / factor } else { significand as f64 * factor };
    }
    let shift = significand.leading_zeros();
    let mut number = Binary { bits: significand << shift, exponent: -(shift as i32) };
    let (many, one) =
        if power < 0 { (Binary::DIVIDED_BY_10_19, Binary::DIVIDED_BY_10) } else { (Binary::TEN_19, Binary::TEN) };
    // At most far beyond what any number holds, so that the loop is short.
    let mut left = count.min(400);
    while left > 0 {
        let (factor, done) = if left >= 19 { (&many, 19) } else { (&one, 1) };
        number = number.times(factor);
        left -= done;
    }
    number.rounded()
}

/// A number of 64 bits, the highest of which is set, times a power of two.
struct Binary {
    bits: u64,
    exponent: i32,
}

impl Binary {
    const TEN: Self = Self { bits: 10 << 60, exponent: -60 };
    const TEN_19: Self = Self { bits: 10_000_000_000_000_000_000, exponent: 0 };
    const DIVIDED_BY_10: Self = Self { bits: (1_u128 << 67).div_ceil(10) as u64, exponent: -67 };
    const DIVIDED_BY_10_19: Self = Self { bits: ((1_u128 << 127) / 10_000_000_000_000_000_000) as u64, exponent: -127 };

    fn times(&self, factor: &Self) -> Self {
        let product = u128::from(self.bits) * u128::from(factor.bits);
        let shift = product.leading_zeros();
        Self { bits: ((product << shift) >> 64) as u64, exponent: self.exponent + factor.exponent + 64 - shift as i32 }
    }

    fn rounded(&self) -> f64 {
        let half = self.exponent / 2;
        // In two steps, since the power alone may be less than the least number.
        self.bits as f64 * power_of_two(half) * power_of_two(self.exponent - half)
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Whole numbers below this one, and powers of ten up to this one, are exact as `f64`, so that one operation with them gives the
/// nearest number.
const MOST_EXACT: u64 = 1 << 53;
const MOST_EXACT_POWER: u64 = 22;

/// Another digit fits behind a number below this one.
const MOST_BEFORE_ANOTHER: u64 = 1_000_000_000_000_000_000;

/// Larger than any power that means something, and than any length of a text.
const BEYOND: i64 = 1 << 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_the_nearest() {
        for (text, expected) in [
            ("0", 0.0),
            ("-12", -12.0),
            ("0.1", 0.1),
            ("1.50", 1.5),
            ("0.30000000000000004", 0.1 + 0.2),
            ("1e22", 1e22),
            ("1E-7", 1e-7),
            ("2.5e+3", 2500.0),
            ("1.7976931348623157e308", f64::MAX),
            ("2.2250738585072014e-308", f64::MIN_POSITIVE),
            ("5e-324", 5e-324),
            ("1e-999999999999999999999", 0.0),
            ("0e999", 0.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
        ] {
            assert_eq!(read_number(text), Some(expected), "{text}");
        }
        assert!(read_number("-0").is_some_and(f64::is_sign_negative));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", "-", "01", "-01", "1.", ".5", "1.e1", "1e", "1e+", "+1", "1e1.5", "--1", "0x1", "NaN", "1 ", "1e999",
            "null",
        ] {
            assert_eq!(read_number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again_or_its_neighbour(number in any::<f64>().prop_filter("finite", |number| number.is_normal())) {
            let text = serde_json::to_string(&number).unwrap();
            let read = read_number(&text).unwrap();
            prop_assert!(read.to_bits().abs_diff(number.to_bits()) <= 1, "{text}: {read}");
        }

        #[test]
        fn what_people_write_is_read_as_the_nearest(digits in 0_u64..1_000_000_000_000_000, point in 0usize..16, power in -7..8) {
            let padded = format!("{digits:016}");
            let text = format!("{}{}.{}0e{power}", u8::from(point == 0), &padded[16 - point..], &padded[..16 - point]);
            let text = text.trim_start_matches('0');
            prop_assume!(!text.starts_with('.'));
            prop_assert_eq!(read_number(text), text.parse().ok(), "{}", text);
        }

        #[test]
        fn equal_numbers_are_read_equal(digits in 1u32..100_000, zeros in 0usize..12, power in -300i32..290) {
            let padded = format!("{digits}{}e{}", "0".repeat(zeros), power - zeros as i32);
            prop_assert_eq!(read_number(&format!("{digits}e{power}")), read_number(&padded));
        }
    }
}
