//! Finds values that common receivers cannot read in CBOR that was walked over: the tags that cbor2 (Autobahn|Python),
//! node-cbor (Autobahn|JS) and cbor-x (wampy) interpret, with content that they refuse.

use super::super::found::{Found, Result};
use super::super::reader::{Reader as _, Token};
use super::dates::{is_date, is_date_time};
use super::tags::{exponent_and_mantissa, integer};
use super::{BINARY, CborReader, DICT, LIST, NEGATIVE, SIMPLE, TAG, TEXT, UNSIGNED};

/// The tags of one payload that were seen so far.
#[derive(Default)]
pub(in super::super) struct Tags {
    /// Values that may be referred to (tag 28), in the order in which they begin.
    shared: u64,
    /// Those that have not ended yet.
    open: Vec<u64>,
}

/// The place of a value: some content of a tag cannot be a key of a map in Python.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// In a key of a map or in a set.
    InKey,
}

/// The least and the most seconds since 1970 that are in the years from 1 to 9999, and days likewise.
const SECONDS: (i128, i128) = (-62_135_596_800, 253_402_300_799);
const DAYS: (i128, i128) = (-719_162, 2_932_896);
/// Exponents of a decimal fraction, and of a bigfloat, which Python turns into a decimal.
const DECIMAL_EXPONENT_MAX: u64 = 1_000_000;
const BINARY_EXPONENT_MAX: u64 = 10_000;
/// Autobahn|JS takes none from this on.
const TAGS_END: u64 = u32::MAX as u64;

const TAG_TOO_LARGE: &str = "a tag from 4,294,967,295 on";
const SIMPLE_VALUE: &str = "a simple value without a meaning";

/// Looks at every value of one part of a payload.
pub(in super::super) fn check(part: &[u8], tags: &mut Tags) -> Result<()> {
    value(&mut CborReader::new(part)?, tags, Place::Anywhere)
}

fn value(reader: &mut CborReader<'_>, seen: &mut Tags, place: Place) -> Result<()> {
    let offset = reader.offset();
    let initial = reader.peek()?;
    match initial >> 5 {
        LIST => {
            let mut list = reader.open_list()?;
            while reader.more(&mut list)? {
                value(reader, seen, place)?;
            }
        }
        DICT => {
            let mut dict = reader.open_dict()?;
            while reader.more(&mut dict)? {
                value(reader, seen, Place::InKey)?;
                value(reader, seen, place)?;
            }
        }
        TAG => {
            let tag = reader.head()?.argument;
            return tagged(reader, seen, place, (tag, offset));
        }
        SIMPLE if matches!(initial & 0x1f, 0..=19 | 24) => {
            return Err(Found::new(offset, SIMPLE_VALUE));
        }
        _ => reader.skip(0)?,
    }
    Ok(())
}

/// Checks the content of a tag whose head is at `offset`.
fn tagged(
    reader: &mut CborReader<'_>,
    seen: &mut Tags,
    place: Place,
    (tag, offset): (u64, usize),
) -> Result<()> {
    let wrong = |expected: &'static str| {
        let what = format!("the content of tag {tag} is not {expected}");
        Found::with(offset, expected, what)
    };
    if tag >= TAGS_END {
        return Err(Found::new(offset, TAG_TOO_LARGE));
    }
    match tag {
        28 => return share(reader, seen, place),
        29 if is_reference(reader, seen, place)? => return Ok(()),
        258 if reader.peek()? >> 5 == LIST => return value(reader, seen, Place::InKey),
        _ => {}
    }
    let Some(expected) = expectation(tag) else {
        return value(reader, seen, place);
    };
    match holds(reader, tag)? {
        true => Ok(()),
        false => Err(wrong(expected)),
    }
}

