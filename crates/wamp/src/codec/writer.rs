//! The writing half of a serializer, as the encoders of messages and values need it.

use super::TranscodeError;
use super::big::BigInteger;

pub(super) type Result<T> = std::result::Result<T, TranscodeError>;

/// Appends one serializer's bytes.
///
/// Mirrors [`Reader`](super::reader::Reader): a list or dictionary is opened, each element is
/// announced with [`element`](Writer::element), and it is closed. A dictionary's entry is a key,
/// the [`separator`](Writer::separator) and a value.
pub(super) trait Writer {
    /// Whether dictionary keys that are not text are written as text, if there is a usual form. Receivers of
    /// MessagePack refuse keys other than text and binary.
    const TEXT_KEYS_ONLY: bool;
    /// Whether keys may be binary.
    const BINARY_KEYS: bool;

    /// Bytes of a text's encoding, without its framing.
    fn text_len(text: &str) -> usize {
        text.len()
    }

    fn out(&mut self) -> &mut Vec<u8>;

    /// Opens a list; the count saves work when it is known.
    fn open_list(&mut self, count: Option<usize>) -> Opened;
    fn open_dict(&mut self, count: Option<usize>) -> Opened;
    /// Announces one element or entry.
    fn element(&mut self, opened: &mut Opened) {
        opened.count += 1;
    }
    fn separator(&mut self) {}
    fn close(&mut self, opened: Opened);

    fn null(&mut self);
    fn boolean(&mut self, flag: bool);
    fn unsigned(&mut self, number: u64);
    fn integer(&mut self, number: i128) -> Result<()>;
    fn big_integer(&mut self, number: &BigInteger) -> Result<()>;
    fn float(&mut self, number: f64) -> Result<()>;
    fn text(&mut self, text: &str);
    /// Text of a message's head, which is written in any case.
    fn own_text(&mut self, text: &str) {
        self.text(text);
    }
    /// Text of a payload.
    fn value_text(&mut self, text: &str) -> Result<()> {
        self.text(text);
        Ok(())
    }
    fn binary(&mut self, bytes: &[u8]);

    /// Appends a value that is already written in this serializer.
    fn raw(&mut self, value: &[u8]) {
        self.out().extend_from_slice(value);
    }
}

/// An open list or dictionary.
#[derive(Debug)]
pub(super) struct Opened {
    /// The offset of its first byte.
    pub(super) start: usize,
    pub(super) count: usize,
    /// The count that its first bytes already say.
    pub(super) announced: Option<usize>,
    pub(super) dict: bool,
}
