//! A node's output while it runs: callers' averages, with the time of each, and its last lines in case it fails.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Maximum number of averages: days of them.
const AVERAGES_MAX: usize = 1_000_000;
/// A longer line is cut.
const LINE_BYTES_MAX: u64 = 64 * 1024;
const LAST_WORDS_MAX: usize = 3;
const ERRORS_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Average {
    pub(super) at: Instant,
    pub(super) title: String,
    pub(super) average_ms: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    averages: Vec<Average>,
    /// The first lines with an error: later ones are most often its consequences.
    errors: Vec<String>,
    last: VecDeque<String>,
}

impl Lines {
    /// Reads until the end, on a thread of its own.
    pub(super) fn listen(&self, from: impl Read + Send + 'static) {
        let lines = self.clone();
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            loop {
                line.clear();
                match from
                    .by_ref()
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line)
                {
                    Ok(0) | Err(_) => return,
                    Ok(_) => lines.take_in(&String::from_utf8_lossy(&line), Instant::now()),
                }
            }
        });
    }

    pub(super) fn averages(&self) -> Vec<Average> {
        self.said().averages.clone()
    }

    pub(super) fn last_words(&self) -> String {
        let said = self.said();
        let all = said.errors.iter().chain(&said.last);
        let all: Vec<&str> = all.map(String::as_str).collect();
        all.join(" / ")
    }

    fn take_in(&self, line: &str, at: Instant) {
        let line = line.trim_end();
        let mut said = self.said();
        if let Some((title, average_ms)) = parse(line) {
            if said.averages.len() < AVERAGES_MAX {
                let title = title.to_owned();
                said.averages.push(Average {
                    at,
                    title,
                    average_ms,
                });
            }
        } else if line.to_ascii_lowercase().contains("error") && said.errors.len() < ERRORS_MAX {
            said.errors.push(line.to_owned());
        } else if !line.is_empty() {
            if said.last.len() == LAST_WORDS_MAX {
                said.last.pop_front();
            }
            said.last.push_back(line.to_owned());
        }
    }

    /// No operation under this lock can be left half done.
    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Title and number of `… [TITLE] - average round-trip time (ms): 0.48`.
fn parse(line: &str) -> Option<(&str, f64)> {
    let (before, number) = line.split_once("] - average round-trip time (ms): ")?;
    let (_, title) = before.rsplit_once('[')?;
    let average_ms: f64 = number.trim().parse().ok()?;
    (average_ms.is_finite() && average_ms > 0.0).then_some((title, average_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_found_in_a_log() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, f64)>) {
            assert_eq!(parse(line), expected);
        }
        let line = "2016-02-11T14:00:24+0100 [Container   26721] \
                    [WAMP-UDS-RawSocket-MessagePack] - average round-trip time (ms): 5.58165311813";
        check(
            line,
            Some(("WAMP-UDS-RawSocket-MessagePack", 5.58165311813)),
        );
        check(
            "[A] - average round-trip time (ms): 0.01",
            Some(("A", 0.01)),
        );
        check("[A] - average round-trip time (ms): ", None);
        check("[A] - average round-trip time (ms): NaN", None);
        check("[Controller 1] Starting", None);
    }

    #[test]
    fn the_last_words_are_the_last() {
        let lines = Lines::default();
        for number in 0..20 {
            let what = if number == 4 { "ERROR" } else { "line" };
            lines.take_in(&format!("{what} {number}\n"), Instant::now());
        }
        assert_eq!(lines.last_words(), "ERROR 4 / line 17 / line 18 / line 19");
    }
}
