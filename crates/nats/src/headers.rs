//! The headers of a message: a first line, which may contain the server's status, and fields.

use std::str;

/// The beginning of every block of headers.
pub(crate) const VERSION: &str = "NATS/1.0";

/// The server's own status for a request, numbered as in HTTP: 503 means no responders. `None` if a subscriber has
/// answered, or the headers are malformed.
pub fn status(headers: &[u8]) -> Option<u16> {
    let first = lines(headers).next()?.strip_prefix(VERSION.as_bytes())?;
    let word = first.strip_prefix(b" ")?.get(..3)?;
    let is_number = word.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(word).ok()?.parse().ok())?
}

/// The first value of a field; its name is case-sensitive.
pub fn value<'h>(headers: &'h [u8], name: &str) -> Option<&'h str> {
    let value = lines(headers).skip(1).find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?;
        rest.strip_prefix(b":")
    });
    str::from_utf8(value?.trim_ascii()).ok()
}

fn lines(headers: &[u8]) -> impl Iterator<Item = &[u8]> {
    headers
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Whether these are valid as a field's name and value, and cannot form another field.
pub(crate) fn is_field((name, value): &(&str, &str)) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    !name.is_empty() && name.bytes().all(is_name) && !value.contains(['\r', '\n'])
}
