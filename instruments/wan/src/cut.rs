//! The failures of a line: a grammar of a few words, and the calendar that follows it.
//!
//! ```text
//! --cut after=10s                   10 s after the start every connection is reset
//! --cut every=5s,for=1s             each 5 s nothing passes for 1 s; bytes in transit arrive later
//! --cut bytes=1000000,silence      after so many bytes nothing passes any more
//! --cut every=5s,for=1s,reset       each 5 s all are reset, and new ones for 1 s
//! ```
//!
//! A cut affects all connections at once, as a cable's would.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::endpoint::ParseError;
use crate::units;

/// One fault, or a repeated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub when: When,
    pub how: How,
    /// Its duration. `None`: a reset is over at once, a silence never ends.
    pub lasting: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Once, so long after the line began.
    After(Duration),
    /// Repeatedly.
    Every(Duration),
    /// Once, when the line has delivered so many bytes in both directions together.
    Bytes(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Both ends of every connection are reset.
    Reset,
    /// Nothing passes; nothing is lost either, because TCP would retransmit it.
    Silence,
}

impl FromStr for Cut {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |expected| Err(ParseError::new(text, expected));
        let (mut when, mut how, mut lasting) = (None, None, None);
        for word in text.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let repeated = match name {
                "after" => when.replace(When::After(units::duration(value)?)).is_some(),
                "every" => when.replace(When::Every(units::duration(value)?)).is_some(),
                "bytes" => when.replace(When::Bytes(units::bytes(value)?)).is_some(),
                "for" => lasting.replace(units::duration(value)?).is_some(),
                "reset" if value.is_empty() => how.replace(How::Reset).is_some(),
                "silence" if value.is_empty() => how.replace(How::Silence).is_some(),
                _ => {
                    return fail(
                        "a cut is one of after=TIME, every=TIME, bytes=N, and then for=TIME, \
                         reset or silence",
                    );
                }
            };
            if repeated {
                return fail("a cut has one time, one length and one kind; give --cut twice");
            }
        }
        let Some(when) = when else {
            return fail("a cut says when: after=TIME, every=TIME or bytes=N");
        };
        let how = how.unwrap_or(match lasting {
            Some(_) => How::Silence,
            None => How::Reset,
        });
        if lasting.is_some_and(|lasting| lasting.is_zero()) {
            return fail("for= is longer than nothing");
        }
        if let When::Every(period) = when {
            if how == How::Silence && lasting.is_none() {
                return fail("a repeated silence needs an end: for=TIME");
            }
            if period <= lasting.unwrap_or_default() {
                return fail("every= is longer than for=");
            }
        }
        Ok(Self { when, how, lasting })
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.how {
            How::Reset => "reset ",
            How::Silence => "silence ",
        })?;
        match self.when {
            When::After(time) => write!(f, "after {}", units::written(time))?,
            When::Every(time) => write!(f, "every {}", units::written(time))?,
            When::Bytes(bytes) => write!(f, "after {bytes} bytes")?,
        }
        match self.lasting {
            Some(time) => write!(f, " for {}", units::written(time)),
            None => Ok(()),
        }
    }
}

/// The line's action now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Reset every connection.
    ResetAll,
    /// Let nothing pass.
    Silence,
    /// A silence is over: continue.
    Resume,
}

/// The cuts in time. Inputs: the time and the bytes delivered; output: faults, and the time of the next query.
#[derive(Debug)]
pub(crate) struct Calendar {
    entries: Vec<Entry>,
    silent_until_ns: u64,
    refusing_until_ns: u64,
}

#[derive(Debug)]
struct Entry {
    cut: Cut,
    /// The next time; none for a cut by bytes that are not delivered yet.
    next_ns: Option<u64>,
    bytes_left: Option<u64>,
}

const NEVER: u64 = u64::MAX;

impl Calendar {
    pub(crate) fn new(cuts: &[Cut], now_ns: u64) -> Self {
        let entries = cuts.iter().map(|cut| Entry {
            cut: *cut,
            next_ns: match cut.when {
                When::After(time) | When::Every(time) => Some(later(now_ns, time)),
                When::Bytes(_) => None,
            },
            bytes_left: match cut.when {
                When::Bytes(bytes) => Some(bytes),
                _ => None,
            },
        });
        Self {
            entries: entries.collect(),
            silent_until_ns: 0,
            refusing_until_ns: 0,
        }
    }

