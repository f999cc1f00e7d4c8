//! Writing JSON.

use std::io::Write as _;

use super::super::TranscodeError;
use super::super::big::BigInteger;
use super::super::writer::{Opened, Result, Writer};
use super::{TOO_MANY_DIGITS, number, string};

pub(in super::super) struct JsonWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Squares of the lengths of the integers beyond 64 bits so far: the cost of their digits.
    digits_work: usize,
}

/// As much as some 300 of the longest of them.
const DIGITS_WORK_MAX: usize = 1 << 30;

impl<'o> JsonWriter<'o> {
    pub(in super::super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            digits_work: 0,
        }
    }

    fn open(&mut self, dict: bool) -> Opened {
        let start = self.out.len();
        self.out.push(if dict { b'{' } else { b'[' });
        Opened {
            start,
            count: 0,
            announced: None,
            dict,
        }
    }
}

impl Writer for JsonWriter<'_> {
    const TEXT_KEYS_ONLY: bool = true;
    const BINARY_KEYS: bool = false;

    fn text_len(text: &str) -> usize {
        string::escaped_len(text)
    }

    fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    fn open_list(&mut self, _count: Option<usize>) -> Opened {
        self.open(false)
    }

    fn open_dict(&mut self, _count: Option<usize>) -> Opened {
        self.open(true)
    }

    fn element(&mut self, opened: &mut Opened) {
        if opened.count > 0 {
            self.out.push(b',');
        }
        opened.count += 1;
    }

    fn separator(&mut self) {
        self.out.push(b':');
    }

    fn close(&mut self, opened: Opened) {
        self.out.push(if opened.dict { b'}' } else { b']' });
    }

    fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    fn boolean(&mut self, flag: bool) {
        self.out
            .extend_from_slice(if flag { b"true" } else { b"false" });
    }

    fn unsigned(&mut self, number: u64) {
        number::write_unsigned(number, self.out);
    }

    fn integer(&mut self, number: i128) -> Result<()> {
        if let Ok(number) = u64::try_from(number) {
            self.unsigned(number);
        } else {
            // Writing to a vector does not fail.
            let _ = write!(self.out, "{number}");
        }
        Ok(())
    }

    fn big_integer(&mut self, number: &BigInteger) -> Result<()> {
        let bytes = number.magnitude().len();
        self.digits_work = self.digits_work.saturating_add(bytes.saturating_mul(bytes));
        if self.digits_work > DIGITS_WORK_MAX {
            return Err(TranscodeError::TOO_LONG);
        }
        let digits = number.digits();
        let digits = digits.ok_or_else(|| TranscodeError::new(TOO_MANY_DIGITS))?;
        self.out.extend_from_slice(digits.as_bytes());
        Ok(())
    }

    fn float(&mut self, number: f64) -> Result<()> {
        if !number.is_finite() {
            return Err(TranscodeError::new(
                "JSON has no numbers that are not finite",
            ));
        }
        // The debug form is the shortest that reads back as the same double, and keeps `1.0`
        // apart from `1`. Writing to a vector does not fail.
        let _ = write!(self.out, "{number:?}");
        Ok(())
    }

    fn text(&mut self, text: &str) {
        string::write(text, self.out);
    }

    /// Receivers take text that begins with U+0000 for binary: another character replaces the U+0000.
    fn own_text(&mut self, text: &str) {
        match text.strip_prefix('\0') {
            Some(rest) => string::write(&format!("\u{fffd}{rest}"), self.out),
            None => self.text(text),
        }
    }

    /// Likewise, and nothing stands for it.
    fn value_text(&mut self, text: &str) -> Result<()> {
        if text.starts_with('\0') {
            return Err(TranscodeError::new("JSON has no text that begins with NUL"));
        }
        self.text(text);
        Ok(())
    }

    fn binary(&mut self, bytes: &[u8]) {
        string::write_binary(bytes, self.out);
    }
}
