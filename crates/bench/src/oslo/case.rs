//! What is measured: an operation, by a client and a server of one kind.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::subject::case::ParseError;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// A request, and its reply waited for.
    Call,
    /// A request, and the broker's confirm waited for.
    Cast,
}

impl Operation {
    pub const ALL: [Self; 2] = [Self::Call, Self::Cast];

    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Cast => "cast",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|known| known.name() == text);
        found.ok_or_else(|| ParseError::new(text, "an operation is call or cast"))
    }
}

/// Whose client and server drive the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Ours: blocking sockets, the same frames.
    Native,
    /// oslo.messaging itself.
    Python,
}

impl Driver {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Python => "python",
        }
    }
}

/// One of both: `call native`, `cast python`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub operation: Operation,
    pub driver: Driver,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.driver.name())
    }
}
