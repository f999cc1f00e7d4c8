//! Whole values, for dictionaries off the hot path and for applications.

use super::reader::{Reader, Result, Token, enter};
use super::writer::{self, Writer};
use super::{DecodeError, TranscodeError};
use crate::{Dict, Value};

/// How much a value may hold.
pub(super) struct Room {
    /// Lists and dictionaries that may still be inside one another.
    pub(super) depth_left: usize,
    /// Maximum number of values in all, nested ones included. A value in memory takes many times its encoded bytes, so
    /// this bounds the memory that a peer can make a router allocate before it is welcomed.
    pub(super) values_left: usize,
    values_max: usize,
}

impl Room {
    pub(super) fn new(depth_left: usize, values_max: usize) -> Self {
        Self {
            depth_left,
            values_left: values_max,
            values_max,
        }
    }

    /// Counts one value found at `offset`.
    pub(super) fn take(&mut self, offset: usize) -> Result<()> {
        match self.values_left.checked_sub(1) {
            Some(left) => self.values_left = left,
            None => return Err(DecodeError::too_many_values(offset, self.values_max)),
        }
        Ok(())
    }
}

pub(super) fn read<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<Value> {
    let offset = reader.value_offset();
    room.take(offset)?;
    if reader.null() {
        return Ok(Value::Null);
    }
    Ok(match reader.token()? {
        Token::Null => Value::Null,
        Token::Boolean(flag) => Value::Bool(flag),
        Token::Integer(number) => Value::Integer(number),
        Token::BigInteger(number) => Value::Float(number.to_f64()),
        Token::Float(number) => Value::Float(number),
        Token::Text(text) => Value::String(text.into_owned()),
        Token::Binary(bytes) => Value::Binary(bytes.into_owned()),
        Token::List(mut list) => {
            let outside = room.depth_left;
            room.depth_left = enter(outside, offset)?;
            let mut values = Vec::new();
            while reader.more(&mut list)? {
                values.push(read(reader, room)?);
            }
            room.depth_left = outside;
            Value::List(values)
        }
        Token::Dict(mut open) => {
            let outside = room.depth_left;
            room.depth_left = enter(outside, offset)?;
            let mut dict = Dict::new();
            while reader.more(&mut open)? {
                let key = reader.text()?.into_owned();
                reader.separator()?;
                dict.push((key, read(reader, room)?));
            }
            room.depth_left = outside;
            Value::Dict(dict)
        }
        Token::Foreign(what) => {
            return Err(DecodeError::unexpected(
                offset,
                "value of every serializer",
                what,
            ));
        }
    })
}

/// The treatment of a value that the serializer cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unrepresentable {
    Fails,
    IsNull,
}

pub(super) fn write<W: Writer>(
    writer: &mut W,
    value: &Value,
    unrepresentable: Unrepresentable,
) -> writer::Result<()> {
    let written = match value {
        Value::Null => {
            writer.null();
            Ok(())
        }
        Value::Bool(flag) => {
            writer.boolean(*flag);
            Ok(())
        }
        Value::Integer(number) => writer.integer(*number),
        Value::Float(number) => writer.float(*number),
        Value::String(text) => {
            writer.own_text(text);
            Ok(())
        }
        Value::Binary(bytes) => {
            writer.binary(bytes);
            Ok(())
        }
        Value::List(values) => {
            let mut list = writer.open_list(Some(values.len()));
            for value in values {
                writer.element(&mut list);
                write(writer, value, unrepresentable)?;
            }
            writer.close(list);
            Ok(())
        }
        Value::Dict(dict) => return write_dict(writer, dict, unrepresentable),
    };
    match (written, unrepresentable) {
        (Err(TranscodeError { .. }), Unrepresentable::IsNull) => {
            writer.null();
            Ok(())
        }
        (written, _) => written,
    }
}

pub(super) fn write_dict<W: Writer>(
    writer: &mut W,
    dict: &Dict,
    unrepresentable: Unrepresentable,
) -> writer::Result<()> {
    let mut open = writer.open_dict(Some(dict.len()));
    for (key, value) in dict {
        writer.element(&mut open);
        writer.text(key);
        writer.separator();
        write(writer, value, unrepresentable)?;
    }
    writer.close(open);
    Ok(())
}
