//! Reading arguments: bytes, integers, strings, packed bits.

use std::{fmt, str};

/// A place in a method's arguments or in a table.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The octet that bits come from, and how many of it are read; bits that follow each other
    /// share bytes (section 4.2.5.2).
    bits: Option<(u8, u8)>,
}

/// A fault in arguments or properties. The caller knows the context, and so the reply code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// They end too early.
    Short,
    /// There are bytes behind them.
    Long { bytes: usize },
    /// A short string that is not UTF-8, although the protocol requires a name.
    NotUtf8,
    /// A field value of an undefined type.
    UnknownTag { tag: u8 },
    /// Tables and arrays within each other beyond 64.
    TooDeep,
}

impl<'a> Reader<'a> {
    /// At the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            bits: None,
        }
    }

    /// The bytes that have not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn octet(&mut self) -> Result<u8, ReadError> {
        self.array().map(|[octet]| octet)
    }

    pub fn short(&mut self) -> Result<u16, ReadError> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn long(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn longlong(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn bit(&mut self) -> Result<bool, ReadError> {
        let (octet, read) = match self.bits {
            Some((octet, read)) if read < 8 => (octet, read),
            _ => (self.octet()?, 0),
        };
        self.bits = Some((octet, read + 1));
        Ok(octet >> read & 1 == 1)
    }

    pub fn shortstr(&mut self) -> Result<&'a str, ReadError> {
        str::from_utf8(self.shortstr_bytes()?).map_err(|_| ReadError::NotUtf8)
    }

    /// A short string that is passed on, whatever bytes it is of.
    pub(crate) fn shortstr_bytes(&mut self) -> Result<&'a [u8], ReadError> {
        let bytes = self.octet()?;
        self.take(bytes.into())
    }

    pub fn longstr(&mut self) -> Result<&'a [u8], ReadError> {
        let bytes = self.long()?;
        self.take(bytes as usize)
    }

    /// The next bytes, as many as are asked for.
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], ReadError> {
        self.bits = None;
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.bits = None;
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// That nothing is left.
    pub fn end(&self) -> Result<(), ReadError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(ReadError::Long { bytes }),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the bytes end within an argument"),
            Self::Long { bytes } => write!(f, "{bytes} bytes behind the last argument"),
            Self::NotUtf8 => f.write_str("a short string that is not UTF-8"),
            Self::UnknownTag { tag } => write!(f, "a field value of unknown kind {tag:#04x}"),
            Self::TooDeep => f.write_str("tables within tables, too deep"),
        }
    }
}

impl std::error::Error for ReadError {}
