//! The information in a figure's name: its unit, its formatting, and its better side.

/// The formatting of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    PerSecond,
    MegabitsPerSecond,
    Bytes,
    Cores,
    Percent,
    /// A ratio, or a count.
    Number,
}

/// The suffixes that are units, those that contain others first.
const UNITS: &[(&str, Unit)] = &[
    ("mbit_per_s", Unit::MegabitsPerSecond),
    ("megabits_per_s", Unit::MegabitsPerSecond),
    ("_per_s", Unit::PerSecond),
    ("_ns", Unit::Nanoseconds),
    ("_us", Unit::Microseconds),
    ("_ms", Unit::Milliseconds),
    ("_s", Unit::Seconds),
    ("_bytes", Unit::Bytes),
    ("_cores", Unit::Cores),
    ("_percent", Unit::Percent),
];

/// A figure by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    /// Without the unit: `round trip p50`, `router CPU per call`.
    pub(crate) label: String,
    pub(crate) unit: Unit,
}

impl Metric {
    pub(crate) fn of(name: &str) -> Self {
        // `router_cpu_us_per_call`: the unit is before the divisor.
        let (name, per) = match name.split_once("_per_") {
            Some((name, per)) if per != "s" && split_unit(name).is_some() => (name, Some(per)),
            _ => (name, None),
        };
        let (stem, unit) = match split_unit(name) {
            Some((stem, ending)) => (stem, unit_of(ending)),
            None => (name, Unit::Number),
        };
        let mut label = match words(stem) {
            label if label.is_empty() => "throughput".to_owned(),
            label => label,
        };
        if unit == Unit::Bytes && per.is_some() && !label.contains("memory") {
            label += " memory";
        }
        if let Some(per) = per {
            label = format!("{label} per {}", words(per));
        }
        Self { label, unit }
    }

    /// The label, with the unit if figures do not carry it: `calls per second`.
    pub(crate) fn title(&self) -> String {
        match self.unit {
            Unit::PerSecond => format!("{} per second", self.label),
            Unit::MegabitsPerSecond => format!("{} in Mbit/s", self.label),
            _ => self.label.clone(),
        }
    }

    /// Whether less of it is better. Unknown for counts.
    pub(crate) fn less_is_better(&self) -> bool {
        !matches!(
            self.unit,
            Unit::PerSecond | Unit::MegabitsPerSecond | Unit::Number
        )
    }
}

/// A name without the unit at its end, and that unit.
pub(crate) fn split_unit(name: &str) -> Option<(&str, &str)> {
    let (ending, _) = UNITS.iter().find(|(ending, _)| name.ends_with(ending))?;
    Some(name.split_at(name.len() - ending.len()))
}

fn unit_of(ending: &str) -> Unit {
    let found = UNITS.iter().find(|(known, _)| *known == ending);
    found.map_or(Unit::Number, |(_, unit)| *unit)
}

/// A name's parts as words: abbreviations in their spelling, percentiles with their point.
fn words(stem: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in stem.split('_') {
        let fraction = !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        match words.last_mut() {
            Some(percentile) if fraction && is_percentile(percentile) => {
                *percentile += ".";
                *percentile += part;
            }
            _ => words.push(match part {
                "rtt" => "round trip".to_owned(),
                "cpu" => "CPU".to_owned(),
                "pss" => "memory (PSS)".to_owned(),
                "rss" => "memory (RSS)".to_owned(),
                "avg" => "mean".to_owned(),
                "" => continue,
                part => part.to_owned(),
            }),
        }
    }
    words.join(" ")
}

/// `p50`, `q99`.
fn is_percentile(word: &str) -> bool {
    let digits = word.strip_prefix('p').or_else(|| word.strip_prefix('q'));
    digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}

/// The percentiles of one latency among names: `("rtt", [(0.5, "rtt_p50_us"), …])`, and the largest of all at 1.
pub(crate) fn percentiles<'a>(names: &[&'a str]) -> Vec<(&'a str, Vec<(f64, &'a str)>)> {
    let mut latencies: Vec<(&str, Vec<(f64, &str)>)> = Vec::new();
    for name in names {
        let Some((stem, "_us" | "_ms")) = split_unit(name) else {
            continue;
        };
        let Some((latency, quantile)) = quantile(stem) else {
            continue;
        };
        match latencies.iter_mut().find(|(known, _)| *known == latency) {
            Some((_, points)) => points.push((quantile, name)),
            None => latencies.push((latency, vec![(quantile, name)])),
        }
    }
    for (_, points) in &mut latencies {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    latencies.retain(|(_, points)| points.len() > 2);
    latencies
}

/// `rtt_p99_9` is `rtt` at 0.999; `rtt_max` at 1.
fn quantile(stem: &str) -> Option<(&str, f64)> {
    if let Some(latency) = stem.strip_suffix("_max") {
        return Some((latency, 1.0));
    }
    let at = stem.rfind("_p").or_else(|| stem.rfind("_q"))?;
    let digits = stem[at + 2..].replacen('_', ".", 1);
    let percent: f64 = digits.parse().ok()?;
    (0.0..100.0)
        .contains(&percent)
        .then_some((&stem[..at], percent / 100.0))
}

/// A number with three or four significant digits: `9.47`, `12.6`, `483`, `76,412`.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.095 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

/// A whole number, its digits in groups.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        text.push('−');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count or a ratio: whole numbers stay whole.
fn count(value: f64) -> String {
    if value.fract() == 0.0 {
        thousands(value)
    } else {
        number(value)
    }
}

/// A figure with its unit, at a suitable scale.
pub(crate) fn with_unit(value: f64, unit: Unit) -> String {
    let time = |us: f64| match us {
        us if us.abs() < 1e3 => format!("{} µs", number(us)),
        us if us.abs() < 1e6 => format!("{} ms", number(us / 1e3)),
        us => format!("{} s", number(us / 1e6)),
    };
    match unit {
        Unit::Nanoseconds if value.abs() < 1e3 => format!("{} ns", number(value)),
        Unit::Nanoseconds => time(value / 1e3),
        Unit::Microseconds => time(value),
        Unit::Milliseconds => time(value * 1e3),
        Unit::Seconds => time(value * 1e6),
        Unit::PerSecond => format!("{}/s", number(value)),
        Unit::MegabitsPerSecond => format!("{} Mbit/s", number(value)),
        Unit::Bytes => bytes(value),
        Unit::Cores => format!("{} cores", number(value)),
        Unit::Percent => format!("{} %", number(value)),
        Unit::Number => count(value),
    }
}

/// A figure without its unit, which the column's heading has.
pub(crate) fn bare(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => bytes(value),
        Unit::Number => count(value),
        _ => number(value),
    }
}

