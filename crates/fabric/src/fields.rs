//! The fields of a frame: one byte for the field, four bytes for the length, then the value.

use std::str;

use crate::Refusal;

/// The field's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The session of an event's publisher, or of a caller.
    Publisher = 1,
    PublisherAuthid = 2,
    PublisherAuthrole = 3,
    /// A node's name.
    Node = 4,
    /// The server of a node's connection.
    Server = 5,
    /// A barrier's number.
    Number = 6,
    /// The nodes that shall answer a barrier.
    Asked = 7,
    /// The number of the receiver's side of a pair.
    Pair = 8,
    /// In the agreement on a pair: the number of the sender's side.
    Side = 9,
    /// In a heartbeat: nodes, the numbers of their sides, and the count of frames sent to each.
    Said = 10,
    /// A registration's match policy, as in `MatchPolicy::ALL`, and its procedure.
    Match = 11,
    Procedure = 12,
    /// The invocation policy of its callees, as in `InvocationPolicy::ALL`.
    Policy = 13,
    /// A node's part of a registration: number of callees, claim, and its first and last callee.
    Part = 14,
    /// Nodes that could not serve a call.
    Tried = 15,
    /// The first and the last version that a node accepts.
    Versions = 16,
    /// Nodes that this node refuses for lack of a common version.
    Strangers = 17,
    /// For a withdrawn registration whose end was not announced: the session that served it last, or 0.
    Untold = 18,
    /// A retained event's number, and its expiry if any.
    Retained = 19,
    /// The lowest and the highest callee for a call; for a shard, its resource and its holder.
    Stretch = 20,
    /// Callees that a call has tried, whether some are busy, and whether it waits.
    Met = 21,
    /// Numbers and shards of the callees of a node's part.
    Listed = 22,
    /// Shards of a call whose callees have gone.
    Gone = 23,
}

const LENGTH_BYTES: usize = 4;
const END: u8 = 0;

/// The fields of one frame, well-formed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'f>(&'f [u8]);

impl<'f> Fields<'f> {
    /// Reads fields to their end. Also returns the bytes behind them.
    pub(crate) fn split(bytes: &'f [u8]) -> Result<(Self, &'f [u8]), Refusal> {
        let mut rest = bytes;
        loop {
            let (tag, behind) = rest.split_first().ok_or(Refusal::Field)?;
            if *tag == END {
                let length = bytes.len() - rest.len();
                return Ok((Self(&bytes[..length]), behind));
            }
            (_, rest) = value(behind).ok_or(Refusal::Field)?;
        }
    }

    /// The first field with that code.
    pub(crate) fn find(&self, field: Field) -> Option<&'f [u8]> {
        let mut rest = self.0;
        while let Some((tag, behind)) = rest.split_first() {
            let (found, behind) = value(behind)?;
            if *tag == field as u8 {
                return Some(found);
            }
            rest = behind;
        }
        None
    }

    pub(crate) fn text(&self, field: Field) -> Result<&'f str, Refusal> {
        let found = self.find(field).ok_or(Refusal::Field)?;
        str::from_utf8(found).map_err(|_| Refusal::Field)
    }

    pub(crate) fn octet(&self, field: Field) -> Result<u8, Refusal> {
        match self.find(field) {
            Some([octet]) => Ok(*octet),
            _ => Err(Refusal::Field),
        }
    }

    pub(crate) fn number(&self, field: Field) -> Result<u64, Refusal> {
        let found = self.find(field).ok_or(Refusal::Field)?;
        let octets = found.try_into().map_err(|_| Refusal::Field)?;
        Ok(u64::from_be_bytes(octets))
    }

    /// A list of numbers; empty without the field.
    pub(crate) fn numbers(&self, field: Field) -> impl Iterator<Item = u64> + use<'f> {
        let (numbers, _) = self.find(field).unwrap_or_default().as_chunks::<8>();
        numbers.iter().copied().map(u64::from_be_bytes)
    }
}

fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Appends a field.
pub(crate) fn put(field: Field, value: &[u8], out: &mut Vec<u8>) {
    out.push(field as u8);
    // No value is as long as 4 GiB: the engine accepts no such message.
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Appends the end of the fields.
pub(crate) fn end(out: &mut Vec<u8>) {
    out.push(END);
}
