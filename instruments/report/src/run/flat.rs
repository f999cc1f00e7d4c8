//! Metrics of benches, nested or flat, as one level of names with units.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Spread;
use crate::metric::split_unit;

/// A row's metrics, by kind.
#[derive(Debug, Default)]
pub(super) struct Flat {
    pub(super) figures: BTreeMap<String, Spread>,
    pub(super) lists: BTreeMap<String, Vec<BTreeMap<String, f64>>>,
    pub(super) words: BTreeMap<String, String>,
}

impl Flat {
    pub(super) fn of(metrics: &Map<String, Value>) -> Self {
        let mut flat = Self::default();
        for (name, value) in metrics {
            flat.take(name.clone(), value);
        }
        flat
    }

    fn take(&mut self, name: String, value: &Value) {
        match value {
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.figures.insert(name, Spread::exactly(number));
                }
            }
            Value::Object(object) => match spread(object) {
                Some(spread) => {
                    self.figures.insert(name, spread);
                }
                None => {
                    for (inner, value) in object {
                        self.take(join(&name, inner), value);
                    }
                }
            },
            Value::Array(items) => {
                let items: Vec<_> = items.iter().filter_map(Value::as_object).collect();
                if !items.is_empty() {
                    self.lists
                        .insert(name, items.into_iter().map(numbers).collect());
                }
            }
            Value::String(word) => {
                self.words.insert(name, word.clone());
            }
            // A remark: only its presence is shown.
            Value::Bool(true) => {
                self.words.insert(name, String::new());
            }
            Value::Bool(false) | Value::Null => {}
        }
    }
}

/// `rtt_us` and `p50` are `rtt_p50_us`: the unit stays last.
fn join(outer: &str, inner: &str) -> String {
    match split_unit(outer) {
        Some((stem, unit)) => format!("{stem}_{inner}{unit}"),
        None => format!("{outer}_{inner}"),
    }
}

fn spread(object: &Map<String, Value>) -> Option<Spread> {
    let field = |name| object.get(name).and_then(Value::as_f64);
    let (median, min, max) = (field("median")?, field("min")?, field("max")?);
    Some(Spread { median, min, max })
}

fn numbers(object: &Map<String, Value>) -> BTreeMap<String, f64> {
    let numbers = object.iter();
    numbers
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_metrics_get_one_level_of_names() {
        let Value::Object(metrics) = json!({
            "calls": 10,
            "rtt_us": { "p50": 2.5, "p99_9": 7 },
            "start_ms": { "median": 2, "min": 1, "max": 3 },
            "steps": [{ "sessions": 1, "router_pss_bytes": 5 }],
            "bound_by": "driver",
            "unknown": null,
        }) else {
            unreachable!("it is an object")
        };
        let flat = Flat::of(&metrics);
        let names: Vec<&str> = flat.figures.keys().map(String::as_str).collect();
        assert_eq!(names, ["calls", "rtt_p50_us", "rtt_p99_9_us", "start_ms"]);
        assert_eq!(flat.figures["start_ms"].max, 3.0);
        assert_eq!(flat.lists["steps"][0]["sessions"], 1.0);
        assert_eq!(flat.words["bound_by"], "driver");
    }
}
