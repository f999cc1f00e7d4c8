//! The fields of a frame: an octet that says which, four with the length, and as many octets.

use std::str;

use crate::Refusal;

/// Which field it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Of an event's publisher, or of a caller: the session.
    Publisher = 1,
    PublisherAuthid = 2,
    PublisherAuthrole = 3,
    /// Of a node: its name.
    Node = 4,
    /// The server that it is connected to.
    Server = 5,
    /// Of a barrier: its number.
    Number = 6,
    /// The nodes that are to answer it.
    Asked = 7,
    /// Of what is said in a pair: the number of its receiver's side.
    Pair = 8,
    /// In the agreement on a pair: the number of the sender's side.
    Side = 9,
    /// In a heartbeat: nodes, the numbers of their sides, and what was said to each last.
    Said = 10,
    /// Of a registration: how it matches, as in `MatchPolicy::ALL`, and its procedure.
    Match = 11,
    Procedure = 12,
    /// How its callees share it, as in `InvocationPolicy::ALL`.
    Policy = 13,
    /// Callees, claim, first and last of a node's part.
    Part = 14,
    /// Nodes that could not serve a call.
    Tried = 15,
    /// Of a node: the first and the last version that it takes.
    Versions = 16,
    /// Of a node: those that it refuses, for it speaks no version with them.
    Strangers = 17,
    /// Of a registration that is withdrawn, where nobody was told of its end: the session that served it last, or 0.
    Untold = 18,
    /// Of an event that is retained: its number, and when it ends if it does by itself.
    Retained = 19,
    /// Of a call: the lowest and the highest callee that it is for, and of a shard a resource and what has it.
    Stretch = 20,
    /// Of a call: callees that have been asked, whether some are busy, whether it waits.
    Met = 21,
    /// Of a node's part: numbers and shards of callees.
    Listed = 22,
    /// Of a call: shards whose callees have gone.
    Gone = 23,
}

const LENGTH_BYTES: usize = 4;
const END: u8 = 0;

/// The fields of one frame, well-formed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'f>(&'f [u8]);

impl<'f> Fields<'f> {
    /// Reads fields to their end; what is behind it.
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

    /// The first of that name.
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

    /// A list of numbers; empty where there is none.
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
    // Nothing here is as long as 4 GiB: the engine takes no such message.
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Appends what is behind the last field.
pub(crate) fn end(out: &mut Vec<u8>) {
    out.push(END);
}
