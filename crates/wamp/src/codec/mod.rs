//! Messages from bytes and back, for each serializer.
//!
//! Every serializer has one [`Reader`](reader::Reader) and one [`Writer`](writer::Writer); the
//! decoder and the encoder of messages, values and the transcoder are written once over these.
//!
//! ```text
//!  bytes ──▶ JsonReader ────┐                              ┌──▶ JsonWriter ────▶ bytes
//!         ──▶ MsgPackReader ─┼─▶ decode ─▶ Message ─▶ encode ┼──▶ MsgPackWriter ─▶
//!         ──▶ CborReader ────┘       transcode, value       └──▶ CborWriter ────▶
//! ```

mod big;
mod cbor;
mod decode;
mod encode;
mod error;
mod found;
mod json;
mod msgpack;
mod readable;
mod reader;
mod transcode;
mod value;
mod writer;

pub use encode::Detail;
pub use error::{DecodeError, TranscodeError};
pub use json::replace_lone_surrogates;
pub use readable::{Unreadable, check_readable};

use cbor::{CborReader, CborWriter};
use json::{JsonReader, JsonWriter};
use msgpack::{MsgPackReader, MsgPackWriter};
use reader::Reader;
use value::{Room, Unrepresentable};

use crate::{Message, Payload, Serializer, SessionId, Value};

/// Bounds on the input of a decoder; the message's size is the framing's business.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Lists and dictionaries inside one another, the message's own list included. More than 512
    /// is taken as 512, for which a thread's stack is enough.
    pub depth_max: usize,
}

/// The most that [`Limits::depth_max`] can be: values are read and transcoded by recursion.
const DEPTH_CEILING: usize = 512;

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: 64 }
    }
}

impl Limits {
    fn depth_bound(&self) -> usize {
        self.depth_max.min(DEPTH_CEILING)
    }
}

/// Reads one message; `bytes` must hold it exactly. NaN and infinity in JSON, which Python writes, are walked over.
pub fn decode<'a>(
    serializer: Serializer,
    bytes: &'a [u8],
    limits: &Limits,
) -> Result<Message<'a>, DecodeError> {
    match serializer {
        Serializer::Json => decode::message::<JsonReader<'_>>(serializer, bytes, limits, None),
        Serializer::MsgPack => {
            decode::message::<MsgPackReader<'_>>(serializer, bytes, limits, None)
        }
        Serializer::Cbor => decode::message::<CborReader<'_>>(serializer, bytes, limits, None),
    }
}

/// Reads one message as [`decode`] does, if others are to receive it. Sets `is_doubtful` if its payload has a value
/// that common receivers may be unable to read; [`check_readable`] decides.
#[inline]
pub fn decode_to_pass_on<'a>(
    serializer: Serializer,
    bytes: &'a [u8],
    limits: &Limits,
    is_doubtful: &mut bool,
) -> Result<Message<'a>, DecodeError> {
    let doubt = Some(is_doubtful);
    match serializer {
        Serializer::Json => decode::message::<JsonReader<'_>>(serializer, bytes, limits, doubt),
        Serializer::MsgPack => {
            decode::message::<MsgPackReader<'_>>(serializer, bytes, limits, doubt)
        }
        Serializer::Cbor => decode::message::<CborReader<'_>>(serializer, bytes, limits, doubt),
    }
}

/// Appends `message` in `serializer` to `out`, transcoding its payload if necessary. On an error `out` is unchanged.
pub fn encode(
    message: &Message<'_>,
    serializer: Serializer,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    let payload = message.payload().unwrap_or(&Payload::EMPTY);
    let unrepresentable = Unrepresentable::Fails;
    appending(out, |out| {
        encode_message(message, payload, serializer, unrepresentable, out)
    })
}

/// Appends `message` to `out` in `payload.serializer`, with `payload` in the place of its own:
/// for a message whose payload was transcoded before.
///
/// A value in the message's head that the serializer cannot hold is written as null.
pub fn encode_with(message: &Message<'_>, payload: &Payload<'_>, out: &mut Vec<u8>) {
    let unrepresentable = Unrepresentable::IsNull;
    let encoded = encode_message(message, payload, payload.serializer, unrepresentable, out);
    debug_assert_eq!(
        encoded,
        Ok(()),
        "nothing was left that could not be written"
    );
}

/// Appends `message` in `payload.serializer` without the bytes of `payload`, which its sender keeps elsewhere. Returns
/// the places in `out` of its arguments and its keyword arguments, if it has any.
///
/// A value in the message's head that the serializer cannot hold is written as null.
pub fn encode_around(
    message: &Message<'_>,
    payload: &Payload<'_>,
    out: &mut Vec<u8>,
) -> [usize; 2] {
    let is_null = Unrepresentable::IsNull;
    let places = match payload.serializer {
        Serializer::Json => encode::around(JsonWriter::new(out), message, payload, is_null),
        Serializer::MsgPack => encode::around(MsgPackWriter::new(out), message, payload, is_null),
        Serializer::Cbor => encode::around(CborWriter::new(out), message, payload, is_null),
    };
    debug_assert!(places.is_ok(), "nothing was left that could not be written");
    places.unwrap_or_default()
}

