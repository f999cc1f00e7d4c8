//! What is measured: what a broker must do for a message.

use serde::{Deserialize, Serialize};

use crate::subject::names;

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
    /// Whether messages are to survive.
    pub(super) fn is_durable(self) -> bool {
        !matches!(self, Self::Transient | Self::Priorities)
    }

    /// Whether quorum queues can do it, and what is replicated survives anything by it.
    pub(super) fn is_replicable(self) -> bool {
        matches!(self, Self::Durable | Self::Paced | Self::DurableKept)
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

names! {
    Case {
        Transient = "transient",
        Priorities = "priorities",
        Durable = "durable",
        Transactions = "transactions",
        Paced = "paced",
        DurableKept = "durable-kept"
    }
    "a case is transient, priorities, durable, transactions, paced or durable-kept"
}
