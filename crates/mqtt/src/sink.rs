//! Writing fields: the counterpart of [`crate::reader`]. The same code counts and writes.

use crate::error::EncodeError;
use crate::values::{REMAINING_MAX, Version};

/// Takes the octets of a packet's body.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);

    /// Text or data of more than 65,535 octets: the packet has no form on the wire.
    fn refuse(&mut self, field: &'static str, bytes: usize);

    fn octet(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn short(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn long(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// A value above the largest one is cut to it.
    fn variable(&mut self, value: u32) {
        let mut rest = value.min(REMAINING_MAX);
        while rest > 0x7f {
            self.octet(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.octet(rest as u8);
    }

    fn data(&mut self, field: &'static str, bytes: &[u8]) {
        match u16::try_from(bytes.len()) {
            Ok(length) => self.short(length),
            Err(_) => self.refuse(field, bytes.len()),
        }
        self.put(bytes);
    }

    fn text(&mut self, field: &'static str, text: &str) {
        self.data(field, text.as_bytes());
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    /// Counting has refused it before.
    fn refuse(&mut self, _: &'static str, _: usize) {}
}

/// Counts instead of writing.
#[derive(Default)]
pub(crate) struct Count {
    bytes: usize,
    error: Option<EncodeError>,
}

impl Count {
    pub(crate) fn is_writable(&self) -> bool {
        self.error.is_none()
    }
}

impl Sink for Count {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn refuse(&mut self, field: &'static str, bytes: usize) {
        self.error = Some(EncodeError::TooLong { field, bytes });
    }
}

/// The part of a packet behind its fixed header.
pub(crate) trait Body {
    fn write(&self, version: Version, sink: &mut impl Sink);

    /// The remaining length.
    #[inline]
    fn remaining(&self, version: Version) -> Result<usize, EncodeError> {
        let mut count = Count::default();
        self.write(version, &mut count);
        match count.error {
            Some(error) => Err(error),
            None if count.bytes > REMAINING_MAX as usize => {
                Err(EncodeError::TooLarge { bytes: count.bytes })
            }
            None => Ok(count.bytes),
        }
    }

    /// Octets of the whole packet.
    #[inline]
    fn size(&self, version: Version) -> Result<usize, EncodeError> {
        let remaining = self.remaining(version)?;
        Ok(1 + variable_bytes(remaining) + remaining)
    }

    /// Appends the packet; an error appends nothing.
    #[inline]
    fn append(&self, first: u8, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let remaining = self.remaining(version)?;
        out.reserve(5 + remaining);
        out.push(first);
        out.variable(remaining as u32);
        self.write(version, out);
        Ok(())
    }
}

/// Octets of a variable byte integer.
pub(crate) fn variable_bytes(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}
