//! What is measured: what a broker must do for a message.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::case::ParseError;

/// The two ends of what is asked of brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// A queue in memory, no confirms, automatic acknowledgements.
    Transient,
    /// A durable queue, persistent messages, confirms, acknowledgements.
    Durable,
}

impl Case {
    pub const ALL: [Self; 2] = [Self::Transient, Self::Durable];
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Durable => "durable",
        })
    }
}

impl FromStr for Case {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|case| case.to_string() == text);
        found.ok_or_else(|| ParseError::new(text, "a case is transient or durable"))
    }
}
