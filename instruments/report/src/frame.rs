//! The JSON frame that every bench writes.

use serde::Deserialize;
use serde_json::{Map, Value};

/// All results of one run of a bench.
#[derive(Debug, Deserialize)]
#[serde(
    expecting = "a results file: an object with bench, version, commit, machine, settings, \
                     results"
)]
pub(crate) struct Frame {
    pub(crate) bench: String,
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) machine: Machine,
    #[serde(default)]
    pub(crate) settings: Map<String, Value>,
    pub(crate) results: Vec<Row>,
    /// Empty in files from before verdicts were stored.
    #[serde(default)]
    pub(crate) verdicts: Vec<Verdict>,
}

/// A goal, and the bench's result for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a verdict: an object with case, what, at_most or at_least, verdict, why")]
pub(crate) struct Verdict {
    pub(crate) case: String,
    #[serde(default)]
    pub(crate) placement: Option<String>,
    pub(crate) what: String,
    #[serde(default)]
    pub(crate) at_most: Option<f64>,
    #[serde(default)]
    pub(crate) at_least: Option<f64>,
    #[serde(default)]
    pub(crate) reached: Option<f64>,
    pub(crate) verdict: Outcome,
    #[serde(default)]
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Outcome {
    #[serde(rename = "met")]
    Met,
    #[serde(rename = "missed")]
    Missed,
    #[serde(rename = "not judged")]
    NotJudged,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a machine: an object with cpu, cores, memory_bytes, os, kernel")]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) os: String,
    pub(crate) kernel: String,
    #[serde(default)]
    pub(crate) load_average: f64,
    #[serde(default)]
    pub(crate) unix_time_s: u64,
}

/// One subject in one round of one case; without a round the summary of all of them.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a result: an object with case, subject, metrics, valid, why")]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) subject: String,
    #[serde(default)]
    pub(crate) placement: Option<String>,
    #[serde(default)]
    pub(crate) round: Option<usize>,
    #[serde(default)]
    pub(crate) metrics: Map<String, Value>,
    pub(crate) valid: bool,
    #[serde(default)]
    pub(crate) why: String,
}

impl Frame {
    /// The frame, or the error in the text, with line and column.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            let expected = "expected the JSON that `crosstie bench … --json FILE` writes";
            return Err(format!("line 1, column 1: the file is empty; {expected}"));
        }
        serde_json::from_str(text).map_err(|error| {
            // The library puts the place at the end of its sentence, but readers look for it first.
            let what = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let what = what.strip_suffix(&place).unwrap_or(&what);
            let hint = match error.classify() {
                serde_json::error::Category::Eof => {
                    "; the file ends too early: was the bench interrupted while it wrote?"
                }
                serde_json::error::Category::Syntax => "; expected JSON",
                _ => "",
            };
            let (line, column) = (error.line(), error.column());
            format!("line {line}, column {column}: {what}{hint}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place_of_the_damage() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = Frame::read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        check("", "line 1, column 1: the file is empty");
        check("{\n  \"bench\": \"rpc\",", "line 2, column 17: EOF");
        check(
            "{\n  bench: 1}",
            "line 2, column 3: key must be a string; expected JSON",
        );
        check("[]", "expected a results file");
        check(
            "7",
            "line 1, column 1: invalid type: integer `7`, expected a results file",
        );
        check(
            r#"{"bench": "rpc", "version": "1", "commit": ""}"#,
            "missing field `machine`",
        );
        let machine = r#"{"cpu":"","cores":2,"memory_bytes":0,"os":"","kernel":""}"#;
        let frame = |results: &str| {
            format!(
                "{{\"bench\":\"x\",\"version\":\"\",\"commit\":\"\",\"machine\":{machine},\n\
                 \"results\":{results}}}"
            )
        };
        check(&frame("[3]"), "expected a result: an object with case");
        check(&frame("[{\"case\":\"\"}]"), "line 2");
        check(&frame("{}"), "expected a sequence");
        assert!(Frame::read(&frame("[]")).is_ok());
    }
}
