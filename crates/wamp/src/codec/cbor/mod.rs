//! CBOR (RFC 8949). Lengths may be indefinite and integers longer than necessary; the output has definite lengths and
//! the shortest heads. Floats are written as doubles, which every peer reads.

mod dates;
mod readable;
mod reader;
mod tags;
mod writer;

pub(super) use readable::{Tags, check as check_readable};
pub(super) use reader::CborReader;
pub(super) use writer::CborWriter;

// The major types (RFC 8949, section 3.1).
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BINARY: u8 = 2;
const TEXT: u8 = 3;
const LIST: u8 = 4;
const DICT: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

/// The byte that ends a value of indefinite length.
const BREAK: u8 = 0xff;