    /// Bytes that may still be delivered before the next cut by bytes; none while it is due.
    pub(crate) fn allowance(&self) -> usize {
        let left = self.entries.iter().filter_map(|entry| entry.bytes_left);
        usize::try_from(left.min().unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
    }

    /// Counts delivered bytes.
    pub(crate) fn deliver(&mut self, bytes: usize, now_ns: u64) {
        for entry in &mut self.entries {
            if let Some(left) = &mut entry.bytes_left {
                *left = left.saturating_sub(bytes as u64);
                if *left == 0 {
                    entry.next_ns = Some(now_ns);
                }
            }
        }
    }

    /// The fault due now; query until there is none.
    pub(crate) fn next_fault(&mut self, now_ns: u64) -> Option<Fault> {
        for entry in &mut self.entries {
            let Some(at_ns) = entry.next_ns.filter(|at| *at <= now_ns) else {
                continue;
            };
            entry.next_ns = match entry.cut.when {
                When::Every(period) => Some(later(at_ns, period)),
                _ => None,
            };
            entry.bytes_left = None;
            let end_ns = entry.cut.lasting.map(|lasting| later(at_ns, lasting));
            match entry.cut.how {
                How::Reset => {
                    self.refusing_until_ns = self.refusing_until_ns.max(end_ns.unwrap_or(0));
                    return Some(Fault::ResetAll);
                }
                How::Silence => {
                    self.silent_until_ns = self.silent_until_ns.max(end_ns.unwrap_or(NEVER));
                    return Some(Fault::Silence);
                }
            }
        }
        if self.silent_until_ns != 0 && self.silent_until_ns <= now_ns {
            self.silent_until_ns = 0;
            return Some(Fault::Resume);
        }
        None
    }

    /// The time of the next query.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let silence = (!matches!(self.silent_until_ns, 0 | NEVER)).then_some(self.silent_until_ns);
        let entries = self.entries.iter().filter_map(|entry| entry.next_ns);
        entries.chain(silence).min()
    }

    /// Whether nothing passes.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent_until_ns != 0
    }

    /// Whether new connections are reset.
    pub(crate) fn is_refusing(&self, now_ns: u64) -> bool {
        now_ns < self.refusing_until_ns
    }
}

fn later(now_ns: u64, time: Duration) -> u64 {
    now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(NEVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_written() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            match (text.parse::<Cut>(), expected) {
                (Ok(cut), Ok(expected)) => assert_eq!(cut.to_string(), expected),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
        check("after=10s", Ok("reset after 10 s"));
        check("after=10s,silence", Ok("silence after 10 s"));
        check("every=5s,for=1s", Ok("silence every 5 s for 1 s"));
        check("every=5s,for=1s,reset", Ok("reset every 5 s for 1 s"));
        check("bytes=1000000", Ok("reset after 1000000 bytes"));
        check(
            "silence,bytes=1KiB,for=20ms",
            Ok("silence after 1024 bytes for 20 ms"),
        );
        check("", Err("a cut is one of"));
        check("reset", Err("says when"));
        check("after", Err("a time has a unit"));
        check("after=10", Err("a time has a unit"));
        check("after=1s,every=2s", Err("give --cut twice"));
        check("every=1s,silence", Err("needs an end"));
        check("every=1s,for=1s", Err("longer than for="));
        check("after=1s,for=0", Err("longer than nothing"));
        check("reset=1,after=1s", Err("a cut is one of"));
    }

    /// Queries at each of the times and records the faults.
    #[track_caller]
    fn check(cuts: &[&str], asked_ms: &[u64], expected: &str) {
        let cuts: Vec<Cut> = cuts.iter().map(|text| text.parse().unwrap()).collect();
        let mut calendar = Calendar::new(&cuts, 0);
        let mut found = Vec::new();
        for now_ms in asked_ms {
            let now_ns = now_ms * 1_000_000;
            while let Some(fault) = calendar.next_fault(now_ns) {
                found.push(format!("{now_ms}:{fault:?}"));
            }
            if calendar.is_silent() {
                found.push(format!("{now_ms}:silent"));
            }
            if calendar.is_refusing(now_ns) {
                found.push(format!("{now_ms}:refusing"));
            }
        }
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn cuts_come_in_time() {
        check(&["after=10ms"], &[0, 9, 10, 11, 99], "10:ResetAll");
        check(
            &["after=10ms,for=5ms,reset"],
            &[9, 10, 14, 15, 16],
            "10:ResetAll 10:refusing 14:refusing",
        );
        check(
            &["every=10ms,for=5ms"],
            &[9, 10, 14, 15, 19, 20, 25],
            "10:Silence 10:silent 14:silent 15:Resume 20:Silence 20:silent 25:Resume",
        );
        check(
            &["after=10ms,silence"],
            &[9, 10, 999],
            "10:Silence 10:silent 999:silent",
        );
        // A missed one is made up for.
        check(
            &["every=10ms"],
            &[35, 36, 40],
            "35:ResetAll 35:ResetAll 35:ResetAll 40:ResetAll",
        );
    }

    #[test]
    fn bytes_are_counted_to_the_last() {
        let cuts = ["bytes=100".parse().unwrap(), "bytes=150".parse().unwrap()];
        let mut calendar = Calendar::new(&cuts, 0);
        assert_eq!(calendar.allowance(), 100);
        calendar.deliver(60, 1);
        assert_eq!(calendar.allowance(), 40);
        assert_eq!(calendar.next_fault(1), None);
        assert_eq!(calendar.next_ns(), None);
        calendar.deliver(40, 2);
        assert_eq!(calendar.next_ns(), Some(2));
        assert_eq!(calendar.allowance(), 0);
        assert_eq!(calendar.next_fault(2), Some(Fault::ResetAll));
        assert_eq!(calendar.next_fault(2), None);
        assert_eq!(calendar.allowance(), 50);
        assert_eq!(
            Calendar::new(&[], 0).allowance(),
            usize::MAX,
            "without a cut there is no limit"
        );
    }
}
