//! The batched WebSocket subprotocols: several messages in one WebSocket message.
//!
//! JSON messages each end with the byte 0x1E, which JSON text cannot hold; MessagePack and CBOR
//! messages each follow their length as a big-endian 32-bit number. A sender may send batches of
//! one, and this project's do.
//!
//! Autobahn|Python ends its JSON messages with 0x18 (the decimal 30 of 0x1E, written as octal), and
//! expects that byte too. JSON text can hold neither, so that both are read, and a server answers
//! such a client in kind.

use super::{FrameError, FramingError};
use crate::Serializer;

/// The end of each message of a JSON batch: the ASCII record separator.
pub const SEPARATOR: u8 = 0x1E;
/// The end that Autobahn|Python gives it.
pub const SEPARATOR_AUTOBAHN: u8 = 0x18;
const LENGTH_BYTES: usize = 4;

/// The messages of one batch, in order. An empty batch is an error, and so is an empty message.
pub fn split(serializer: Serializer, bytes: &[u8]) -> Batch<'_> {
    Batch {
        separated: !serializer.is_binary(),
        bytes,
        begun: false,
    }
}

/// Whether a JSON batch is of a client that must be answered with
/// [`super::Framing::WebSocketServerAutobahn`].
pub fn is_autobahn(serializer: Serializer, bytes: &[u8]) -> bool {
    !serializer.is_binary() && bytes.last() == Some(&SEPARATOR_AUTOBAHN)
}

/// See [`split`]. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    separated: bool,
    bytes: &'a [u8],
    begun: bool,
}

impl<'a> Batch<'a> {
    /// The part that has not been split yet: a batch itself, unless it is empty.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = Result<&'a [u8], FramingError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return match std::mem::replace(&mut self.begun, true) {
                true => None,
                false => Some(Err(FramingError::BatchEmpty)),
            };
        }
        self.begun = true;
        let cut = match self.separated {
            true => cut_separated(bytes),
            false => cut_prefixed(bytes),
        };
        Some(match cut {
            None => Err(FramingError::BatchCut),
            Some(([], _)) => Err(FramingError::BatchEmpty),
            Some((message, rest)) => {
                self.bytes = rest;
                Ok(message)
            }
        })
    }
}

fn cut_separated(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr2(SEPARATOR, SEPARATOR_AUTOBAHN, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn cut_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Bytes that a batch adds to each message.
pub(super) fn overhead(serializer: Serializer) -> usize {
    match serializer.is_binary() {
        true => LENGTH_BYTES,
        false => 1,
    }
}

/// Appends a message as a batch of one. The output of a failed `write` stays: the frame around it removes everything.
/// Of the message `apart_bytes` are not written here.
pub(super) fn wrap<E>(
    serializer: Serializer,
    separator: u8,
    apart_bytes: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), FrameError<E>> {
    if !serializer.is_binary() {
        write(out).map_err(FrameError::Write)?;
        out.push(separator);
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out).map_err(FrameError::Write)?;
    let length = out.len() - start - LENGTH_BYTES + apart_bytes;
    let prefix = u32::try_from(length).map_err(|_| FrameError::TooLong {
        length,
        length_max: u32::MAX as usize,
    })?;
    out[start..start + LENGTH_BYTES].copy_from_slice(&prefix.to_be_bytes());
    Ok(())
}
