//! Names, settings and times for readers.

use chrono::DateTime;
use serde_json::Value;

use crate::frame::Machine;
use crate::run::{Group, Run};

/// `uds-rawsocket-msgpack` is `Unix socket, RawSocket, MessagePack`; other names stay as they are.
pub(super) fn case(name: &str) -> String {
    if let Some(workers) = name.strip_prefix("workers-") {
        return match workers {
            "1" => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
    }
    let (combination, rest) = match name.split_once(' ') {
        Some((combination, rest)) => (combination, format!(", {rest}")),
        None => (name, String::new()),
    };
    let parts = combination.split('-').map(|part| {
        Some(match part {
            "uds" => "Unix socket",
            "tcp" => "TCP",
            "rawsocket" => "RawSocket",
            "websocket" => "WebSocket",
            "json" => "JSON",
            "msgpack" => "MessagePack",
            "cbor" => "CBOR",
            "batched" => "batched",
            _ => return None,
        })
    });
    match parts.collect::<Option<Vec<_>>>() {
        Some(parts) if parts.len() > 1 => parts.join(", ") + &rest,
        _ => name.to_owned(),
    }
}

/// Case and placement.
pub(super) fn group(group: &Group) -> String {
    placed(&group.case, group.placement.as_deref())
}

pub(super) fn placed(name: &str, placement: Option<&str>) -> String {
    match placement {
        Some(placement) => format!("{} · {placement}", case(name)),
        None => case(name),
    }
}

/// The distinction of a run from others of its bench: the operations in flight, or the file's name.
pub(super) fn title(run: &Run) -> String {
    let setting = |name: &str| run.setting(name).filter(|value| *value > 0.0);
    let mut parts = Vec::new();
    match (setting("outstanding"), run.bench.as_str()) {
        (Some(1.0), "rpc") => parts.push("one call after the other".to_owned()),
        (Some(outstanding), "rpc") => parts.push(format!("{outstanding} calls in flight")),
        _ => parts.push(stem(&run.file).to_owned()),
    }
    if let Some(pairs) = setting("pairs").filter(|pairs| *pairs > 1.0) {
        parts.push(format!("{pairs} pairs"));
    }
    if let Some(bytes) = setting("payload_bytes").filter(|_| run.bench == "rpc") {
        parts.push(format!("{bytes} bytes of payload"));
    }
    if run.is_set("spin") {
        parts.push("a busy-polling router".to_owned());
    }
    if let Some(network) = run.settings.get("network").and_then(Value::as_str) {
        parts.push(network.to_owned());
    }
    super::drawings::sentence(&parts.join(", "))
}

/// The same within a sentence.
pub(super) fn run(run: &Run) -> String {
    let title = title(run);
    let mut letters = title.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => title,
    }
}

/// The machine's load without the bench: before it, and during its measurement.
pub(super) fn load(run: &Run) -> String {
    let before = format!("machine's load before {:.2}", run.machine.load_average);
    let subjects = run.groups.iter().flat_map(|group| &group.subjects);
    let foreign = subjects.filter_map(|subject| subject.figures.get("foreign_busy_cores"));
    match foreign.map(|spread| spread.max).reduce(f64::max) {
        Some(cores) => {
            format!("{before}; while it was measured others kept up to {cores:.2} cores busy")
        }
        None => before,
    }
}

/// A file's name without its folder and extension.
pub(super) fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".json").unwrap_or(name)
}

/// `runs 5, seconds 0.3`, without empty values and those elsewhere on the page.
pub(super) fn settings(run: &Run) -> String {
    let shown = run
        .settings
        .iter()
        .filter(|(name, _)| !["peers", "document_hardware", "placements"].contains(&name.as_str()));
    let shown = shown.filter_map(|(name, value)| {
        let name = name.replace('_', " ");
        Some(match value {
            Value::Null | Value::Bool(false) | Value::Object(_) => return None,
            Value::Bool(true) => name,
            Value::String(word) if word.is_empty() => return None,
            Value::String(word) => format!("{name} {word}"),
            Value::Number(number) => format!("{name} {number}"),
            Value::Array(items) => {
                let plain = |item: &Value| match item {
                    Value::String(word) => Some(word.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    _ => None,
                };
                let items: Vec<String> = items.iter().filter_map(plain).collect();
                if items.is_empty() {
                    return None;
                }
                format!("{name} {}", items.join(", "))
            }
        })
    });
    shown.collect::<Vec<_>>().join(" · ")
}

/// The requested peers of a run: their versions, and the absent ones.
pub(super) fn peers(run: &Run) -> Vec<String> {
    let peers = run.settings.get("peers").and_then(Value::as_array);
    let peers = peers.into_iter().flatten().filter_map(|peer| {
        let name = peer.get("name")?.as_str()?;
        let version = peer.get("version").and_then(Value::as_str);
        let present = peer.get("present").and_then(Value::as_bool).unwrap_or(true);
        Some(match (present, version) {
            (false, _) => format!("{name}: absent, not measured"),
            (true, Some(version)) => format!("{name}: {version}"),
            (true, None) => name.to_owned(),
        })
    });
    peers.collect()
}

pub(super) fn build(run: &Run) -> String {
    match run.commit.as_str() {
        "" => format!("crosstie {}", run.version),
        commit => format!("crosstie {}, commit {commit}", run.version),
    }
}

pub(super) fn machine(machine: &Machine) -> String {
    format!(
        "{} cores of {}, {} GiB, {}, Linux {}",
        machine.cores,
        machine.cpu,
        machine.memory_bytes >> 30,
        machine.os,
        machine.kernel
    )
}

/// In UTC, to the minute.
pub(super) fn time(unix_time_s: u64) -> String {
    form(unix_time_s, "%Y-%m-%d %H:%M UTC")
}

/// The day or the first and the last day of all runs.
pub(super) fn days(runs: &[Run]) -> String {
    let times = || runs.iter().map(|run| run.machine.unix_time_s);
    let day = |time: Option<u64>| form(time.unwrap_or(0), "%-d %B %Y");
    match (day(times().min()), day(times().max())) {
        (first, last) if first == last => first,
        (first, last) => format!("{first} to {last}"),
    }
}

fn form(unix_time_s: u64, pattern: &str) -> String {
    let time = i64::try_from(unix_time_s).ok().filter(|time| *time > 0);
    let time = time.and_then(|time| DateTime::from_timestamp(time, 0));
    time.map_or_else(
        || "at an unknown time".to_owned(),
        |time| time.format(pattern).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_aloud() {
        for (name, expected) in [
            (
                "uds-rawsocket-msgpack",
                "Unix socket, RawSocket, MessagePack",
            ),
            ("TCP_RR", "TCP_RR"),
            ("workers-4", "4 workers"),
            ("json", "json"),
            (
                "tcp-websocket-json result 7",
                "TCP, WebSocket, JSON, result 7",
            ),
        ] {
            assert_eq!(case(name), expected);
        }
    }

    #[test]
    fn times() {
        assert_eq!(time(1_795_195_014), "2026-11-20 17:16 UTC");
        assert_eq!(time(0), "at an unknown time");
        assert_eq!(time(u64::MAX), "at an unknown time");
    }
}
