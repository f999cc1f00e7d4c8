//! The inside of JSON strings: runs without anything special, escapes, and binary.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::super::DecodeError;
use super::super::reader::Result;
use super::plain::plain_length;

/// Reads the escape whose backslash is at `offset`; returns its character and its length.
pub(super) fn escape(bytes: &[u8], offset: usize) -> Result<(char, usize)> {
    let plain = match bytes.get(offset + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(bytes, offset),
        _ => {
            return Err(DecodeError::unexpected(
                offset,
                "an escape",
                "a lone backslash",
            ));
        }
    };
    Ok((plain, 2))
}

fn unicode_escape(bytes: &[u8], offset: usize) -> Result<(char, usize)> {
    let first = hex_unit(bytes, offset)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let lone = || DecodeError::lone_surrogate(offset);
    if first >= 0xdc00 || bytes.get(offset + 6..offset + 8) != Some(b"\\u") {
        return Err(lone());
    }
    let second = hex_unit(bytes, offset + 6)?;
    if !(0xdc00..=0xdfff).contains(&second) {
        return Err(lone());
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Ok((char::from_u32(code).ok_or_else(lone)?, 12))
}

/// The four hexadecimal digits of the `\u` at `offset`.
pub(super) fn hex_unit(bytes: &[u8], offset: usize) -> Result<u32> {
    let wrong = || DecodeError::unexpected(offset, "four hexadecimal digits", "something else");
    let digits = bytes.get(offset + 2..offset + 6).ok_or_else(wrong)?;
    digits.iter().try_fold(0, |unit, &digit| {
        char::from(digit)
            .to_digit(16)
            .map(|value| unit * 16 + value)
            .ok_or_else(wrong)
    })
}

/// The bytes that `text` stands for when it is binary by WAMP's convention for JSON: U+0000 and
/// Base64 (WAMP "Binary support in JSON"). Text that only begins like it is text.
pub(super) fn binary(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.strip_prefix('\0')?).ok()
}

/// Appends the JSON string that stands for `bytes`.
pub(super) fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"\\u0000");
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = BASE64
        .encode_slice(bytes, &mut out[start..])
        .unwrap_or_default();
    debug_assert_eq!(start + written, out.len());
    out.push(b'"');
}

/// Appends `text` as a JSON string.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_length(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(&special) = rest.get(plain) else {
            break;
        };
        write_escape(special, out);
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

/// Bytes of `text` as [`write`] writes it, without its quotes.
pub(super) fn escaped_len(text: &str) -> usize {
    let more = |byte: &u8| match byte {
        b'"' | b'\\' | 0x08 | 0x0c | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + text.as_bytes().iter().map(more).sum::<usize>()
}

fn write_escape(special: u8, out: &mut Vec<u8>) {
    let short = match special {
        b'"' | b'\\' => special,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digits = [
                DIGITS[usize::from(special >> 4)],
                DIGITS[usize::from(special & 15)],
            ];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The text between `start` and the closing quote before `end`, escapes resolved.
pub(super) fn unescape(text: &str, start: usize, end: usize) -> Result<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let mut unescaped = String::with_capacity(end - start);
    let mut at = start;
    loop {
        let plain = plain_length(&bytes[at..end]);
        unescaped.push_str(&text[at..at + plain]);
        at += plain;
        if at == end {
            return Ok(Cow::Owned(unescaped));
        }
        let (character, length) = escape(bytes, at)?;
        unescaped.push(character);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_length_is_computed_before() {
        let all: String = (0..0x180).filter_map(char::from_u32).collect();
        for text in ["", "plain", &all, "\u{1}\u{1}", "\"\n"] {
            let mut out = Vec::new();
            write(text, &mut out);
            assert_eq!(escaped_len(text) + 2, out.len(), "{text:?}");
        }
    }

    #[test]
    fn binary_is_told_from_text() {
        assert_eq!(binary("\0"), Some(vec![]));
        assert_eq!(binary("\0AAE="), Some(vec![0, 1]));
        for text in [
            "", "AAE=", "\0AAE", "\0AAE= ", "\0AAF=", "\0A-E=", "\0\0", "x\0AAE=",
        ] {
            assert_eq!(binary(text), None, "{text:?}");
        }
    }
}
