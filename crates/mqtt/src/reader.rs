//! Reading fields: integers, texts, data (section 1.5).

use std::str;

use crate::error::Fault;
use crate::topic::{self, TopicError};
use crate::values::PacketId;

/// A place in a packet's body. Each fault names the field in which it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The octets that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn octet(&mut self, field: &'static str) -> Result<u8, Fault> {
        self.array(field).map(|[octet]| octet)
    }

    #[inline]
    pub(crate) fn short(&mut self, field: &'static str) -> Result<u16, Fault> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn long(&mut self, field: &'static str) -> Result<u32, Fault> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// A variable byte integer in its shortest form (section 1.5.5).
    #[inline]
    pub(crate) fn variable(&mut self, field: &'static str) -> Result<u32, Fault> {
        let mut value = 0;
        for at in 0..4 {
            let octet = self.octet(field)?;
            value |= u32::from(octet & 0x7f) << (7 * at);
            if octet & 0x80 == 0 {
                return match octet == 0 && at > 0 {
                    true => Err(Fault::VariableInteger { field }),
                    false => Ok(value),
                };
            }
        }
        Err(Fault::VariableInteger { field })
    }

    #[inline]
    pub(crate) fn packet_id(&mut self) -> Result<PacketId, Fault> {
        let id = self.short("packet identifier")?;
        PacketId::new(id).ok_or(Fault::PacketIdZero)
    }

    /// Binary data (section 1.5.6).
    #[inline]
    pub(crate) fn data(&mut self, field: &'static str) -> Result<&'a [u8], Fault> {
        let bytes = self.short(field)?;
        self.take(bytes.into(), field)
    }

    /// Two of them.
    pub(crate) fn data_pair(&mut self, field: &'static str) -> Result<[&'a [u8]; 2], Fault> {
        Ok([self.data(field)?, self.data(field)?])
    }

    /// A text (section 1.5.4).
    #[inline]
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, Fault> {
        let bytes = self.data(field)?;
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(Fault::NotUtf8 { field });
        };
        match bytes.contains(&0) {
            true => Err(Fault::Null { field }),
            false => Ok(text),
        }
    }

    /// A topic name; it may be empty.
    #[inline]
    pub(crate) fn topic_or_empty(&mut self, field: &'static str) -> Result<&'a str, Fault> {
        let bytes = self.data(field)?;
        let bad = topic::has_special(bytes);
        match str::from_utf8(bytes) {
            Ok(text) if !bad => Ok(text),
            Ok(text) => Err(Fault::Topic {
                field,
                error: topic::check_name(text)
                    .err()
                    .unwrap_or(TopicError::Wildcard),
            }),
            Err(_) => Err(Fault::NotUtf8 { field }),
        }
    }

    /// A topic name.
    pub(crate) fn topic(&mut self, field: &'static str) -> Result<&'a str, Fault> {
        match self.topic_or_empty(field)? {
            "" => Err(Fault::Topic {
                field,
                error: TopicError::Empty,
            }),
            topic => Ok(topic),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: usize, field: &'static str) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(Fault::Short { field })?;
        self.rest = rest;
        Ok(taken)
    }

    /// That nothing is left.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(Fault::Trailing { bytes }),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Fault> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(Fault::Short { field })?;
        self.rest = rest;
        Ok(*taken)
    }
}
