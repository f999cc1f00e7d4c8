//! Values of tables as RabbitMQ's reply texts print them.

use std::borrow::Cow;
use std::fmt::Write as _;

use crosstie_amqp::Value;

/// The name of a value's kind: `signedint`.
pub(crate) fn kind(value: Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::I8(_) => "byte",
        Value::U8(_) => "unsignedbyte",
        Value::I16(_) => "short",
        Value::U16(_) => "unsignedshort",
        Value::I32(_) => "signedint",
        Value::U32(_) => "unsignedint",
        Value::I64(_) => "long",
        Value::F32(_) => "float",
        Value::F64(_) => "double",
        Value::Decimal { .. } => "decimal",
        Value::LongString(_) => "longstr",
        Value::ByteArray(_) => "binary",
        Value::Timestamp(_) => "timestamp",
        Value::Array(_) => "array",
        Value::Table(_) => "table",
        Value::Void => "void",
    }
}

/// A value as plain text: a string without quotes.
pub(super) fn text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::LongString(bytes) | Value::ByteArray(bytes) => String::from_utf8_lossy(bytes),
        value => term(value).into(),
    }
}

/// A value as an Erlang term.
pub(crate) fn term(value: Value<'_>) -> String {
    let mut out = String::new();
    write_term(value, &mut out);
    out
}

/// Texts are cut at 255 bytes; nothing is gained by printing more of a table than that.
const TERM_BYTES_MAX: usize = 512;

fn write_term(value: Value<'_>, out: &mut String) {
    if out.len() > TERM_BYTES_MAX {
        return;
    }
    // Writing to a string does not fail.
    let _ = match value {
        Value::Bool(value) => write!(out, "{value}"),
        Value::I8(value) => write!(out, "{value}"),
        Value::U8(value) => write!(out, "{value}"),
        Value::I16(value) => write!(out, "{value}"),
        Value::U16(value) => write!(out, "{value}"),
        Value::I32(value) => write!(out, "{value}"),
        Value::U32(value) => write!(out, "{value}"),
        Value::I64(value) => write!(out, "{value}"),
        Value::F32(value) => write!(out, "{value:?}"),
        Value::F64(value) => write!(out, "{value:?}"),
        Value::Decimal { scale, value } => write!(out, "{{{scale},{value}}}"),
        Value::LongString([]) | Value::ByteArray([]) => write!(out, "<<>>"),
        Value::LongString(bytes) | Value::ByteArray(bytes) => {
            write!(out, "<<\"{}\">>", String::from_utf8_lossy(bytes))
        }
        Value::Timestamp(value) => write!(out, "{value}"),
        Value::Array(array) => {
            let parts = array.iter().take(TERM_BYTES_MAX);
            write_list(out, parts, |value, out| {
                let _ = write!(out, "{{{},", kind(value));
                write_term(value, out);
                out.push('}');
            });
            Ok(())
        }
        Value::Table(table) => {
            let fields = table.iter().take(TERM_BYTES_MAX);
            write_list(out, fields, |(name, value), out| {
                let _ = write!(out, "{{<<\"{name}\">>,{},", kind(value));
                write_term(value, out);
                out.push('}');
            });
            Ok(())
        }
        Value::Void => write!(out, "undefined"),
    };
}

fn write_list<T>(out: &mut String, parts: impl Iterator<Item = T>, write: impl Fn(T, &mut String)) {
    out.push('[');
    for (position, part) in parts.enumerate() {
        if position > 0 {
            out.push(',');
        }
        write(part, out);
    }
    out.push(']');
}
