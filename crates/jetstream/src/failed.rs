//! Why a request has no answer.

use std::fmt;

use crate::answer::{Problem, Wrong};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The connection has ended, or is about to.
    Ended(String),
    /// No answer in time: the request may have succeeded.
    Silent,
    /// No responder: the server has no JetStream, or no stream of that name.
    Nobody,
    /// Too many bytes wait to be written.
    Full,
    /// The request's subject is invalid.
    Subject,
    /// The server's refusal.
    Refused(Problem),
    /// The answer is malformed.
    Answer(Wrong),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(why) => write!(f, "the connection has ended: {why}"),
            Self::Silent => f.write_str("no answer in time"),
            Self::Nobody => f.write_str("no responders: does the server have JetStream enabled?"),
            Self::Full => f.write_str("too many bytes wait to be sent"),
            Self::Subject => f.write_str("the subject is invalid"),
            Self::Refused(problem) => problem.fmt(f),
            Self::Answer(what) => write!(f, "the answer has no {what}"),
        }
    }
}

impl std::error::Error for Failed {}
