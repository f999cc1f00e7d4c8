//! Values of `rabbitmq.conf`.

use std::ops::RangeInclusive;

use crosstie_config::catalogue::Rule;
use serde_json::Value as Json;

/// A port, or an address with one.
pub(super) fn address(value: &str) -> Result<(Option<String>, u16), String> {
    let Some((interface, last)) = value.rsplit_once(':') else {
        return Ok((None, port(value)?));
    };
    let interface = interface.trim_start_matches('[').trim_end_matches(']');
    Ok((Some(interface.to_owned()), port(last)?))
}

pub(super) fn port(value: &str) -> Result<u16, String> {
    let port = value.parse();
    port.map_err(|_| format!("expected a port, got {value}"))
}

pub(super) fn number(value: &str) -> Result<u64, String> {
    let number = value.parse();
    number.map_err(|_| format!("expected a whole number, got {value}"))
}

pub(super) fn within(value: u64, may: &RangeInclusive<u64>) -> Result<u64, String> {
    match may.contains(&value) {
        true => Ok(value),
        false => Err(format!(
            "expected {} to {}, got {value}: the default stays",
            may.start(),
            may.end()
        )),
    }
}

pub(super) fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("expected true or false, got {other}")),
    }
}

/// Bytes with RabbitMQ's units.
pub(super) fn bytes(value: &str) -> Result<u64, String> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &value[digits.len()..] {
        "" | "B" => 1,
        "k" | "K" | "kiB" | "KiB" => 1 << 10,
        "kB" | "KB" => 1_000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        "GB" => 1_000_000_000,
        other => return Err(format!("expected a size, got the unit {other}")),
    };
    let number = number(digits.trim_end())?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("expected a size, got {value}"))
}

/// A value that the configuration accepts, or the reason for leaving it out.
pub(super) fn fitting(rule: Rule, value: &str) -> Result<Json, String> {
    match rule.holds(value) {
        true => Ok(value.into()),
        false => Err(format!("expected {}, found '{value}'", rule.words())),
    }
}
