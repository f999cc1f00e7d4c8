//! WELCOME, most of whose details are equal for many sessions: written from a prepared part.

use crate::codec::value::{self, Unrepresentable};
use crate::codec::writer::{Result, Writer};
use crate::{MessageType, SessionId, Value};

/// The value of one of the details.
#[derive(Debug)]
pub enum Detail<'d> {
    Text(&'d str),
    Number(u64),
    Value(&'d Value),
    /// A value that is written in the message's serializer already.
    Written(&'d [u8]),
    Dict(Vec<(&'d str, Self)>),
}

/// Appends WELCOME.
pub(in crate::codec) fn welcome<W: Writer>(
    mut writer: W,
    session: SessionId,
    details: &[(&str, Detail<'_>)],
) -> Result<()> {
    let mut list = writer.open_list(Some(3));
    for number in [MessageType::Welcome.code(), session.0] {
        writer.element(&mut list);
        writer.unsigned(number);
    }
    writer.element(&mut list);
    dict(&mut writer, details)?;
    writer.close(list);
    Ok(())
}

fn dict<W: Writer>(writer: &mut W, details: &[(&str, Detail<'_>)]) -> Result<()> {
    let mut open = writer.open_dict(Some(details.len()));
    for (key, detail) in details {
        writer.element(&mut open);
        writer.text(key);
        writer.separator();
        match detail {
            Detail::Text(text) => writer.own_text(text),
            Detail::Number(number) => writer.unsigned(*number),
            Detail::Value(value) => value::write(writer, value, Unrepresentable::Fails)?,
            Detail::Written(bytes) => writer.raw(bytes),
            Detail::Dict(details) => dict(writer, details)?,
        }
    }
    writer.close(open);
    Ok(())
}
