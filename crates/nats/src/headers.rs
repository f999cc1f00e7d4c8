//! The headers of a message: a first line, in which a server may say how a request went, and fields.

use std::str;

/// How every block of headers begins.
pub(crate) const VERSION: &str = "NATS/1.0";

/// What the server says itself about a request, as HTTP numbers it: 503, nobody is there to answer it. `None` where the
/// headers are somebody's who answered, or are none.
pub fn status(headers: &[u8]) -> Option<u16> {
    let first = lines(headers).next()?.strip_prefix(VERSION.as_bytes())?;
    let word = first.strip_prefix(b" ")?.get(..3)?;
    let is_number = word.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(word).ok()?.parse().ok())?
}

/// A field's first value; case counts in its name.
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

/// Whether that may be a field's name and value: they would be more than one field, or another one.
pub(crate) fn is_field((name, value): &(&str, &str)) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    !name.is_empty() && name.bytes().all(is_name) && !value.contains(['\r', '\n'])
}