/// Appends WELCOME with those details, of which some may be written in `serializer` already. On an error `out` is as
/// it was.
pub fn encode_welcome(
    session: SessionId,
    details: &[(&str, Detail<'_>)],
    serializer: Serializer,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    appending(out, |out| match serializer {
        Serializer::Json => encode::welcome(JsonWriter::new(out), session, details),
        Serializer::MsgPack => encode::welcome(MsgPackWriter::new(out), session, details),
        Serializer::Cbor => encode::welcome(CborWriter::new(out), session, details),
    })
}

/// Appends the one value in `bytes` (of `from`, valid) to `out` in `into`. On an error `out` is
/// as it was.
pub fn transcode(
    from: Serializer,
    bytes: &[u8],
    into: Serializer,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    transcode_within(from, bytes, into, usize::MAX, out)
}

/// The same, unless `out` would become longer than `length_max`: a value may be six times as long in
/// another serializer, and that is known only when it is written.
pub fn transcode_within(
    from: Serializer,
    bytes: &[u8],
    into: Serializer,
    length_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    if from == into {
        if bytes.len() > length_max.saturating_sub(out.len()) {
            return Err(TranscodeError::TOO_LONG);
        }
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let max = length_max;
    appending(out, |out| match into {
        Serializer::Json => transcode::value(from, bytes, max, &mut JsonWriter::new(out)),
        Serializer::MsgPack => transcode::value(from, bytes, max, &mut MsgPackWriter::new(out)),
        Serializer::Cbor => transcode::value(from, bytes, max, &mut CborWriter::new(out)),
    })
}

/// Reads one value; `bytes` must hold it exactly.
pub fn decode_value(
    serializer: Serializer,
    bytes: &[u8],
    limits: &Limits,
) -> Result<Value, DecodeError> {
    match serializer {
        Serializer::Json => read_value::<JsonReader<'_>>(bytes, limits),
        Serializer::MsgPack => read_value::<MsgPackReader<'_>>(bytes, limits),
        Serializer::Cbor => read_value::<CborReader<'_>>(bytes, limits),
    }
}

/// Looks whether `bytes` hold one value, and nothing else.
pub fn check_value(
    serializer: Serializer,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(), DecodeError> {
    match serializer {
        Serializer::Json => check::<JsonReader<'_>>(bytes, limits),
        Serializer::MsgPack => check::<MsgPackReader<'_>>(bytes, limits),
        Serializer::Cbor => check::<CborReader<'_>>(bytes, limits),
    }
}

/// Reads the one dictionary in `bytes`, and passes each entry's key and the bytes of its value to `entry`: for callers
/// that pass values on unread. A duplicate key is passed twice.
pub fn read_entries<'a>(
    serializer: Serializer,
    bytes: &'a [u8],
    limits: &Limits,
    mut entry: impl FnMut(&str, &'a [u8]),
) -> Result<(), DecodeError> {
    match serializer {
        Serializer::Json => entries::<JsonReader<'_>>(bytes, limits, &mut entry),
        Serializer::MsgPack => entries::<MsgPackReader<'_>>(bytes, limits, &mut entry),
        Serializer::Cbor => entries::<CborReader<'_>>(bytes, limits, &mut entry),
    }
}

/// Appends one value. JSON writes a non-finite float as an error. On an error `out` is as it was.
pub fn encode_value(
    value: &Value,
    serializer: Serializer,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    let fails = Unrepresentable::Fails;
    appending(out, |out| match serializer {
        Serializer::Json => value::write(&mut JsonWriter::new(out), value, fails),
        Serializer::MsgPack => value::write(&mut MsgPackWriter::new(out), value, fails),
        Serializer::Cbor => value::write(&mut CborWriter::new(out), value, fails),
    })
}

fn check<'a, R: Reader<'a>>(bytes: &'a [u8], limits: &Limits) -> Result<(), DecodeError> {
    let mut reader = R::new(bytes)?;
    reader.skip(limits.depth_bound())?;
    reader.end()
}

fn entries<'a, R: Reader<'a>>(
    bytes: &'a [u8],
    limits: &Limits,
    entry: &mut dyn FnMut(&str, &'a [u8]),
) -> Result<(), DecodeError> {
    let mut reader = R::new(bytes)?;
    let start = reader.value_offset();
    let depth_left = reader::enter(limits.depth_bound(), start)?;
    let mut dict = reader.open_dict()?;
    while reader.more(&mut dict)? {
        let key = reader.text()?;
        reader.separator()?;
        let start = reader.value_offset();
        reader.skip(depth_left)?;
        entry(&key, &bytes[start..reader.offset()]);
    }
    reader.end()
}

fn read_value<'a, R: Reader<'a>>(bytes: &'a [u8], limits: &Limits) -> Result<Value, DecodeError> {
    let mut reader = R::new(bytes)?;
    let mut room = Room::new(limits.depth_bound(), usize::MAX);
    let value = value::read(&mut reader, &mut room)?;
    reader.end()?;
    Ok(value)
}

fn encode_message(
    message: &Message<'_>,
    payload: &Payload<'_>,
    into: Serializer,
    unrepresentable: Unrepresentable,
    out: &mut Vec<u8>,
) -> Result<(), TranscodeError> {
    match into {
        Serializer::Json => encode::message(
            JsonWriter::new(out),
            message,
            payload,
            into,
            unrepresentable,
        ),
        Serializer::MsgPack => encode::message(
            MsgPackWriter::new(out),
            message,
            payload,
            into,
            unrepresentable,
        ),
        Serializer::Cbor => encode::message(
            CborWriter::new(out),
            message,
            payload,
            into,
            unrepresentable,
        ),
    }
}

/// Lets `append` append to `out`; on an error its output is removed.
fn appending(
    out: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), TranscodeError>,
) -> Result<(), TranscodeError> {
    let length = out.len();
    append(out).inspect_err(|_| out.truncate(length))
}