/// An axis' tick: with its unit unless the caption has it, without trailing zeros.
pub(crate) fn tick(value: f64, unit: Unit) -> String {
    let label = match unit {
        Unit::PerSecond | Unit::MegabitsPerSecond => bare(value, unit),
        unit => with_unit(value, unit),
    };
    let (number, unit) = label.split_once(' ').unwrap_or((&label, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// The base of a unit's round values: bytes are counted in powers of 1,024.
pub(crate) fn grain(unit: Unit, largest: f64) -> f64 {
    match unit {
        Unit::Bytes if largest >= 1_048_576.0 => 1_048_576.0,
        Unit::Bytes if largest >= 10_240.0 => 1_024.0,
        _ => 1.0,
    }
}

/// A column heading's addition to the label; bytes have theirs in each cell.
pub(crate) fn symbol(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Microseconds => "µs",
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
        Unit::PerSecond => "/s",
        Unit::MegabitsPerSecond => "Mbit/s",
        Unit::Cores => "cores",
        Unit::Percent => "%",
        Unit::Bytes | Unit::Number => "",
    }
}

/// Bytes in KiB, MiB or GiB.
fn bytes(value: f64) -> String {
    match value.abs() {
        size if size < 10_240.0 => format!("{} B", thousands(value)),
        size if size < 1_048_576.0 => format!("{:.1} KiB", value / 1024.0),
        size if size < 1_073_741_824.0 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_label_and_unit() {
        #[track_caller]
        fn check(name: &str, label: &str, unit: Unit) {
            let metric = Metric::of(name);
            assert_eq!((metric.label.as_str(), metric.unit), (label, unit));
        }
        #[rustfmt::skip]
        let rows = [
            ("rtt_p99_9_us", "round trip p99.9", Unit::Microseconds),
            ("router_cpu_us_per_call", "router CPU per call", Unit::Microseconds),
            ("calls_per_s", "calls", Unit::PerSecond),
            ("mbit_per_s", "throughput", Unit::MegabitsPerSecond),
            ("in_mbit_per_s", "in", Unit::MegabitsPerSecond),
            ("server_cpu_ns_per_byte", "server CPU per byte", Unit::Nanoseconds),
            ("router_bytes_per_session", "router memory per session", Unit::Bytes),
            ("router_pss_bytes", "router memory (PSS)", Unit::Bytes),
            ("caller_messages_per_read", "caller messages per read", Unit::Number),
            ("established", "established", Unit::Number),
            ("duration_s", "duration", Unit::Seconds),
            ("router_busy_cores", "router busy", Unit::Cores),
        ];
        for (name, label, unit) in rows {
            check(name, label, unit);
        }
    }

    #[test]
    fn latencies_are_found_by_their_percentiles() {
        let names = [
            "calls",
            "rtt_p99_us",
            "rtt_p50_us",
            "rtt_max_us",
            "rtt_p99_9_us",
            "open_max_ms",
        ];
        let found = percentiles(&names);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "rtt");
        for ((quantile, _), expected) in found[0].1.iter().zip([0.5, 0.99, 0.999, 1.0]) {
            assert!((quantile - expected).abs() < 1e-9);
        }
        assert_eq!(found[0].1.len(), 4);
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        for (value, unit, expected) in [
            (10.0, Unit::Microseconds, "10 µs"),
            (500.0, Unit::Microseconds, "500 µs"),
            (0.0005, Unit::Seconds, "500 µs"),
            (1.0, Unit::Number, "1"),
            (20_000.0, Unit::PerSecond, "20,000"),
        ] {
            assert_eq!(tick(value, unit), expected);
        }
    }

    #[test]
    fn figures_have_the_unit_that_suits_them() {
        #[track_caller]
        fn check(value: f64, unit: Unit, expected: &str) {
            assert_eq!(with_unit(value, unit), expected);
        }
        check(25.31, Unit::Microseconds, "25.3 µs");
        check(1_105.0, Unit::Microseconds, "1.10 ms");
        check(47.5, Unit::Seconds, "47.5 s");
        check(13_498.0, Unit::PerSecond, "13,498/s");
        check(2_516_582.4, Unit::Bytes, "2.4 MiB");
        check(1_930.0, Unit::Bytes, "1,930 B");
        check(60_000.0, Unit::Number, "60,000");
        check(1.149, Unit::Number, "1.15");
        check(-0.2, Unit::Number, "-0.20");
    }
}
