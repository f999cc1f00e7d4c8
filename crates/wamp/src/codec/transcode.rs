//! One value from one serializer's octets into another's, without building it in memory.

use super::reader::{Open, Reader, Token};
use super::writer::{Result, Writer};
use super::{CborReader, DEPTH_CEILING, JsonReader, MsgPackReader, TranscodeError};
use crate::Serializer;

/// Appends the one value in `octets` with `writer`.
pub(super) fn value<W: Writer>(from: Serializer, octets: &[u8], writer: &mut W) -> Result<()> {
    match from {
        Serializer::Json => whole::<JsonReader<'_>, W>(octets, writer),
        Serializer::MsgPack => whole::<MsgPackReader<'_>, W>(octets, writer),
        Serializer::Cbor => whole::<CborReader<'_>, W>(octets, writer),
    }
}

fn whole<'a, R: Reader<'a>, W: Writer>(octets: &'a [u8], writer: &mut W) -> Result<()> {
    // The octets were validated where they came in, so this does not fail.
    let mut reader = valid(R::new(octets))?;
    one(&mut reader, writer, DEPTH_CEILING)?;
    valid(reader.end())
}

fn one<'a, R: Reader<'a>, W: Writer>(
    reader: &mut R,
    writer: &mut W,
    depth_left: usize,
) -> Result<()> {
    match valid(reader.token())? {
        Token::Null => writer.null(),
        Token::Boolean(flag) => writer.boolean(flag),
        Token::Integer(number) => writer.integer(number)?,
        Token::Float(number) => writer.float(number)?,
        Token::Text(text) => writer.text(&text),
        Token::Binary(octets) => writer.binary(&octets),
        Token::List(open) | Token::Dict(open) => collection(reader, writer, open, depth_left)?,
        Token::Foreign(what) => return Err(TranscodeError::new(what)),
    }
    Ok(())
}

fn collection<'a, R: Reader<'a>, W: Writer>(
    reader: &mut R,
    writer: &mut W,
    mut open: Open,
    depth_left: usize,
) -> Result<()> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err(TranscodeError::new(
            "too many lists and dictionaries inside one another",
        ));
    };
    let count = open.left.and_then(|count| usize::try_from(count).ok());
    let mut opened = if open.dict {
        writer.open_dict(count)
    } else {
        writer.open_list(count)
    };
    while valid(reader.more(&mut open))? {
        writer.element(&mut opened);
        if open.dict {
            key(reader, writer, depth_left)?;
            valid(reader.separator())?;
            writer.separator();
        }
        one(reader, writer, depth_left)?;
    }
    writer.close(opened);
    Ok(())
}

/// Keys are not subject to the convention for binary in JSON: text stays text.
fn key<'a, R: Reader<'a>, W: Writer>(
    reader: &mut R,
    writer: &mut W,
    depth_left: usize,
) -> Result<()> {
    if valid(reader.kind())?.is_text() {
        writer.text(&valid(reader.text())?);
        return Ok(());
    }
    if W::TEXT_KEYS_ONLY {
        return Err(TranscodeError::new(
            "a dictionary key that is not text, which JSON cannot have",
        ));
    }
    one(reader, writer, depth_left)
}

fn valid<T>(read: std::result::Result<T, super::DecodeError>) -> Result<T> {
    read.map_err(|_| TranscodeError::new("octets that are not a valid value"))
}
