//! The reading half of a serializer, as the decoders of messages and values need it.

use std::borrow::Cow;

use super::DecodeError;
use super::big::BigInteger;
use crate::text::from_utf8;

pub(super) type Result<T> = std::result::Result<T, DecodeError>;

/// Reads one serializer's bytes from front to back.
///
/// Lists and dictionaries are opened, asked for [`more`](Reader::more) until there is none, and are then closed. A
/// dictionary's entry is a key, the [`separator`](Reader::separator) and a value.
///
/// Code on the path of every message is inlined by force in the readers: a short CALL thereby costs 8 % (MessagePack)
/// and 11 % (CBOR) fewer instructions, and the code does not grow.
pub(super) trait Reader<'a>: Sized {
    fn new(bytes: &'a [u8]) -> Result<Self>;

    /// Skips invalid JSON that Python's `json` writes: NaN and infinity. They are doubtful.
    fn tolerate(&mut self) {}
    /// Whether something was walked over that common receivers may be unable to read:
    /// [`super::check_readable`] says.
    fn is_doubtful(&self) -> bool;

    fn open_list(&mut self) -> Result<Open>;
    fn open_dict(&mut self) -> Result<Open>;
    /// Whether another element follows; reads the separator.
    fn more(&mut self, open: &mut Open) -> Result<bool>;
    /// Reads the separator between a key and its value.
    fn separator(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reads a null, if one comes next, or JavaScript's undefined as libraries write it.
    fn null(&mut self) -> bool;
    /// An integer that is not negative. If something else comes next, nothing is read.
    fn unsigned(&mut self) -> Result<u64>;
    fn boolean(&mut self) -> Result<bool>;
    fn text(&mut self) -> Result<Cow<'a, str>>;
    /// Any value; opens a list or dictionary.
    fn token(&mut self) -> Result<Token<'a>>;

    /// Walks over text.
    fn skip_text(&mut self) -> Result<()>;
    /// Walks over any value, which may have `depth_left` lists and dictionaries in one another.
    fn skip(&mut self, depth_left: usize) -> Result<()>;

    /// The kind of the next value.
    fn kind(&mut self) -> Result<Kind>;
    /// The offset of the next value.
    fn value_offset(&mut self) -> usize;
    /// The offset behind the last value.
    fn offset(&self) -> usize;
    fn bytes(&self) -> &'a [u8];

    /// Expects that nothing is left.
    fn end(&mut self) -> Result<()> {
        let offset = self.value_offset();
        if offset == self.bytes().len() {
            return Ok(());
        }
        let left = self.bytes().len() - offset;
        Err(DecodeError::unexpected(
            offset,
            "the end",
            format!("{left} more bytes"),
        ))
    }

    /// Walks over a list and returns its bytes.
    fn list_bytes(&mut self, depth_left: usize) -> Result<&'a [u8]> {
        let start = self.value_offset();
        let depth_left = enter(depth_left, start)?;
        let mut list = self.open_list()?;
        while self.more(&mut list)? {
            self.skip(depth_left)?;
        }
        Ok(&self.bytes()[start..self.offset()])
    }

    /// Skips a dictionary whose own keys are text, and returns its bytes.
    fn dict_bytes(&mut self, depth_left: usize) -> Result<&'a [u8]> {
        let start = self.value_offset();
        let depth_left = enter(depth_left, start)?;
        let mut dict = self.open_dict()?;
        while self.more(&mut dict)? {
            self.skip_text()?;
            self.separator()?;
            self.skip(depth_left)?;
        }
        Ok(&self.bytes()[start..self.offset()])
    }

    /// The error that something else than `expected` comes next.
    #[cold]
    fn unexpected(&mut self, expected: &'static str) -> DecodeError {
        let offset = self.value_offset();
        match self.kind() {
            Ok(kind) => DecodeError::unexpected(offset, expected, kind.name()),
            Err(error) => error,
        }
    }
}

/// Counts one list or dictionary, found at `offset`, against the depth that is left.
pub(super) fn enter(depth_left: usize, offset: usize) -> Result<usize> {
    depth_left
        .checked_sub(1)
        .ok_or_else(|| DecodeError::too_deep(offset))
}

/// Expects `bytes`, which begin at `offset`, to be text. Most text is ASCII, which is checked much faster than UTF-8 in
/// general.
#[inline]
pub(super) fn check_text(bytes: &[u8], offset: usize) -> Result<()> {
    if bytes.is_ascii() {
        Ok(())
    } else {
        text(bytes, offset).map(|_| ())
    }
}

/// The text in `bytes`, which begin at `offset`.
#[inline]
pub(super) fn text(bytes: &[u8], offset: usize) -> Result<&str> {
    from_utf8(bytes).map_err(|error| {
        DecodeError::unexpected(offset + error.valid_up_to(), "UTF-8", "other bytes")
    })
}

/// An open list or dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Elements still to come (of a dictionary: entries), when a count stands in front.
    pub(super) left: Option<u64>,
    /// Nothing of it was read yet.
    pub(super) first: bool,
    pub(super) dict: bool,
}

impl Open {
    pub(super) fn counted(left: u64, dict: bool) -> Self {
        Self {
            left: Some(left),
            first: true,
            dict,
        }
    }

    pub(super) fn delimited(dict: bool) -> Self {
        Self {
            left: None,
            first: true,
            dict,
        }
    }
}

/// One value, or the beginning of a list or dictionary.
#[derive(Clone, Debug)]
pub(super) enum Token<'a> {
    Null,
    Boolean(bool),
    /// In the range of a CBOR integer.
    Integer(i128),
    /// Beyond that.
    BigInteger(BigInteger),
    Float(f64),
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
    List(Open),
    Dict(Open),
    /// A value that only this serializer has, by its kind. It was not read completely.
    Foreign(&'static str),
}

/// The kinds of values, for messages to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Float,
    Text,
    Binary,
    List,
    Dict,
    Foreign(&'static str),
    End,
}

impl Kind {
    pub(super) fn is_text(self) -> bool {
        self == Self::Text
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::List => "list",
            Self::Dict => "dictionary",
            Self::Foreign(name) => name,
            Self::End => "the end",
        }
    }
}
