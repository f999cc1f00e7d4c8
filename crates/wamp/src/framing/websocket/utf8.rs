//! UTF-8 that arrives in pieces, refused with the first byte that cannot be part of it.

use std::str;

use crate::framing::FramingError;
use crate::text::from_utf8;

/// Remembers the character that the last piece ended inside of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8Stream {
    /// Its first bytes.
    begun: [u8; 3],
    length: u8,
}

impl Utf8Stream {
    /// Takes the next piece.
    #[inline]
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), FramingError> {
        let rest = match self.length {
            0 => bytes,
            _ => self.complete(bytes)?,
        };
        match from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(FramingError::Utf8),
            Err(error) => {
                self.keep(&rest[error.valid_up_to()..]);
                Ok(())
            }
        }
    }

    /// Ends the text, and makes ready for the next one.
    #[inline]
    pub(super) fn finish(&mut self) -> Result<(), FramingError> {
        match std::mem::take(&mut self.length) {
            0 => Ok(()),
            _ => Err(FramingError::Utf8),
        }
    }

    /// Ends the character begun before; returns the rest of `bytes`.
    #[cold]
    fn complete<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FramingError> {
        let length = usize::from(self.length);
        let missing = character_length(self.begun[0]).saturating_sub(length);
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        let mut character = [0; 4];
        character[..length].copy_from_slice(&self.begun[..length]);
        character[length..length + taken.len()].copy_from_slice(taken);
        let character = &character[..length + taken.len()];
        match str::from_utf8(character) {
            Ok(_) => self.length = 0,
            Err(error) if error.error_len().is_some() => return Err(FramingError::Utf8),
            Err(_) => self.keep(character),
        }
        Ok(rest)
    }

    /// `begun` is part of a character: at most three bytes.
    fn keep(&mut self, begun: &[u8]) {
        self.begun[..begun.len()].copy_from_slice(begun);
        self.length = begun.len() as u8;
    }
}

/// Bytes in the character that begins with `first`, which is not ASCII.
fn character_length(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        _ => 2,
    }
}
