//! The cases: a broker's work for clients of MQTT.

use serde::{Deserialize, Serialize};

use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// One publisher, many subscribers, QoS 0, as fast as messages arrive.
    FanOut,
    /// The same at a rate.
    FanOutPaced,
    /// Many publishers, one subscriber, QoS 0.
    FanIn,
    /// One publisher, one subscriber, at each QoS.
    QoS0,
    QoS1,
    QoS2,
    /// QoS 1, and the subscriber's session survives it.
    Durable,
    /// The same with a subscriber that is away: each message has to be kept.
    DurableKept,
    /// Connect, disconnect.
    Connections,
    ConnectionsTls,
    /// The memory of clients that do nothing.
    Idle,
}

names! {
    Case {
        FanOut = "fan-out",
        FanOutPaced = "fan-out-paced",
        FanIn = "fan-in",
        QoS0 = "qos-0",
        QoS1 = "qos-1",
        QoS2 = "qos-2",
        Durable = "durable",
        DurableKept = "durable-kept",
        Connections = "connections",
        ConnectionsTls = "connections-tls",
        Idle = "idle"
    }
    "a case is fan-out, fan-out-paced, fan-in, qos-0, qos-1, qos-2, durable, durable-kept, connections, connections-tls or idle"
}

/// What a round of a case measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Messages,
    Connections { is_tls: bool },
    Memory,
}

impl Case {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Connections => Kind::Connections { is_tls: false },
            Self::ConnectionsTls => Kind::Connections { is_tls: true },
            Self::Idle => Kind::Memory,
            _ => Kind::Messages,
        }
    }

    /// Whether the subscriber's session and its messages survive a lost connection.
    pub(super) fn is_durable(self) -> bool {
        matches!(self, Self::Durable | Self::DurableKept)
    }

    /// Whether the machine's floor does the same: it keeps nothing, and does not encrypt.
    pub(super) fn has_floor(self) -> bool {
        !self.is_durable() && !matches!(self, Self::ConnectionsTls | Self::Idle)
    }

    pub(super) fn qos(self) -> u8 {
        match self {
            Self::QoS1 | Self::Durable | Self::DurableKept => 1,
            Self::QoS2 => 2,
            _ => 0,
        }
    }
}
