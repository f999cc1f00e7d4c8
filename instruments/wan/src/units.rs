//! Times, rates and sizes in written form: `50ms`, `10mbit`, `64KiB`.

use std::time::Duration;

use crate::endpoint::ParseError;

/// `250us`, `50ms`, `1.5s`, `2min`. A bare `0` needs no unit.
pub fn duration(text: &str) -> Result<Duration, ParseError> {
    const UNITS: [(&str, f64); 8] = [
        ("", 0.0),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    let fail = || ParseError::new(text, "a time has a unit, as in 250us, 50ms, 1.5s or 2min");
    let (number, unit) = split(text).ok_or_else(fail)?;
    if unit.is_empty() && number != 0.0 {
        return Err(fail());
    }
    let seconds = scale(&UNITS, number, unit).ok_or_else(fail)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| fail())
}

/// `10mbit`, `1gbit`, `56kbit`, `9600bit`: bits per second, in bytes per second.
pub fn rate(text: &str) -> Result<u64, ParseError> {
    const UNITS: [(&str, f64); 4] = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let fail = || ParseError::new(text, "a rate is in bits per second, as in 56kbit or 10mbit");
    let (number, unit) = split(text).ok_or_else(fail)?;
    let bits = scale(&UNITS, number, unit).ok_or_else(fail)?;
    match (bits / 8.0) as u64 {
        0 => Err(ParseError::new(text, "a rate is at least 8bit per second")),
        bytes => Ok(bytes),
    }
}

/// `1000000`, `64KiB`, `16MiB`, `1GiB`.
pub fn bytes(text: &str) -> Result<u64, ParseError> {
    const UNITS: [(&str, f64); 4] = [
        ("", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
        ("GiB", 1073741824.0),
    ];
    let fail = || ParseError::new(text, "a size is in bytes, as in 1000000, 64KiB or 16MiB");
    let (number, unit) = split(text).ok_or_else(fail)?;
    Ok(scale(&UNITS, number, unit).ok_or_else(fail)? as u64)
}

/// The number in front, and its suffix.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

fn scale(units: &[(&str, f64)], number: f64, unit: &str) -> Option<f64> {
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number * factor)
}

/// A time in the unit in which it is shortest: `50 ms`.
pub fn written(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (number, unit) = match seconds {
        0.0 => (0.0, "ms"),
        ..1e-3 => (seconds * 1e6, "µs"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    // Three decimals suffice for any input, and hide the rounding of floats.
    let number = (number * 1e3).round() / 1e3;
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        #[track_caller]
        fn check(text: &str, expected: Option<(Duration, &str)>) {
            let found = duration(text).ok().map(|found| (found, written(found)));
            let expected = expected.map(|(duration, text)| (duration, text.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
        check("50ms", Some((Duration::from_millis(50), "50 ms")));
        check("0", Some((Duration::ZERO, "0 ms")));
        check("0ms", Some((Duration::ZERO, "0 ms")));
        check("250us", Some((Duration::from_micros(250), "250 µs")));
        check("1.5s", Some((Duration::from_millis(1500), "1.5 s")));
        check("2min", Some((Duration::from_secs(120), "120 s")));
        check("0.25ms", Some((Duration::from_micros(250), "250 µs")));
        for wrong in [
            "",
            "50",
            "ms",
            "50 ms",
            "-5ms",
            "5d",
            "1e3s",
            "1.2.3s",
            "99999999999999999999999s",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn rates_and_sizes() {
        #[track_caller]
        fn check(parse: fn(&str) -> Result<u64, ParseError>, text: &str, expected: Option<u64>) {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        check(rate, "10mbit", Some(1_250_000));
        check(rate, "56kbit", Some(7_000));
        check(rate, "1gbit", Some(125_000_000));
        check(rate, "9600bit", Some(1_200));
        check(rate, "0mbit", None);
        check(rate, "7bit", None);
        check(rate, "10", None);
        check(rate, "10mbps", None);
        check(bytes, "1000000", Some(1_000_000));
        check(bytes, "64KiB", Some(65_536));
        check(bytes, "0.5MiB", Some(524_288));
        check(bytes, "64kb", None);
        check(bytes, "", None);
    }
}
