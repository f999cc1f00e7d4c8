//! Whether the libraries that receive a payload can read it.
//!
//! A receiver's library that cannot decode a message takes that for a protocol violation, and ends its session. The
//! validator of every message marks possible values of this kind as doubtful. This is the second check, of those
//! messages alone. Its rules were found by running the libraries: docs/values.md.

use std::fmt;

use super::found::Found;
use super::reader::{Kind, Open, Reader};
use super::{CborReader, JsonReader, MsgPackReader};
use super::{cbor, json, msgpack};
use crate::{Payload, Serializer};

/// A value that common receivers cannot read, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The kind of value, for a person: one of a few.
    pub kind: &'static str,
    text: Box<str>,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Unreadable {}

/// Finds a value that common receivers of `payload.serializer` cannot read in a well-formed payload.
#[cold]
pub fn check_readable(payload: &Payload<'_>) -> Result<(), Unreadable> {
    let mut tags = cbor::Tags::default();
    for (name, part) in [
        ("arguments", payload.args),
        ("keyword arguments", payload.kwargs),
    ] {
        if part.is_empty() {
            continue;
        }
        let checked = match payload.serializer {
            Serializer::Json => json::check_readable(part),
            Serializer::MsgPack => msgpack::check_readable(part),
            Serializer::Cbor => cbor::check_readable(part, &mut tags),
        };
        if let Err(Found { offset, kind, what }) = checked {
            let place = match payload.serializer {
                Serializer::Json => place::<JsonReader<'_>>(part, offset),
                Serializer::MsgPack => place::<MsgPackReader<'_>>(part, offset),
                Serializer::Cbor => place::<CborReader<'_>>(part, offset),
            };
            let what = what.as_deref().unwrap_or(kind);
            let text = format!("{name}{place}: {what}").into();
            return Err(Unreadable { kind, text });
        }
    }
    Ok(())
}

/// A step from a list or dictionary to its content.
enum Step {
    Index(usize),
    Key(String),
}

/// Characters of a key in a place.
const KEY_CHARS_MAX: usize = 40;
/// Steps of a place that are shown.
const STEPS_MAX: usize = 8;

/// The way to the value that ends behind `offset`, as `[0].name[2]`.
fn place<'a, R: Reader<'a>>(part: &'a [u8], offset: usize) -> String {
    let mut steps = Vec::new();
    if let Ok(mut reader) = R::new(part) {
        reader.tolerate();
        // An error cannot be: it was read before.
        let _ = walk(&mut reader, offset, &mut steps);
    }
    let mut text = String::new();
    for step in steps.iter().take(STEPS_MAX) {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) => {
                text.push('.');
                text.extend(key.chars().flat_map(char::escape_debug));
            }
        }
    }
    if steps.len() > STEPS_MAX {
        text.push('…');
    }
    text
}

/// Whether it has come to the place.
fn walk<'a, R: Reader<'a>>(
    reader: &mut R,
    offset: usize,
    steps: &mut Vec<Step>,
) -> super::reader::Result<bool> {
    let open = match reader.kind()? {
        Kind::List => reader.open_list()?,
        Kind::Dict => reader.open_dict()?,
        _ => {
            reader.skip(super::DEPTH_CEILING)?;
            return Ok(reader.offset() > offset);
        }
    };
    walk_inside(reader, open, offset, steps)
}

fn walk_inside<'a, R: Reader<'a>>(
    reader: &mut R,
    mut open: Open,
    offset: usize,
    steps: &mut Vec<Step>,
) -> super::reader::Result<bool> {
    let mut index = 0;
    while reader.more(&mut open)? {
        if open.dict {
            let key = match reader.kind()? {
                Kind::Text => reader.text()?.chars().take(KEY_CHARS_MAX).collect(),
                _ => {
                    reader.skip(super::DEPTH_CEILING)?;
                    String::from("?")
                }
            };
            // The key itself: the place is the dictionary's.
            if reader.offset() > offset {
                return Ok(true);
            }
            reader.separator()?;
            steps.push(Step::Key(key));
        } else {
            steps.push(Step::Index(index));
        }
        if walk(reader, offset, steps)? {
            return Ok(true);
        }
        steps.pop();
        index += 1;
    }
    Ok(reader.offset() > offset)
}
