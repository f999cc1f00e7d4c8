//! JSON (RFC 8259), strictly.
//!
//! The whole text is checked to be UTF-8 once, in front, so that everything behind it can scan
//! bytes and slice text.

mod number;
mod plain;
mod readable;
mod reader;
mod string;
mod surrogates;
mod writer;

pub(super) use readable::check as check_readable;
pub(super) use reader::JsonReader;
pub use surrogates::replace_lone_surrogates;
pub(super) use writer::JsonWriter;

/// The reason for integers of more digits than Python reads.
const TOO_MANY_DIGITS: &str = "an integer of more than 4300 digits";
