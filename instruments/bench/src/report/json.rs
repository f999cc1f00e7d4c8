//! The JSON frame of every bench.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::BenchError;
use crate::figures::DRIVER_BOUND;
use crate::frame::Verdict;
use crate::machine::Machine;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    pub version: String,
    /// The commit of its source; empty if unknown.
    pub commit: String,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Frame<'a> {
    pub bench: &'static str,
    pub version: &'a str,
    pub commit: &'a str,
    pub machine: &'a Machine,
    pub settings: Value,
    pub results: Vec<Row>,
    /// The results of the goals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

/// One subject in one round of one case; without a round the summary of all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    pub case: String,
    /// `crosstie`, `floor`, a peer's name, or the measured URL.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<usize>,
    pub metrics: Value,
    pub valid: bool,
    pub why: String,
}

/// Prefix of the reason if no fault occurred, but the floor is not as expected: the machine had another load. The same
/// applies to a machine that is too small: [`DRIVER_BOUND`].
pub(crate) const FLOOR_SUSPECT: &str = "floor suspect";

impl Row {
    /// Whether something was lost, wrong or not measured. A figure that only does not count is not a failure of the
    /// subject: table and results file say so.
    pub(crate) fn has_failed(&self) -> bool {
        let is_harmless = [FLOOR_SUSPECT, DRIVER_BOUND]
            .iter()
            .any(|why| self.why.starts_with(why));
        !self.valid && !is_harmless
    }
}

pub(crate) fn metrics(metrics: &impl Serialize) -> Value {
    serde_json::to_value(metrics).unwrap_or(Value::Null)
}

pub(crate) fn write(path: &Path, frame: &Frame<'_>) -> Result<(), BenchError> {
    let fail = |source| BenchError::Report {
        path: path.to_owned(),
        source,
    };
    let mut text = serde_json::to_string_pretty(frame).map_err(|error| fail(error.into()))?;
    text.push('\n');
    fs::write(path, text).map_err(fail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_frame_has_its_names() {
        let machine = Machine {
            cpu: "a cpu".into(),
            cores: 2,
            memory_bytes: 1 << 30,
            os: "an os".into(),
            kernel: "6".into(),
            load_average: 0.0,
            unix_time_s: 1,
        };
        let row = Row {
            case: "uds-rawsocket-msgpack".into(),
            subject: "floor".into(),
            placement: Some("split".into()),
            round: None,
            metrics: json!({ "calls": 1 }),
            valid: false,
            why: "floor suspect".into(),
        };
        let frame = Frame {
            bench: "rpc",
            version: "0.1.0",
            commit: "abc",
            machine: &machine,
            settings: json!({ "runs": 5 }),
            results: vec![row],
            verdicts: Vec::new(),
        };
        assert_eq!(
            serde_json::to_value(frame).unwrap(),
            json!({
                "bench": "rpc", "version": "0.1.0", "commit": "abc",
                "machine": {
                    "cpu": "a cpu", "cores": 2, "memory_bytes": 1073741824, "os": "an os",
                    "kernel": "6", "load_average": 0.0, "unix_time_s": 1
                },
                "settings": { "runs": 5 },
                "results": [{
                    "case": "uds-rawsocket-msgpack", "subject": "floor", "placement": "split",
                    "metrics": { "calls": 1 }, "valid": false, "why": "floor suspect"
                }]
            })
        );
    }
}
