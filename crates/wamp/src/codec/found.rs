//! The findings of the second look at a payload.

use super::DecodeError;

pub(super) type Result<T> = std::result::Result<T, Found>;

/// A value in one part of a payload that common receivers cannot read.
pub(super) struct Found {
    pub(super) offset: usize,
    pub(super) kind: &'static str,
    pub(super) what: Option<String>,
}

impl Found {
    pub(super) fn new(offset: usize, kind: &'static str) -> Self {
        let what = None;
        Self { offset, kind, what }
    }

    /// With a text, `what`, which replaces the kind in the message.
    pub(super) fn with(offset: usize, kind: &'static str, what: String) -> Self {
        let what = Some(what);
        Self { offset, kind, what }
    }
}

impl From<DecodeError> for Found {
    fn from(error: DecodeError) -> Self {
        Self::new(error.offset(), "bytes that are not a value")
    }
}
