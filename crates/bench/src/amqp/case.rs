//! What is measured: what a broker must do for a message.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::subject::ParseError;

/// From the least to the most that is asked of brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// A queue in memory, no confirms, automatic acknowledgements.
    Transient,
    /// A queue in memory with priorities, acknowledgements: messages of all priorities in turn.
    Priorities,
    /// A durable queue, persistent messages, confirms, acknowledgements.
    Durable,
    /// The same in transactions: each window is one.
    Transactions,
    /// Durable, one message after the other at a rate: how long confirms take.
    Paced,
    /// Durable without a consumer: no message is gone before it had to be written.
    DurableKept,
}

impl Case {
    pub(crate) const ALL: [Self; 6] = [
        Self::Transient,
        Self::Priorities,
        Self::Durable,
        Self::Transactions,
        Self::Paced,
        Self::DurableKept,
    ];

    /// Whether messages are to survive.
    pub(super) fn is_durable(self) -> bool {
        !matches!(self, Self::Transient | Self::Priorities)
    }

    /// Whether consumers say what they have done with a message.
    pub(super) fn is_acknowledged(self) -> bool {
        self != Self::Transient
    }

    /// How many priorities its messages have in turn, from 0.
    pub(super) fn levels(self) -> u8 {
        match self {
            Self::Priorities => LEVELS,
            _ => 1,
        }
    }
}

/// With `x-max-priority` 10, as its documentation advises and Celery's users have it.
const LEVELS: u8 = 11;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Priorities => "priorities",
            Self::Durable => "durable",
            Self::Transactions => "transactions",
            Self::Paced => "paced",
            Self::DurableKept => "durable-kept",
        })
    }
}

impl FromStr for Case {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|case| case.to_string() == text);
        found.ok_or_else(|| {
            let expected =
                "a case is transient, priorities, durable, transactions, paced or durable-kept";
            ParseError::new(text, expected)
        })
    }
}
