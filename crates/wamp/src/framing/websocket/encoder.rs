//! Frames from payloads: the header is written before the payload's length is known for sure.

use super::header::{CONTROL_LENGTH_MAX, FIN, HEADER_LENGTH_MAX, Header, Opcode, RSV1};
use super::mask;
use crate::framing::FrameError;

/// Appends one unfragmented data frame whose payload `write` appends.
///
/// Room for the header is reserved by `length_hint`; if the payload needs a header of another length it is moved. The
/// output of a failed `write` is removed. Of the payload `apart_bytes` are not written here.
#[inline]
pub(in crate::framing) fn frame<E>(
    text: bool,
    mask: Option<[u8; 4]>,
    length_hint: usize,
    apart_bytes: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), FrameError<E>>,
) -> Result<(), FrameError<E>> {
    let start = out.len();
    let mut header_length = Header::length_for(length_hint, mask.is_some());
    out.extend_from_slice(&[0; HEADER_LENGTH_MAX][..header_length]);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error);
    }
    let length = out.len() - start - header_length + apart_bytes;
    let needed = Header::length_for(length, mask.is_some());
    if needed != header_length {
        move_payload(out, start + header_length, start + needed);
        header_length = needed;
    }
    let frame = &mut out[start..];
    let (header, payload) = frame.split_at_mut(header_length);
    Header::write(FIN | Opcode::data(text) as u8, length, mask, header);
    if let Some(key) = mask {
        mask::apply(payload, key, 0);
    }
    Ok(())
}

/// Moves the bytes from `from` to the end so that they begin at `to`.
#[cold]
fn move_payload(out: &mut Vec<u8>, from: usize, to: usize) {
    let end = out.len();
    if to > from {
        out.resize(end + to - from, 0);
        out.copy_within(from..end, to);
    } else {
        out.copy_within(from..end, to);
        out.truncate(end - (from - to));
    }
}

/// Appends one unfragmented data message.
pub fn message(text: bool, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    append(FIN | Opcode::data(text) as u8, mask, payload, out);
}

/// Appends one frame with the given header, valid or not: for fragments, load drivers and tests.
pub fn raw_frame(
    opcode: Opcode,
    fin: bool,
    rsv1: bool,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let fin = if fin { FIN } else { 0 };
    let rsv1 = if rsv1 { RSV1 } else { 0 };
    append(fin | rsv1 | opcode as u8, mask, payload, out);
}

pub(in crate::framing) fn ping(mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    control(Opcode::Ping, mask, payload, out);
}

pub(in crate::framing) fn pong(mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    control(Opcode::Pong, mask, payload, out);
}

pub(in crate::framing) fn close(mask: Option<[u8; 4]>, code: u16, reason: &str, out: &mut Vec<u8>) {
    let code = code.to_be_bytes();
    let reason = &reason[..reason.floor_char_boundary(CONTROL_LENGTH_MAX - code.len())];
    let mut payload = [0; CONTROL_LENGTH_MAX];
    let length = code.len() + reason.len();
    payload[..code.len()].copy_from_slice(&code);
    payload[code.len()..length].copy_from_slice(reason.as_bytes());
    control(Opcode::Close, mask, &payload[..length], out);
}

fn control(opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min(CONTROL_LENGTH_MAX)];
    append(FIN | opcode as u8, mask, payload, out);
}

fn append(first: u8, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    let mut header = [0; HEADER_LENGTH_MAX];
    let header = &mut header[..Header::length_for(payload.len(), mask.is_some())];
    Header::write(first, payload.len(), mask, header);
    out.reserve(header.len() + payload.len());
    out.extend_from_slice(header);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = mask {
        mask::apply(&mut out[start..], key, 0);
    }
}
