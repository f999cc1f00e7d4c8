//! The values that packets of every kind have: versions, sides, qualities of service, packet identifiers.

use std::fmt;
use std::num::NonZeroU16;

/// The largest remaining length, and the largest value of a variable byte integer (section 1.5.5).
pub const REMAINING_MAX: u32 = 268_435_455;

/// A version of the protocol, in the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 3.1, whose protocol name is `MQIsdp`.
    V31,
    V311,
    V5,
}

/// The quality of service of a message or a subscription (section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum QoS {
    #[default]
    AtMostOnce = 0,
    AtLeastOnce = 1,
    ExactlyOnce = 2,
}

/// A packet identifier, which is never 0 (section 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(NonZeroU16);

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Version {
    pub const ALL: [Self; 3] = [Self::V31, Self::V311, Self::V5];

    /// The protocol name of CONNECT (section 3.1.2.1).
    pub fn protocol_name(self) -> &'static str {
        match self {
            Self::V31 => "MQIsdp",
            Self::V311 | Self::V5 => "MQTT",
        }
    }

    /// The protocol level of CONNECT (section 3.1.2.2).
    pub fn level(self) -> u8 {
        match self {
            Self::V31 => 3,
            Self::V311 => 4,
            Self::V5 => 5,
        }
    }

    /// The version with this protocol level, without the bit of bridges.
    pub fn from_level(level: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.level() == level)
    }

    pub fn is_v5(self) -> bool {
        self == Self::V5
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V31 => "3.1",
            Self::V311 => "3.1.1",
            Self::V5 => "5",
        })
    }
}

impl QoS {
    /// None for 3 and more.
    pub fn from_octet(octet: u8) -> Option<Self> {
        match octet {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    pub fn octet(self) -> u8 {
        self as u8
    }
}

impl PacketId {
    /// The first one that a sender uses.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// None for 0.
    pub fn new(id: u16) -> Option<Self> {
        NonZeroU16::new(id).map(Self)
    }

    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// The one behind it; 1 follows 65,535.
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU16::MIN))
    }
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for PacketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
