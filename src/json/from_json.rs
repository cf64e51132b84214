use super::level::elements;
use super::number::read_number;
use super::{RawJson, read_string};

/// What a member of an [`Object`](super::Object) can be read into.
///
/// The types are few, and each is read by a function of its own: `Deserialize` would put a parser of every type where a member of
/// it is read.
pub trait FromJson: Sized {
    /// Reads the text of one JSON value, without spaces around it; `None` when it is of another type.
    fn from_json(text: &str) -> Option<Self>;
}

/// Some peers write `5.0` for 5.
impl FromJson for u64 {
    fn from_json(text: &str) -> Option<Self> {
        const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
        let is_whole = |number: &f64| (0.0..=MAX_EXACT).contains(number) && number.fract() == 0.0;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse().ok() } else { f64::from_json(text).filter(is_whole).map(|number| number as Self) }
    }
}

macro_rules! smaller {
    ($($number:ty),*) => {$(
        impl FromJson for $number {
            fn from_json(text: &str) -> Option<Self> {
                Self::try_from(u64::from_json(text)?).ok()
            }
        }
    )*};
}

smaller!(u16, u32, usize);

impl FromJson for i64 {
    fn from_json(text: &str) -> Option<Self> {
        match text.strip_prefix('-') {
            Some(digits) => 0_i64.checked_sub_unsigned(u64::from_json(digits)?),
            None => Self::try_from(u64::from_json(text)?).ok(),
        }
    }
}

impl FromJson for i32 {
    fn from_json(text: &str) -> Option<Self> {
        Self::try_from(i64::from_json(text)?).ok()
    }
}

impl FromJson for f64 {
    fn from_json(text: &str) -> Option<Self> {
        read_number(text)
    }
}

impl FromJson for bool {
    fn from_json(text: &str) -> Option<Self> {
        match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

impl FromJson for String {
    fn from_json(text: &str) -> Option<Self> {
        read_string(text)
    }
}

impl FromJson for RawJson {
    fn from_json(text: &str) -> Option<Self> {
        if text == "null" { None } else { Self::parse(text).ok() }
    }
}

/// All elements, or nothing when one of them is of another type.
impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(text: &str) -> Option<Self> {
        let mut items = Self::new();
        for element in elements(text)? {
            items.push(T::from_json(element.get())?);
        }
        Some(items)
    }
}

/// A name and a value, as a header is written.
impl FromJson for (String, String) {
    fn from_json(text: &str) -> Option<Self> {
        match elements(text)?.as_slice() {
            [name, value] => Some((read_string(name.get())?, read_string(value.get())?)),
            _ => None,
        }
    }
}
