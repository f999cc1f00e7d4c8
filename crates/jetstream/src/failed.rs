//! Why there is no answer.

use std::fmt;

use crate::answer::{Problem, Wrong};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The connection has ended, or is about to.
    Ended(String),
    /// None came in time: whether what was asked for was done is not known.
    Silent,
    /// Nobody is there who would answer: the server has no streams, or none by that name.
    Nobody,
    /// More waits to be written than may.
    Full,
    /// What was asked for cannot be: its words are no subject's.
    Subject,
    /// The server's refusal, in its words.
    Refused(Problem),
    /// The answer is none.
    Answer(Wrong),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(why) => write!(f, "the connection has ended: {why}"),
            Self::Silent => f.write_str("no answer in time"),
            Self::Nobody => f.write_str("nobody answers: has the server JetStream?"),
            Self::Full => f.write_str("too much waits to be sent"),
            Self::Subject => f.write_str("it is no subject"),
            Self::Refused(problem) => problem.fmt(f),
            Self::Answer(what) => write!(f, "the answer has no {what}"),
        }
    }
}

impl std::error::Error for Failed {}
