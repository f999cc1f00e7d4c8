//! The versions of the protocol that clients ask for, and the methods in which they differ.
//!
//! 0-9 is 0-9-1 by another header. 0-8 is the version that RabbitMQ spoke first and speaks still: its
//! `connection.close` has another number, its `basic.consume` no arguments, its `channel.open-ok` no channel id, and
//! there is nothing of RabbitMQ's extensions in it. All else has the same octets in both.

use std::fmt;

use crate::method::{
    Arguments, BasicConsume, ChannelOpenOk, ConnectionClose, ConnectionCloseOk, Method, MethodError,
};
use crate::reader::{ReadError, Reader};
use crate::table::Table;

/// The protocol header, which a client sends first (section 4.2.2).
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    V0_8,
    #[default]
    V0_9_1,
}

/// The protocol headers of clients, as RabbitMQ understands them.
const HEADERS: [([u8; 8], Version); 4] = [
    (PROTOCOL_HEADER, Version::V0_9_1),
    (*b"AMQP\x01\x01\x00\x09", Version::V0_9_1),
    (*b"AMQP\x01\x01\x08\x00", Version::V0_8),
    // By the specification of 0-8; most clients send the one above.
    (*b"AMQP\x01\x01\x09\x01", Version::V0_8),
];

/// `connection.close` and its answer in 0-8.
const CLOSE: (u16, u16) = (10, 60);
const CLOSE_OK: (u16, u16) = (10, 61);

impl Version {
    /// The version that a protocol header requests; at least one octet of it must be present. `Ok(None)`: the rest is
    /// needed. The error: no version is requested in this form.
    pub fn asked_for(header: &[u8]) -> Result<Option<Self>, UnknownHeader> {
        let known = header.len().min(PROTOCOL_HEADER.len());
        let mut found = HEADERS
            .iter()
            .filter(|(all, _)| all[..known] == header[..known]);
        match found.next() {
            Some((all, version)) => Ok((known == all.len()).then_some(*version)),
            None => Err(UnknownHeader),
        }
    }

    /// As `connection.start` says it: major, minor.
    pub fn numbers(self) -> (u8, u8) {
        match self {
            Self::V0_8 => (8, 0),
            Self::V0_9_1 => (0, 9),
        }
    }

    /// Reads a method frame's payload.
    pub fn decode(self, payload: &[u8]) -> Result<Method<'_>, MethodError> {
        match self {
            Self::V0_9_1 => Method::decode(payload),
            Self::V0_8 => decode(payload),
        }
    }

    /// Appends a method frame's payload.
    pub fn write(self, method: &impl Arguments, out: &mut Vec<u8>) {
        let start = out.len();
        method.write(out);
        if self == Self::V0_8 {
            adapt(ids(method), start, out);
        }
    }

    /// Appends a method frame's payload.
    pub fn write_any(self, method: &Method<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        method.write(out);
        if self == Self::V0_8 {
            adapt(method.ids(), start, out);
        }
    }
}

/// Reads a payload of 0-8.
fn decode(payload: &[u8]) -> Result<Method<'_>, MethodError> {
    let mut reader = Reader::new(payload);
    let (Ok(class_id), Ok(method_id)) = (reader.short(), reader.short()) else {
        return Err(MethodError::NoMethod);
    };
    match (class_id, method_id) {
        CLOSE => Method::read(
            ConnectionClose::CLASS_ID,
            ConnectionClose::METHOD_ID,
            reader,
        ),
        CLOSE_OK => Method::read(
            ConnectionCloseOk::CLASS_ID,
            ConnectionCloseOk::METHOD_ID,
            reader,
        ),
        (BasicConsume::CLASS_ID, BasicConsume::METHOD_ID) => {
            let consume = consume(reader).map(Method::BasicConsume);
            consume.map_err(|error| MethodError::Arguments {
                class_id,
                method_id,
                name: BasicConsume::NAME,
                error,
            })
        }
        // The methods of 0-9-1 and of RabbitMQ's extensions that came later.
        (10, 50 | 51 | 70 | 71) | (40, 30 | 31 | 40 | 51) | (60, 120) | (85, _) => {
            Err(MethodError::Unknown {
                class_id,
                method_id,
            })
        }
        _ => Method::read(class_id, method_id, reader),
    }
}

/// Reads the arguments of `basic.consume`, which has no table of its own.
fn consume(mut reader: Reader<'_>) -> Result<BasicConsume<'_>, ReadError> {
    // The ticket.
    reader.short()?;
    let consume = BasicConsume {
        queue: reader.shortstr()?,
        consumer_tag: reader.shortstr()?,
        no_local: reader.bit()?,
        no_ack: reader.bit()?,
        exclusive: reader.bit()?,
        no_wait: reader.bit()?,
        arguments: Table::default(),
    };
    reader.end()?;
    Ok(consume)
}

/// Makes the payload of a method, which begins at `start`, one of 0-8.
fn adapt(ids: (u16, u16), start: usize, out: &mut Vec<u8>) {
    const IDS_BYTES: usize = 4;
    let (_, method_id) = match ids {
        found if found == ids_of::<ConnectionClose<'_>>() => CLOSE,
        found if found == ids_of::<ConnectionCloseOk>() => CLOSE_OK,
        found if found == ids_of::<ChannelOpenOk<'_>>() => {
            out.truncate(start + IDS_BYTES);
            return;
        }
        _ => return,
    };
    out[start + 2..start + IDS_BYTES].copy_from_slice(&method_id.to_be_bytes());
}

fn ids<M: Arguments>(_: &M) -> (u16, u16) {
    ids_of::<M>()
}

fn ids_of<M: Arguments>() -> (u16, u16) {
    (M::CLASS_ID, M::METHOD_ID)
}

/// A protocol header that asks for no version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownHeader;

impl fmt::Display for UnknownHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a protocol header that is not of AMQP 0-9-1, 0-9 or 0-8")
    }
}

impl std::error::Error for UnknownHeader {}
