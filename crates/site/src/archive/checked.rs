//! The bytes of a member, verified by its checksum.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::members::Member;
use crate::content::Part;

/// A member being read. The last byte is returned only if the checksum matches.
pub(super) struct Checked {
    bytes: Box<dyn Read + Send>,
    left: u64,
    checksum: u32,
    read: Crc,
}

impl Checked {
    pub(super) fn new(file: Arc<File>, member: &Member) -> Self {
        let part = Part::new(file, member.offset, member.stored_bytes);
        Self {
            bytes: match member.is_deflated {
                true => Box::new(DeflateDecoder::new(part)),
                false => Box::new(part),
            },
            left: member.bytes,
            checksum: member.checksum,
            read: Crc::new(),
        }
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.bytes.read(&mut buffer[..length])?;
        self.left -= read as u64;
        self.read.update(&buffer[..read]);
        if read > 0 && self.left == 0 && self.read.sum() != self.checksum {
            return Err(io::Error::other("a member does not match its checksum"));
        }
        Ok(read)
    }
}
