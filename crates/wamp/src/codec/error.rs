//! Errors of decoding and of encoding.

use std::borrow::Cow;
use std::fmt;

use crate::MessageType;

/// Why bytes are not a WAMP message, or not one value.
///
/// It gives the place, the expected and the actual value, in one line: `CALL: procedure at byte 12: expected text,
/// found integer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Box<Detail>);

/// Boxed, so that the results of the hot path stay two words wide.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    message: Option<MessageType>,
    element: String,
    offset: usize,
    expected: Cow<'static, str>,
    found: Cow<'static, str>,
    limit: bool,
    surrogate: bool,
}

impl DecodeError {
    /// Whether the bytes may be well-formed but go beyond a limit of this reader.
    pub fn is_limit(&self) -> bool {
        self.0.limit
    }

    /// Whether it is half of a character that JSON's grammar allows and Unicode does not:
    /// [`super::replace_lone_surrogates`] makes the text readable.
    pub fn is_lone_surrogate(&self) -> bool {
        self.0.surrogate
    }

    /// The message, as far as its type was read.
    pub fn message(&self) -> Option<MessageType> {
        self.0.message
    }

    /// The offset of the fault.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    #[cold]
    pub(super) fn unexpected(
        offset: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Detail {
            message: None,
            element: String::new(),
            offset,
            expected: expected.into(),
            found: found.into(),
            limit: false,
            surrogate: false,
        }))
    }

    #[cold]
    pub(super) fn lone_surrogate(offset: usize) -> Self {
        let mut error = Self::unexpected(offset, "a surrogate pair", "a lone surrogate");
        error.0.surrogate = true;
        error
    }

    #[cold]
    pub(super) fn negative(offset: usize) -> Self {
        Self::unexpected(offset, "integer that is not negative", "negative integer")
    }

    #[cold]
    pub(super) fn too_deep(offset: usize) -> Self {
        let mut error = Self::unexpected(
            offset,
            "fewer lists and dictionaries inside one another",
            "one more",
        );
        error.0.limit = true;
        error
    }

    #[cold]
    pub(super) fn too_many_values(offset: usize, values_max: usize) -> Self {
        let mut error =
            Self::unexpected(offset, format!("at most {values_max} values"), "one more");
        error.0.limit = true;
        error
    }

    /// Names the key it is under, unless that is done. The key is the peer's own word, and ends in
    /// logs: it is escaped and cut.
    #[cold]
    pub(super) fn under(mut self, key: &str) -> Self {
        if self.0.element.is_empty() {
            let key: String = key.chars().take(40).flat_map(char::escape_debug).collect();
            self.0.element = format!(".{key}");
        }
        self
    }

    /// Names the part of the message it is in.
    #[cold]
    pub(super) fn inside(mut self, element: &str) -> Self {
        self.0.element.insert_str(0, element);
        self
    }

    #[cold]
    pub(super) fn of(mut self, message: MessageType) -> Self {
        self.0.message = Some(message);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail {
            message,
            element,
            offset,
            expected,
            found,
            ..
        } = &*self.0;
        if let Some(message) = message {
            write!(f, "{}: ", message.name())?;
        }
        if !element.is_empty() {
            write!(f, "{element} ")?;
        }
        write!(f, "at byte {offset}: expected {expected}, found {found}")
    }
}

impl std::error::Error for DecodeError {}

/// A value that the other serializer cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscodeError {
    /// The reason, for a person.
    pub reason: &'static str,
}

impl TranscodeError {
    /// The other serializer's form is longer than it may be.
    pub const TOO_LONG: Self = Self {
        reason: "a value that is too long in the other serializer",
    };

    #[cold]
    pub(super) fn new(reason: &'static str) -> Self {
        Self { reason }
    }
}

impl fmt::Display for TranscodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for TranscodeError {}