/// The content that common receivers expect behind a tag, if there is any that they refuse.
fn expectation(tag: u64) -> Option<&'static str> {
    Some(match tag {
        0 => "text with a date and a time of RFC 3339, in the years from 1 to 9999",
        1 => "a number of seconds in the years from 1 to 9999",
        2 | 3 => "a byte string",
        4 | 5 => "a list of an exponent and a mantissa, within bounds",
        25 => "in a form that all receivers know (a reference to a string)",
        29 => "the number of a shared value that is complete, outside of keys and sets",
        30 => "a list of two integers, of which the second is not 0",
        35 => "a regular expression without brackets, quantifiers and backslashes",
        36 => "text",
        37 => "a byte string of 16 bytes",
        52 => "an IPv4 address, network or interface",
        54 => "an IPv6 address, network or interface",
        64..=87 => "a byte string of whole elements",
        100 => "a number of days in the years from 1 to 9999",
        258 => "a list",
        260 => "an IP or MAC address",
        261 => "a map of one IP address and its prefix length",
        1_004 => "text with a date of RFC 3339",
        43_000 => "a list of two numbers",
        _ => return None,
    })
}

/// Whether the next value is one that receivers expect behind the tag.
fn holds(reader: &mut CborReader<'_>, tag: u64) -> Result<bool> {
    Ok(match tag {
        0 => text(reader)?.is_some_and(|text| is_date_time(&text)),
        1 => is_seconds(reader)?,
        2 | 3 | 64 => binary(reader)?.is_some(),
        4 => exponent_and_mantissa(reader)?
            .is_some_and(|(exponent, _)| exponent.unsigned_abs() <= DECIMAL_EXPONENT_MAX),
        5 => exponent_and_mantissa(reader)?
            .is_some_and(|(exponent, _)| exponent.unsigned_abs() <= BINARY_EXPONENT_MAX),
        30 => is_rational(reader)?,
        35 => text(reader)?.is_some_and(|text| is_plain_expression(&text)),
        36 => text(reader)?.is_some(),
        37 => binary(reader)?.is_some_and(|id| id == 16),
        52 => is_network(reader, 4)?,
        54 => is_network(reader, 16)?,
        65..=87 => binary(reader)?.is_some_and(|bytes| bytes % element_bytes(tag) == 0),
        100 => is_between(reader, DAYS)?,
        260 => binary(reader)?.is_some_and(|bytes| matches!(bytes, 4 | 6 | 16)),
        261 => is_address_and_prefix(reader)?,
        1_004 => text(reader)?.is_some_and(|text| is_date(&text)),
        43_000 => is_complex(reader)?,
        _ => false,
    })
}

/// A value that may be referred to when it is complete.
fn share(reader: &mut CborReader<'_>, seen: &mut Tags, place: Place) -> Result<()> {
    seen.open.push(seen.shared);
    seen.shared += 1;
    value(reader, seen, place)?;
    seen.open.pop();
    Ok(())
}

fn is_reference(reader: &mut CborReader<'_>, seen: &Tags, place: Place) -> Result<bool> {
    if place == Place::InKey || reader.peek()? >> 5 != UNSIGNED {
        return Ok(false);
    }
    let number = reader.head()?.argument;
    Ok(number < seen.shared && !seen.open.contains(&number))
}

fn text(reader: &mut CborReader<'_>) -> Result<Option<String>> {
    Ok(match reader.peek()? >> 5 {
        TEXT => Some(reader.text()?.into_owned()),
        _ => None,
    })
}

/// The length of the byte string that comes next.
fn binary(reader: &mut CborReader<'_>) -> Result<Option<usize>> {
    if reader.peek()? >> 5 != BINARY {
        return Ok(None);
    }
    Ok(match reader.token()? {
        Token::Binary(bytes) => Some(bytes.len()),
        _ => None,
    })
}

fn is_seconds(reader: &mut CborReader<'_>) -> Result<bool> {
    if reader.peek()? >> 5 != SIMPLE {
        return is_between(reader, SECONDS);
    }
    Ok(match reader.token()? {
        Token::Float(seconds) => (SECONDS.0 as f64..=SECONDS.1 as f64).contains(&seconds),
        _ => false,
    })
}

fn is_between(reader: &mut CborReader<'_>, (least, most): (i128, i128)) -> Result<bool> {
    if !matches!(reader.peek()? >> 5, UNSIGNED | NEGATIVE) {
        return Ok(false);
    }
    let number = integer(reader)?.and_then(|number| number.small());
    Ok(number.is_some_and(|number| (least..=most).contains(&number)))
}

