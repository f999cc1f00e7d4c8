//! A message that grows while it waits to be sent.
//!
//! Consecutive payloads for one subject leave as one message, because a server handles each message separately, however
//! short.

/// A PUB in a buffer, whose payload can be extended while nothing follows it.
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    /// Its position in the buffer.
    start: usize,
    end: usize,
}

/// Digits of a size, padded with zeros, so that its position stays fixed.
const DIGITS: usize = 8;

impl Growing {
    /// Appends PUB with a payload of these parts.
    pub fn begin(subject: &str, parts: [&[u8]; 2], out: &mut Vec<u8>) -> Self {
        debug_assert!(crate::is_subject(subject), "{subject}");
        let start = out.len();
        let size = size(parts);
        out.reserve(head_bytes(subject) + size + 2);
        write_head(subject, size, out);
        Self::end(start, parts, out)
    }

    /// Extends the payload up to `bytes_max`. Fails if the buffer has changed since, or the subject differs.
    pub fn grow(
        &mut self,
        subject: &str,
        parts: [&[u8]; 2],
        payload_bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let head = head_bytes(subject);
        let Some(before) = (self.end - self.start).checked_sub(head + 2) else {
            return false;
        };
        let after = before + size(parts);
        let is_last = out.len() == self.end && is_head(&out[self.start..], subject, before);
        if !is_last || after > payload_bytes_max {
            return false;
        }
        let digits_end = self.start + head - 2;
        out[digits_end - DIGITS..digits_end].copy_from_slice(&digits(after));
        out.truncate(self.end - 2);
        *self = Self::end(self.start, parts, out);
        true
    }

    fn end(start: usize, parts: [&[u8]; 2], out: &mut Vec<u8>) -> Self {
        for part in parts {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(b"\r\n");
        let end = out.len();
        Self { start, end }
    }
}

fn size(parts: [&[u8]; 2]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

fn head_bytes(subject: &str) -> usize {
    "PUB ".len() + subject.len() + 1 + DIGITS + 2
}

fn write_head(subject: &str, size: usize, out: &mut Vec<u8>) {
    for part in [b"PUB ", subject.as_bytes(), b" ", &digits(size), b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Whether bytes begin with the output of [`write_head`].
fn is_head(bytes: &[u8], subject: &str, size: usize) -> bool {
    let rest = bytes.strip_prefix(b"PUB ");
    let rest = rest.and_then(|rest| rest.strip_prefix(subject.as_bytes()));
    let rest = rest.and_then(|rest| rest.strip_prefix(b" "));
    let rest = rest.and_then(|rest| rest.strip_prefix(&digits(size)));
    rest.is_some_and(|rest| rest.starts_with(b"\r\n"))
}

fn digits(mut size: usize) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit += (size % 10) as u8;
        size /= 10;
    }
    debug_assert_eq!(size, 0, "no server takes so much");
    digits
}
