//! How long a provider asks to be left alone: standard and vendor headers, and what only stands in the body.

use super::http::ResponseHead;
use crate::json::{Object, read_string};

/// The wait in milliseconds that the answer asks for, if it does.
///
/// Dates are read against the `date` header of the same answer, so that the clocks of both sides do not matter. The driver adds
/// one where there is none.
pub(super) fn retry_after(head: &ResponseHead, body: Option<&Object<'_>>, message: &str) -> Option<u64> {
    from_header(head).or_else(|| from_body(body?, head)).or_else(|| from_message(message))
}

fn from_header(head: &ResponseHead) -> Option<u64> {
    if let Some(milliseconds) = head.header("retry-after-ms").and_then(|value| decimal(value.trim())) {
        return Some(milliseconds as u64);
    }
    let now = head.header("date").and_then(unix_seconds);
    if let Some(value) = head.header("retry-after") {
        let until = |date: u64| Some(date.saturating_sub(now?).saturating_mul(1000));
        return duration(value).or_else(|| unix_seconds(value).and_then(until));
    }
    let exhausted = RESET_HEADERS.iter().filter(|(remaining, _)| head.header(remaining) == Some("0"));
    exhausted.filter_map(|(_, reset)| until_reset(head.header(reset)?, now)).max()
}

/// What is left, and when it is filled up again: OpenAI and Groq (durations), Anthropic (dates), Cerebras (seconds),
/// OpenRouter (Unix time).
const RESET_HEADERS: &[(&str, &str)] = &[
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day"),
    ("x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
];

/// The moment or the time that a reset header gives. OpenRouter and GitHub write it as milliseconds and seconds of Unix
/// time, which no wait in seconds is as large as.
fn until_reset(value: &str, now: Option<u64>) -> Option<u64> {
    const LEAST_UNIX_SECONDS: f64 = 1e9;
    const LEAST_UNIX_MILLISECONDS: f64 = 1e12;
    let wait = |until: f64| Some((until - now? as f64 * 1000.0).max(0.0) as u64);
    match decimal(value.trim()) {
        Some(moment) if moment >= LEAST_UNIX_MILLISECONDS => wait(moment),
        Some(moment) if moment >= LEAST_UNIX_SECONDS => wait(moment * 1000.0),
        _ => duration(value).or_else(|| wait(unix_seconds(value)? as f64 * 1000.0)),
    }
}

/// Google's `RetryInfo` among the details of an error, and the headers that OpenRouter repeats among them.
fn from_body(error: &Object<'_>, head: &ResponseHead) -> Option<u64> {
    let delay = error.objects("details").iter().find_map(|detail| duration(&detail.string("retryDelay")?));
    delay.or_else(|| {
        let headers = error.object("metadata")?.object("headers")?;
        let now = head.header("date").and_then(unix_seconds);
        let reset = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-ratelimit-reset"))?.1;
        until_reset(read_string(reset.get()).as_deref().unwrap_or(reset.get()), now)
    })
}

/// OpenAI and Groq write it into the sentence (`Please try again in 7.66s.`), and so do Google (`Please retry in 24.5s.`),
/// Azure (`Please retry after 6 seconds.`) and Moonshot (`please try again after 1 seconds`).
fn from_message(message: &str) -> Option<u64> {
    let message = message.to_ascii_lowercase();
    let (_, rest) = ["try again in ", "try again after ", "retry in ", "retry after "]
        .iter()
        .find_map(|words| message.split_once(words))?;
    let mut words = rest.split_whitespace();
    let word = words.next()?;
    if words.next().is_some_and(|unit| unit.starts_with("second")) {
        return duration(word);
    }
    duration(word.trim_end_matches(['.', ',', ';'])).filter(|_| word.ends_with(|last: char| !last.is_ascii_digit()))
}

/// A duration such as `20`, `7.66s`, `6m0s`, `1h2m` or `350ms`, in milliseconds. A bare number is seconds.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if let Some(seconds) = decimal(rest) {
        return Some((seconds * 1000.0) as u64);
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let number = decimal(rest.get(..digits)?)?;
        let behind = rest.get(digits..)?;
        let unit_end = behind.find(|character: char| character.is_ascii_digit()).unwrap_or(behind.len());
        total += number
            * match behind.get(..unit_end)? {
                "ms" => 1.0,
                "s" => 1000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                _ => return None,
            };
        rest = behind.get(unit_end..)?;
    }
    (total > 0.0 || text.contains('0')).then_some(total as u64)
}