fn is_rational(reader: &mut CborReader<'_>) -> Result<bool> {
    is_pair(reader, |reader, is_second| {
        let number = integer(reader)?;
        Ok(number.is_some_and(|number| !is_second || number.small() != Some(0)))
    })
}

fn is_complex(reader: &mut CborReader<'_>) -> Result<bool> {
    is_pair(reader, |reader, _| {
        if matches!(reader.peek()? >> 5, UNSIGNED | NEGATIVE) {
            return Ok(integer(reader)?.is_some());
        }
        let is_float = reader.peek()? >> 5 == SIMPLE;
        Ok(is_float && matches!(reader.token()?, Token::Float(_)))
    })
}

/// Whether a list of two elements comes next and `holds` is true of both; its flag marks the second.
fn is_pair<'a>(
    reader: &mut CborReader<'a>,
    mut holds: impl FnMut(&mut CborReader<'a>, bool) -> Result<bool>,
) -> Result<bool> {
    if reader.peek()? >> 5 != LIST {
        return Ok(false);
    }
    let mut list = reader.open_list()?;
    for is_second in [false, true] {
        if !reader.more(&mut list)? || !holds(reader, is_second)? {
            return Ok(false);
        }
    }
    Ok(!reader.more(&mut list)?)
}

/// Python's and JavaScript's expressions differ, and neither can be compiled here: an expression without characters
/// that may be incomplete is valid in both.
fn is_plain_expression(expression: &str) -> bool {
    !expression.contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '|', '\\'])
}

/// Bytes of one element of a typed array (RFC 8746, section 2.1).
fn element_bytes(tag: u64) -> usize {
    let is_float = tag & 0b1_0000 != 0;
    let width = 1 << (tag & 0b11);
    if is_float { 2 * width } else { width }
}

/// An address, `[prefix length, address without its zeros]` or `[address, prefix length]`.
fn is_network(reader: &mut CborReader<'_>, width: usize) -> Result<bool> {
    let prefix = |reader: &mut CborReader<'_>| -> Result<Option<usize>> {
        let is_number = reader.peek()? >> 5 == UNSIGNED;
        let number = if is_number { integer(reader)? } else { None };
        let number = number.and_then(|number| usize::try_from(number.small()?).ok());
        Ok(number.filter(|length| *length <= 8 * width))
    };
    if reader.peek()? >> 5 == BINARY {
        return Ok(binary(reader)? == Some(width));
    }
    let mut first = None;
    is_pair(reader, |reader, is_second| {
        if !is_second {
            if reader.peek()? >> 5 == BINARY {
                return Ok(binary(reader)? == Some(width));
            }
            first = prefix(reader)?;
            return Ok(first.is_some());
        }
        let Some(length) = first else {
            return Ok(prefix(reader)?.is_some());
        };
        if reader.peek()? >> 5 != BINARY {
            return Ok(false);
        }
        let Token::Binary(bytes) = reader.token()? else {
            return Ok(false);
        };
        Ok(bytes.len() <= width && has_no_host(&bytes, length))
    })
}

/// Whether all bits behind the prefix are 0.
fn has_no_host(address: &[u8], prefix: usize) -> bool {
    address.iter().enumerate().all(|(index, byte)| {
        let kept = prefix.saturating_sub(8 * index).min(8);
        u32::from(*byte) << kept & 0xff == 0
    })
}

fn is_address_and_prefix(reader: &mut CborReader<'_>) -> Result<bool> {
    if reader.peek()? >> 5 != DICT {
        return Ok(false);
    }
    let mut dict = reader.open_dict()?;
    if !reader.more(&mut dict)? {
        return Ok(false);
    }
    let Some(width @ (4 | 16)) = binary(reader)? else {
        return Ok(false);
    };
    if reader.peek()? >> 5 != UNSIGNED {
        return Ok(false);
    }
    let prefix = reader.head()?.argument;
    Ok(prefix <= 8 * width as u64 && !reader.more(&mut dict)?)
}
