//! The last lines of the log, for operators who read them over the management realm.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::Level;

/// Maximum number of lines; older ones are dropped.
const LINES_MAX: usize = 1_000;
/// Maximum size of all lines, in bytes; older ones are dropped.
const BYTES_MAX: usize = 256 << 10;
/// Maximum size of a line, in bytes; its end is dropped.
const LINE_BYTES_MAX: usize = 4 << 10;

/// A line with its number and the name of its level.
pub(crate) type Numbered = (u64, &'static str, String);

/// A bounded copy of the log. Lines are numbered from 1 on.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    lines: VecDeque<(Level, String)>,
    bytes: usize,
    /// The number of the last line.
    last: u64,
}

impl Recent {
    pub(crate) fn push(&self, level: Level, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let end = line.len().min(LINE_BYTES_MAX);
        let line = String::from_utf8_lossy(&line[..end]).into_owned();
        let mut kept = self.lines();
        kept.bytes += line.len();
        kept.lines.push_back((level, line));
        kept.last += 1;
        while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
            let Some((_, oldest)) = kept.lines.pop_front() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
    }

    /// At most `limit` lines with their numbers: the first ones after the line of that number, or the last ones.
    pub(crate) fn lines_after(&self, after: Option<u64>, limit: usize) -> Vec<Numbered> {
        let kept = self.lines();
        let first = kept.last + 1 - kept.lines.len() as u64;
        let skipped = match after {
            Some(after) => (after.saturating_add(1)).saturating_sub(first),
            None => (kept.lines.len() as u64).saturating_sub(limit as u64),
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let numbered = (first..).zip(&kept.lines).skip(skipped).take(limit);
        numbered
            .map(|(number, (level, line))| (number, name(*level), line.clone()))
            .collect()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a level on a command line.
fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let recent = Recent::default();
        assert!(recent.lines_after(None, 9).is_empty());
        for number in 1..=LINES_MAX + 2 {
            recent.push(Level::WARN, format!("line {number}\n").as_bytes());
        }
        let check = |after: Option<u64>, limit: usize, expected: &[u64]| {
            let found = recent.lines_after(after, limit);
            let numbers: Vec<u64> = found.iter().map(|(number, ..)| *number).collect();
            assert_eq!(numbers, expected, "{after:?} {limit}");
            for (number, level, line) in found {
                assert_eq!((level, line), ("warn", format!("line {number}")));
            }
        };
        check(None, 2, &[1001, 1002]);
        check(Some(0), 2, &[3, 4]);
        check(Some(3), 1, &[4]);
        check(Some(1000), 9, &[1001, 1002]);
        check(Some(1002), 9, &[]);
        check(Some(u64::MAX), 9, &[]);
    }

    #[test]
    fn a_huge_line_is_cut_and_drops_no_more_than_its_size() {
        let recent = Recent::default();
        recent.push(Level::INFO, b"first\n");
        recent.push(Level::INFO, &[b'x'; 1 << 20]);
        let found = recent.lines_after(None, 9);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].2.len(), LINE_BYTES_MAX);
        for _ in 0..1000 {
            recent.push(Level::INFO, &[b'x'; LINE_BYTES_MAX]);
        }
        assert_eq!(
            recent.lines_after(Some(0), 1000).len(),
            BYTES_MAX / LINE_BYTES_MAX
        );
    }
}
