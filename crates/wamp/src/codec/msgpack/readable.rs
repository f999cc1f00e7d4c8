//! Finds values that common receivers cannot read in MessagePack that was walked over.

use super::super::found::{Found, Result};
use super::super::reader::{Kind, Reader as _, Token};
use super::MsgPackReader;
use super::reader::is_usual_key;

/// The extension type of timestamps, as a byte.
const TIMESTAMP: u8 = 0xff;
const NANOSECONDS_MAX: u32 = 999_999_999;

const KEY: &str = "a map key that is not text";
const EXTENSION: &str = "an extension type that receivers do not know";
const BAD_TIMESTAMP: &str =
    "a timestamp of a wrong length or with nanoseconds from 1,000,000,000 on";

/// Looks at every value of one part of a payload.
pub(in super::super) fn check(part: &[u8]) -> Result<()> {
    value(&mut MsgPackReader::new(part)?)
}

fn value(reader: &mut MsgPackReader<'_>) -> Result<()> {
    match reader.kind()? {
        Kind::List => {
            let mut list = reader.open_list()?;
            while reader.more(&mut list)? {
                value(reader)?;
            }
        }
        Kind::Dict => {
            let mut dict = reader.open_dict()?;
            while reader.more(&mut dict)? {
                key(reader)?;
                value(reader)?;
            }
        }
        Kind::Foreign(_) => extension(reader)?,
        _ => reader.skip(0)?,
    }
    Ok(())
}

fn key(reader: &mut MsgPackReader<'_>) -> Result<()> {
    let offset = reader.offset();
    if is_usual_key(reader.peek()?) {
        return Ok(reader.skip(0)?);
    }
    Err(match reader.token()? {
        Token::Integer(key) => Found::with(offset, KEY, format!("map key {key} is not text")),
        Token::Boolean(key) => Found::with(offset, KEY, format!("map key {key} is not text")),
        Token::Float(key) => Found::with(offset, KEY, format!("map key {key} is not text")),
        Token::Null => Found::with(offset, KEY, "map key null is not text".to_owned()),
        _ => Found::new(offset, KEY),
    })
}

fn extension(reader: &mut MsgPackReader<'_>) -> Result<()> {
    let offset = reader.offset();
    let marker = reader.peek()?;
    let length = reader.extension_length(marker)?;
    let Some((&kind, data)) = reader.take(length)?.split_first() else {
        return Ok(());
    };
    if kind != TIMESTAMP {
        let what = format!("extension type {} is not known to receivers", kind as i8);
        return Err(Found::with(offset, EXTENSION, what));
    }
    let nanoseconds = match (data.len(), data.first_chunk()) {
        (4, _) => 0,
        (8, Some(first)) => u32::from_be_bytes(*first) >> 2,
        (12, Some(first)) => u32::from_be_bytes(*first),
        _ => return Err(Found::new(offset, BAD_TIMESTAMP)),
    };
    match nanoseconds <= NANOSECONDS_MAX {
        true => Ok(()),
        false => Err(Found::new(offset, BAD_TIMESTAMP)),
    }
}
