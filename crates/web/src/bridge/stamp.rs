//! The time and the numbers of a signed request, parsed as by Python for Crossbar.io.

use time::{Date, Month, Time, UtcDateTime};

/// Microseconds since 1970 for a text like `2011-10-14T16:59:51.123Z`.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.split('-');
    let mut time = time.split(':');
    let year = digits(date.next()?, 4..=4)?;
    let month = digits(date.next()?, 1..=2)?;
    let day = digits(date.next()?, 1..=2)?;
    let hour = digits(time.next()?, 1..=2)?;
    let minute = digits(time.next()?, 1..=2)?;
    let (second, fraction) = time.next()?.split_once('.')?;
    let second = digits(second, 1..=2)?;
    let places = u32::try_from(fraction.len()).ok()?;
    let fraction = digits(fraction, 1..=6)? * 10_u32.pow(6 - places);
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    let small = |number: u32| u8::try_from(number).ok();
    let month = Month::try_from(small(month)?).ok()?;
    // Python has no year 0.
    let year = i32::try_from(year).ok().filter(|year| *year > 0)?;
    let date = Date::from_calendar_date(year, month, small(day)?).ok()?;
    let time = Time::from_hms_micro(small(hour)?, small(minute)?, small(second)?, fraction).ok()?;
    let nanos = UtcDateTime::new(date, time).unix_timestamp_nanos();
    i64::try_from(nanos / 1_000).ok()
}

fn digits(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_number = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Whether this is an integer.
pub(super) fn is_integer(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"-");
    let digits = digits.or_else(|| text.strip_prefix(b"+"));
    let digits = digits.unwrap_or(text);
    digits.len() <= DIGITS_MAX
        && digits
            .split(|byte| *byte == b'_')
            .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}

/// Python's limit as well.
const DIGITS_MAX: usize = 4_300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps() {
        const AT: i64 = 1_318_611_591;
        for (text, expected) in [
            ("2011-10-14T16:59:51.123Z", Some(AT * 1_000_000 + 123_000)),
            ("2011-10-14T16:59:51.000001Z", Some(AT * 1_000_000 + 1)),
            ("1970-1-1T0:0:0.0Z", Some(0)),
            ("1969-12-31T23:59:59.5Z", Some(-500_000)),
            ("9999-12-31T23:59:59.999999Z", Some(253_402_300_799_999_999)),
            ("2011-10-14T16:59:51Z", None),
            ("2011-10-14T16:59:51.Z", None),
            ("2011-10-14T16:59:51.1234567Z", None),
            ("2011-10-14T16:59:51.123", None),
            ("2011-10-14 16:59:51.123Z", None),
            ("2011-02-30T16:59:51.123Z", None),
            ("2011-13-14T16:59:51.123Z", None),
            ("2011-10-14T24:59:51.123Z", None),
            ("2011-10-14T16:59:60.123Z", None),
            ("0000-10-14T16:59:51.123Z", None),
            ("02011-10-14T16:59:51.123Z", None),
            ("+201-10-14T16:59:51.123Z", None),
            ("2011-10-14-1T16:59:51.123Z", None),
            ("2011-10-14T16:59:51.123:1Z", None),
            ("", None),
            ("Z", None),
            ("TZ", None),
        ] {
            assert_eq!(timestamp(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(timestamp(b"\xff"), None);
    }

    #[test]
    fn integers() {
        for (text, expected) in [
            ("0", true),
            ("-12", true),
            ("+7", true),
            (" 5 ", true),
            ("1_000", true),
            ("12345678901234567890123", true),
            ("", false),
            ("-", false),
            ("1__0", false),
            ("_1", false),
            ("1.5", false),
            ("0x1", false),
            ("--1", false),
        ] {
            assert_eq!(is_integer(text.as_bytes()), expected, "{text}");
        }
        assert!(!is_integer("1".repeat(5_000).as_bytes()));
    }
}
