//! One value from one serializer's bytes into another's, without building it in memory.

use super::reader::{Open, Reader, Token};
use super::writer::{Result, Writer};
use super::{CborReader, DEPTH_CEILING, JsonReader, MsgPackReader, TranscodeError};
use crate::Serializer;

/// Appends the one value in `bytes` with `writer`, whose output may not exceed `length_max`.
pub(super) fn value<W: Writer>(
    from: Serializer,
    bytes: &[u8],
    length_max: usize,
    writer: &mut W,
) -> Result<()> {
    match from {
        Serializer::Json => whole::<JsonReader<'_>, W>(bytes, length_max, writer),
        Serializer::MsgPack => whole::<MsgPackReader<'_>, W>(bytes, length_max, writer),
        Serializer::Cbor => whole::<CborReader<'_>, W>(bytes, length_max, writer),
    }
}

fn whole<'a, R: Reader<'a>, W: Writer>(
    bytes: &'a [u8],
    length_max: usize,
    writer: &mut W,
) -> Result<()> {
    // The bytes were validated when they arrived, so this does not fail.
    let mut reader = valid(R::new(bytes))?;
    reader.tolerate();
    let left = Left {
        depth: DEPTH_CEILING,
        length_max,
    };
    one(&mut reader, writer, left)?;
    check_length(writer, 0, left)?;
    valid(reader.end())
}

/// How deep a value may still nest, and how long all of them may be.
#[derive(Clone, Copy)]
struct Left {
    depth: usize,
    length_max: usize,
}

/// Whether there is room for that many more bytes.
#[inline]
fn check_length<W: Writer>(writer: &mut W, more: usize, left: Left) -> Result<()> {
    match writer.out().len().saturating_add(more) > left.length_max {
        false => Ok(()),
        true => Err(TranscodeError::TOO_LONG),
    }
}

/// The same for a text, which alone may be all of the message.
#[inline]
fn check_text<W: Writer>(writer: &mut W, text: &str, left: Left) -> Result<()> {
    // No form of it is longer.
    let room = left.length_max.saturating_sub(writer.out().len());
    if text.len() <= room / ESCAPED_BYTES_MAX {
        return Ok(());
    }
    check_length(writer, W::text_len(text), left)
}

/// The bytes that one byte of text may become: `\u0001` in JSON.
const ESCAPED_BYTES_MAX: usize = 6;

fn one<'a, R: Reader<'a>, W: Writer>(reader: &mut R, writer: &mut W, left: Left) -> Result<()> {
    match valid(reader.token())? {
        Token::Null => writer.null(),
        Token::Boolean(flag) => writer.boolean(flag),
        Token::Integer(number) => writer.integer(number)?,
        Token::BigInteger(number) => writer.big_integer(&number)?,
        Token::Float(number) => writer.float(number)?,
        Token::Text(text) => {
            check_text(writer, &text, left)?;
            writer.value_text(&text)?;
        }
        // In JSON a third longer at most.
        Token::Binary(bytes) => {
            check_length(writer, bytes.len(), left)?;
            writer.binary(&bytes);
        }
        Token::List(open) | Token::Dict(open) => collection(reader, writer, open, left)?,
        Token::Foreign(what) => return Err(TranscodeError::new(what)),
    }
    Ok(())
}

fn collection<'a, R: Reader<'a>, W: Writer>(
    reader: &mut R,
    writer: &mut W,
    mut open: Open,
    left: Left,
) -> Result<()> {
    let Some(depth) = left.depth.checked_sub(1) else {
        return Err(TranscodeError::new(
            "too many lists and dictionaries inside one another",
        ));
    };
    let left = Left { depth, ..left };
    let count = open.left.and_then(|count| usize::try_from(count).ok());
    let mut opened = if open.dict {
        writer.open_dict(count)
    } else {
        writer.open_list(count)
    };
    while valid(reader.more(&mut open))? {
        check_length(writer, 0, left)?;
        writer.element(&mut opened);
        if open.dict {
            key(reader, writer, left)?;
            valid(reader.separator())?;
            writer.separator();
        }
        one(reader, writer, left)?;
    }
    writer.close(opened);
    Ok(())
}

const NO_KEY: &str = "a dictionary key that has no usual form as text";

/// Keys are not subject to the convention for binary in JSON: text stays text. Numbers, booleans and null become the
/// text that Crossbar.io makes of them.
fn key<'a, R: Reader<'a>, W: Writer>(reader: &mut R, writer: &mut W, left: Left) -> Result<()> {
    if valid(reader.kind())?.is_text() {
        let text = valid(reader.text())?;
        check_text(writer, &text, left)?;
        writer.text(&text);
        return Ok(());
    }
    if !W::TEXT_KEYS_ONLY {
        return one(reader, writer, left);
    }
    let text = match valid(reader.token())? {
        Token::Integer(number) => number.to_string(),
        Token::BigInteger(number) => number.digits().ok_or_else(|| TranscodeError::new(NO_KEY))?,
        Token::Boolean(flag) => flag.to_string(),
        Token::Null => "null".to_owned(),
        Token::Float(number) if number.is_finite() => format!("{number:?}"),
        Token::Binary(bytes) if W::BINARY_KEYS => {
            check_length(writer, bytes.len(), left)?;
            writer.binary(&bytes);
            return Ok(());
        }
        _ => return Err(TranscodeError::new(NO_KEY)),
    };
    writer.text(&text);
    Ok(())
}

fn valid<T>(read: std::result::Result<T, super::DecodeError>) -> Result<T> {
    read.map_err(|_| TranscodeError::new("bytes that are not a valid value"))
}
