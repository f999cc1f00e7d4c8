//! A worker's last log lines, for later requests.

use std::collections::VecDeque;

use crate::process::{Level, Line};

/// Maximum number of lines kept per worker; the oldest are dropped.
pub(crate) const LINES_MAX: usize = 1_000;

/// Maximum bytes kept per worker; the oldest lines are dropped.
const BYTES_MAX: usize = 256 << 10;

/// The last lines of one worker.
#[derive(Default)]
pub(crate) struct WorkerLog {
    lines: VecDeque<Line>,
    bytes: usize,
}

impl WorkerLog {
    pub(crate) fn push(&mut self, line: Line) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
        }
    }

    /// At most `limit` of them, the oldest first.
    pub(crate) fn last(&self, limit: usize) -> impl Iterator<Item = &Line> {
        self.lines
            .iter()
            .skip(self.lines.len().saturating_sub(limit))
    }
}

/// The command line's word for a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: String) -> Line {
        Line {
            level: Level::Info,
            text,
        }
    }

    #[test]
    fn the_oldest_lines_make_room() {
        let mut log = WorkerLog::default();
        for number in 0..LINES_MAX + 5 {
            log.push(line(number.to_string()));
        }
        let texts: Vec<_> = log.last(usize::MAX).map(|line| line.text.clone()).collect();
        assert_eq!(texts.len(), LINES_MAX);
        assert_eq!(texts.first().map(String::as_str), Some("5"));
        assert_eq!(log.last(2).count(), 2);
        assert_eq!(log.last(0).count(), 0);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut log = WorkerLog::default();
        for _ in 0..100 {
            log.push(line("x".repeat(8 << 10)));
        }
        assert_eq!(log.last(usize::MAX).count(), BYTES_MAX / (8 << 10));
        log.push(line("x".repeat(BYTES_MAX + 1)));
        assert_eq!(log.last(usize::MAX).count(), 0);
    }
}
