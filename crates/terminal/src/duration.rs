//! Durations as arguments of a command.

use std::time::Duration;

use anyhow::{Context, bail};

/// `500ms`, `5s`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> anyhow::Result<Duration> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => bail!("expected a unit of ms, s, m or h, got {unit:?}"),
    };
    let number: f64 = number
        .parse()
        .context("expected a number, such as the 5 of 5s")?;
    Ok(Duration::try_from_secs_f64(number * seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |given: &str, expected: Option<u64>| {
            let millis = duration(given)
                .ok()
                .map(|duration| duration.as_millis() as u64);
            assert_eq!(millis, expected, "{given}");
        };
        check("5s", Some(5000));
        check("5", Some(5000));
        check("0.5", Some(500));
        check("250ms", Some(250));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        check("", None);
        check("s", None);
        check("5 s", None);
        check("-1s", None);
        check("1d", None);
        check("1.1.1s", None);
    }
}
