//! Options and details that are kept to be passed on.

use super::super::DecodeError;
use super::super::reader::{Reader, Result};
use super::super::value::{self, Room};
use super::options::whole;
use crate::options::{FORWARD_FOR, TRUSTLEVEL};
use crate::{Dict, Value};

/// An unknown key: kept when it must be passed on.
pub(super) fn other<'a, R: Reader<'a>>(
    reader: &mut R,
    key: &str,
    room: &mut Room,
    passthru: &mut Option<Box<Dict>>,
) -> Result<()> {
    let is_kept = ["ppt_", "enc_", "_"]
        .iter()
        .any(|kept| key.starts_with(kept));
    if key == FORWARD_FOR {
        return forward_for(reader, room, passthru);
    }
    if is_kept || key == "transaction_hash" {
        let value = value::read(reader, room)?;
        passthru
            .get_or_insert_default()
            .push((key.to_owned(), value));
        return Ok(());
    }
    reader.skip(room.depth_left)
}

/// The origins of a forwarded message. A receiver's library may end its connection over a malformed list, so that only
/// a valid one passes.
fn forward_for<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
    passthru: &mut Option<Box<Dict>>,
) -> Result<()> {
    let value = behind(reader, room)?;
    let passthru = passthru.get_or_insert_default();
    passthru.push((FORWARD_FOR.to_owned(), value));
    Ok(())
}

/// The same in a request that is passed on to no client.
pub(super) fn said_for_others<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<()> {
    behind(reader, room).map(|_| ())
}

#[cold]
fn behind<'a, R: Reader<'a>>(reader: &mut R, room: &mut Room) -> Result<Value> {
    let offset = reader.value_offset();
    let mut value = value::read(reader, room)?;
    let is_list = match &mut value {
        Value::List(list) => list.iter_mut().all(is_origin),
        _ => false,
    };
    if !is_list {
        let expected = "a list of dictionaries with session, authid and authrole";
        return Err(DecodeError::unexpected(offset, expected, "something else"));
    }
    Ok(value)
}

/// The trust level of a publication or call.
#[cold]
pub(super) fn trustlevel<'a, R: Reader<'a>>(
    reader: &mut R,
    passthru: &mut Option<Box<Dict>>,
) -> Result<()> {
    let value = Value::from(whole(reader, 0, "an integer, from 0 to 2^53")?);
    let passthru = passthru.get_or_insert_default();
    passthru.push((TRUSTLEVEL.to_owned(), value));
    Ok(())
}

/// Whether a value has the members that name a client or router. A session given as a float becomes the integer that
/// receivers expect.
fn is_origin(value: &mut Value) -> bool {
    let has_text = |name: &str| {
        value
            .get(name)
            .is_some_and(|value| value.as_str().is_some())
    };
    if !has_text("authid") || !has_text("authrole") {
        return false;
    }
    let Value::Dict(entries) = value else {
        return false;
    };
    let session = entries.iter_mut().find(|(name, _)| name == "session");
    let Some((session, id)) = session.and_then(|(_, value)| Some((value.as_whole()?, value)))
    else {
        return false;
    };
    *id = Value::from(session);
    true
}
