//! The application's part of a message, passed on unread.

use crate::Serializer;

/// `Arguments|list` and `ArgumentsKw|dict` of a message as the bytes they came in.
///
/// Both slices hold exactly one well-formed value of [`Payload::serializer`] each (validated by
/// the decoder), or are empty when the message does not have that element. `kwargs` without
/// `args` is allowed here; an encoder then writes an empty list for the arguments.
///
/// A message whose head names an `enc_algo` may have one text or binary value in place of the
/// arguments, and then has no keyword arguments: what Crossbar.io calls payload transparency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The serializer of the bytes.
    pub serializer: Serializer,
    /// One list value, or empty; or the one value in its place.
    pub args: &'a [u8],
    /// One dictionary value, or empty.
    pub kwargs: &'a [u8],
}

impl<'a> Payload<'a> {
    /// No arguments at all.
    pub const EMPTY: Self = Self::new(Serializer::Json, &[], &[]);

    /// Arguments and keyword arguments, as they are on the wire.
    pub const fn new(serializer: Serializer, args: &'a [u8], kwargs: &'a [u8]) -> Self {
        Self {
            serializer,
            args,
            kwargs,
        }
    }

    /// Whether the message has neither arguments nor keyword arguments.
    pub fn is_empty(&self) -> bool {
        self.args.is_empty() && self.kwargs.is_empty()
    }

    /// Bytes of both parts.
    pub fn len(&self) -> usize {
        self.args.len() + self.kwargs.len()
    }
}
