//! The cases: a broker's work per message.

use serde::{Deserialize, Serialize};

use crate::subject::names;

/// From the least to the most demanding.
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
    /// Durable, one message after the other at a rate: the latency of confirms.
    Paced,
    /// Durable without a consumer: every message has to be written.
    DurableKept,
}

impl Case {
    /// Whether messages have to survive.
    pub(super) fn is_durable(self) -> bool {
        !matches!(self, Self::Transient | Self::Priorities)
    }

    /// Whether quorum queues support it, and replication makes it survive.
    pub(super) fn is_replicable(self) -> bool {
        matches!(self, Self::Durable | Self::Paced | Self::DurableKept)
    }

    /// Whether consumers acknowledge messages.
    pub(super) fn is_acknowledged(self) -> bool {
        self != Self::Transient
    }

    /// Number of priorities of its messages, in turn, from 0.
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