/// A number such as `20` or `7.66`. The standard library's reader of floats would bring ten kilobytes of tables into the
/// module for headers that have at most a fraction.
fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let append = |number: f64, digit: char| Some(number * 10.0 + f64::from(digit.to_digit(10)?));
    let digits = whole.chars().chain(fraction.chars()).try_fold(0.0, append)?;
    let number = digits / fraction.chars().fold(1.0, |scale, _| scale * 10.0);
    number.is_finite().then_some(number)
}

/// The moment of an HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`) or of RFC 3339 in UTC (`1994-11-06T08:49:37Z`).
fn unix_seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (year, month, day, clock) = match text.split_once(", ") {
        Some((_, date)) => {
            let mut words = date.split(' ');
            let day = words.next()?.parse().ok()?;
            let name = words.next()?;
            let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
            (words.next()?.parse().ok()?, month, day, words.next()?)
        }
        None => {
            let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
            let mut numbers = date.split('-').map(|number| number.parse::<u64>().ok());
            (numbers.next()??, numbers.next()??, numbers.next()??, clock.split('.').next()?)
        }
    };
    let mut numbers = clock.split(':').map(|number| number.parse::<u64>().ok());
    let (hour, minute, second) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let days = days_since_epoch(year, month, day)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Days from 1970-01-01, counting years from March so that the leap day is the last of its year.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let days_in_months = (153 * month_from_march + 2) / 5;
    let leap_days = year / 4 - year / 100 + year / 400;
    (year * 365 + leap_days + days_in_months + day - 1).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> ResponseHead {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ResponseHead { status: 429, headers }
    }

    #[test]
    fn every_way_of_saying_it_is_understood() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (headers, expected) in [
            (vec![("retry-after", "20")], Some(20_000)),
            (vec![("retry-after", "0.5")], Some(500)),
            (vec![("retry-after-ms", "350"), ("retry-after", "20")], Some(350)),
            (vec![date, ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], Some(60_000)),
            (vec![date, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0)),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
            (vec![("x-ratelimit-remaining-requests", "3"), ("x-ratelimit-reset-requests", "6m0s")], None),
            (
                vec![
                    date,
                    ("anthropic-ratelimit-tokens-remaining", "0"),
                    ("anthropic-ratelimit-tokens-reset", "1994-11-06T08:49:40Z"),
                ],
                Some(3000),
            ),
            (
                vec![("x-ratelimit-remaining-requests-day", "0"), ("x-ratelimit-reset-requests-day", "120.5")],
                Some(120_500),
            ),
            (
                vec![
                    ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1767225605500"),
                ],
                Some(5500),
            ),
            (
                vec![
                    ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1767225605"),
                ],
                Some(5000),
            ),
        ] {
            assert_eq!(retry_after(&head(&headers), None, ""), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_body_is_asked_when_the_headers_are_silent() {
        let body = Object::parse(r#"{"details":[{"@type":"x"},{"retryDelay":"24.5s"}]}"#).unwrap();
        assert_eq!(retry_after(&head(&[]), Some(&body), ""), Some(24_500));
        assert_eq!(retry_after(&head(&[]), None, "Limit reached. Please try again in 7.66s. Visit x"), Some(7660));
        assert_eq!(retry_after(&head(&[]), None, "rate limit. Please retry after 6 seconds. See x"), Some(6000));
        assert_eq!(retry_after(&head(&[]), None, "Please retry in 24.5s."), Some(24_500));
        let moonshot = "Your account reached max request: 1, please try again after 1 seconds";
        assert_eq!(retry_after(&head(&[]), None, moonshot), Some(1000));
        assert_eq!(retry_after(&head(&[]), None, "Rate limited. Retry after 20s"), Some(20_000));
        let headers =
            r#"{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1767225605500"}}}"#;
        let date = head(&[("date", "Thu, 01 Jan 2026 00:00:00 GMT")]);
        assert_eq!(retry_after(&date, Some(&Object::parse(headers).unwrap()), ""), Some(5500));
        assert_eq!(retry_after(&head(&[]), None, "Please retry after some time"), None);
        assert_eq!(retry_after(&head(&[]), None, "try again in a moment"), None);
        assert_eq!(retry_after(&head(&[]), None, "try again in 3 days"), None);
    }

    #[test]
    fn dates_are_counted_as_the_calendar_has_them() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2024-02-29T12:00:00.5Z"), Some(1_709_208_000));
        assert_eq!(unix_seconds("Thu, 01 Jan 2026 00:00:00 GMT"), Some(1_767_225_600));
        assert_eq!(unix_seconds("2024-13-01T00:00:00Z"), None);
    }
}
