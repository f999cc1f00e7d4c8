//! Reply codes (the reference, "constants"): why a channel or a connection is closed.

use std::fmt;

macro_rules! reply_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal,)*) => {
        /// Why something is closed, returned or refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ReplyCode {
            $($(#[$doc])* $name = $code,)*
        }

        impl ReplyCode {
            /// The name by which a reply text begins.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

reply_codes! {
    Success = 200 "OK",
    ContentTooLarge = 311 "CONTENT_TOO_LARGE",
    NoRoute = 312 "NO_ROUTE",
    NoConsumers = 313 "NO_CONSUMERS",
    ConnectionForced = 320 "CONNECTION_FORCED",
    InvalidPath = 402 "INVALID_PATH",
    AccessRefused = 403 "ACCESS_REFUSED",
    NotFound = 404 "NOT_FOUND",
    ResourceLocked = 405 "RESOURCE_LOCKED",
    PreconditionFailed = 406 "PRECONDITION_FAILED",
    FrameError = 501 "FRAME_ERROR",
    SyntaxError = 502 "SYNTAX_ERROR",
    CommandInvalid = 503 "COMMAND_INVALID",
    ChannelError = 504 "CHANNEL_ERROR",
    UnexpectedFrame = 505 "UNEXPECTED_FRAME",
    ResourceError = 506 "RESOURCE_ERROR",
    NotAllowed = 530 "NOT_ALLOWED",
    NotImplemented = 540 "NOT_IMPLEMENTED",
    InternalError = 541 "INTERNAL_ERROR",
}

impl ReplyCode {
    /// The number on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Whether it closes the connection, and not only its channel.
    pub fn is_hard(self) -> bool {
        matches!(self.code(), 320 | 402 | 501..=530 | 540 | 541)
    }
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
