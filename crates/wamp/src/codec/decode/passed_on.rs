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

/// Those for whom a router sends on what another one was sent. A receiver's library may end its connection for what
/// is no such list, so that nothing else passes.
#[cold]
fn forward_for<'a, R: Reader<'a>>(
    reader: &mut R,
    room: &mut Room,
    passthru: &mut Option<Box<Dict>>,
) -> Result<()> {
    if reader.null() {
        return Ok(());
    }
    let offset = reader.value_offset();
    let value = value::read(reader, room)?;
    let is_list = matches!(&value, Value::List(list) if list.iter().all(is_somebody));
    if !is_list {
        let expected = "a list of dictionaries with session, authid and authrole";
        return Err(DecodeError::unexpected(offset, expected, "something else"));
    }
    let passthru = passthru.get_or_insert_default();
    passthru.push((FORWARD_FOR.to_owned(), value));
    Ok(())
}

/// How far to trust what is published or called. A null is as good as none.
#[cold]
pub(super) fn trustlevel<'a, R: Reader<'a>>(
    reader: &mut R,
    passthru: &mut Option<Box<Dict>>,
) -> Result<()> {
    if reader.null() {
        return Ok(());
    }
    let value = Value::from(whole(reader, 0, "an integer, from 0 to 2^53")?);
    let passthru = passthru.get_or_insert_default();
    passthru.push((TRUSTLEVEL.to_owned(), value));
    Ok(())
}

fn is_somebody(value: &Value) -> bool {
    let has = |name: &str, is: fn(&Value) -> bool| value.get(name).is_some_and(is);
    has("session", |value| value.as_u64().is_some())
        && has("authid", |value| value.as_str().is_some())
        && has("authrole", |value| value.as_str().is_some())
}
