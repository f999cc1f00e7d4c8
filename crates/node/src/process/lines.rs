//! A child's output as lines of limited length and number.

use std::time::{Duration, Instant};

/// Maximum length of a line; a longer one is cut, so that an endless line costs no memory.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Per child; further lines are counted and dropped.
pub const LINES_PER_SECOND_MAX: u32 = 1_000;

const SECOND: Duration = Duration::from_secs(1);

/// One line of a child's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    pub text: String,
}

/// A line's severity, from its sd-daemon(3) prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// A raw line. Most lines of a flood are dropped in this form.
#[derive(Clone, Copy)]
pub(super) struct RawLine<'a> {
    bytes: &'a [u8],
    is_cut: bool,
}

impl RawLine<'_> {
    /// Decodes the text, and the level from a prefix `<0>` to `<7>`.
    pub(super) fn read(self) -> Line {
        let (level, rest) = match self.bytes {
            [b'<', b'0'..=b'3', b'>', rest @ ..] => (Level::Error, rest),
            [b'<', b'4', b'>', rest @ ..] => (Level::Warn, rest),
            [b'<', b'5' | b'6', b'>', rest @ ..] => (Level::Info, rest),
            [b'<', b'7', b'>', rest @ ..] => (Level::Debug, rest),
            rest => (Level::Info, rest),
        };
        let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
        let mut text = String::from_utf8_lossy(rest).into_owned();
        if self.is_cut {
            text.push_str(" … (the line goes on; cut here)");
        }
        Line { level, text }
    }
}

/// Splits one stream's bytes into lines.
///
/// Drive it: [`Splitter::handle`] with each read, then [`Splitter::finish`] for a last line without an end.
#[derive(Default)]
pub(super) struct Splitter {
    line: Vec<u8>,
    /// The beginning of the line was passed on already, cut.
    is_cut: bool,
}

impl Splitter {
    pub(super) fn handle(&mut self, bytes: &[u8], mut give: impl FnMut(RawLine<'_>)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_end) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if !self.is_cut {
                let room = LINE_BYTES_MAX - self.line.len();
                self.line.extend_from_slice(&text[..text.len().min(room)]);
                self.is_cut = text.len() > room;
                if self.is_cut || is_end {
                    give(self.raw());
                }
            }
            if is_end {
                self.is_cut = false;
                self.line.clear();
            }
        }
        // An idle child holds no buffer.
        if self.line.is_empty() && self.line.capacity() > 1024 {
            self.line = Vec::new();
        }
    }

    pub(super) fn finish(&mut self, mut give: impl FnMut(RawLine<'_>)) {
        if !self.is_cut && !self.line.is_empty() {
            give(self.raw());
        }
        *self = Self::default();
    }

    fn raw(&self) -> RawLine<'_> {
        RawLine {
            bytes: &self.line,
            is_cut: self.is_cut,
        }
    }
}

/// Limits the lines per second, and counts the dropped ones.
///
/// Drive it: [`Rate::admit`] for each line; [`Rate::next_report`] when it is due, and at the end.
#[derive(Default)]
pub(super) struct Rate {
    window_began: Option<Instant>,
    lines: u32,
    lines_left_out: u64,
}

impl Rate {
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        if self.window_began.is_none_or(|began| now >= began + SECOND) && self.lines_left_out == 0 {
            self.window_began = Some(now);
            self.lines = 0;
        }
        if self.lines < LINES_PER_SECOND_MAX {
            self.lines += 1;
            return true;
        }
        self.lines_left_out += 1;
        false
    }

    /// The report of dropped lines, if any; it begins the next window.
    pub(super) fn next_report(&mut self) -> Option<Line> {
        let lines_left_out = std::mem::take(&mut self.lines_left_out);
        if lines_left_out == 0 {
            return None;
        }
        self.window_began = None;
        Some(Line {
            level: Level::Warn,
            text: format!(
                "{lines_left_out} lines left out: more than {LINES_PER_SECOND_MAX} in a second"
            ),
        })
    }

    /// The time of the next report, if one is due.
    pub(super) fn report_due(&self) -> Option<Instant> {
        let began = self.window_began.filter(|_| self.lines_left_out > 0)?;
        Some(began + SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reads: &[&[u8]], expected: &[(Level, &str)]) {
        let (mut splitter, mut lines) = (Splitter::default(), Vec::new());
        for read in reads {
            splitter.handle(read, |line| lines.push(line.read()));
        }
        splitter.finish(|line| lines.push(line.read()));
        let lines: Vec<_> = lines.iter().map(|l| (l.level, l.text.as_str())).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn bytes_to_lines() {
        use Level::{Debug, Error, Info, Warn};
        check(&[b""], &[]);
        check(
            &[b"one\ntw", b"o\r\n\nthree"],
            &[(Info, "one"), (Info, "two"), (Info, ""), (Info, "three")],
        );
        check(
            &[b"<0>a\n<3>b\n<4>c\n<5>d\n<6>e\n<", b"7>f\n<8>g\n<6 >h\n"],
            &[
                (Error, "a"),
                (Error, "b"),
                (Warn, "c"),
                (Info, "d"),
                (Info, "e"),
                (Debug, "f"),
                (Info, "<8>g"),
                (Info, "<6 >h"),
            ],
        );
        check(&[b"caf\xc3", b"\xa9 \xff\n"], &[(Info, "café \u{fffd}")]);
    }

    #[test]
    fn a_long_line_is_cut_once() {
        let full = vec![b'x'; LINE_BYTES_MAX];
        let text = "x".repeat(LINE_BYTES_MAX);
        let cut = format!("{text} … (the line goes on; cut here)");
        check(
            &[&full, b"\nnext\n"],
            &[(Level::Info, &text), (Level::Info, "next")],
        );
        check(
            &[&full, b"yy", &full, &full, b"\n<3>next\n"],
            &[(Level::Info, &cut), (Level::Error, "next")],
        );
        check(&[&full, &full], &[(Level::Info, &cut)]);
    }

    #[test]
    fn lines_beyond_the_rate_are_counted() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let admitted = (0..2_500).filter(|_| rate.admit(now)).count();
        assert_eq!(admitted, 1_000);
        assert_eq!(rate.report_due(), Some(now + SECOND));
        let report = rate.next_report().expect("lines were left out");
        assert_eq!(
            report.text,
            "1500 lines left out: more than 1000 in a second"
        );
        assert_eq!((rate.next_report(), rate.report_due()), (None, None));
        assert!(rate.admit(now + SECOND));
        let later = (0..1_000).filter(|_| rate.admit(now + 3 * SECOND)).count();
        assert_eq!(
            later, 1_000,
            "a second that was quiet is not held against it"
        );
    }
}
