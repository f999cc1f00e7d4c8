//! The types of packets, their names and flags.

/// The type of a packet (section 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    Connect = 1,
    ConnAck = 2,
    Publish = 3,
    PubAck = 4,
    PubRec = 5,
    PubRel = 6,
    PubComp = 7,
    Subscribe = 8,
    SubAck = 9,
    Unsubscribe = 10,
    UnsubAck = 11,
    PingReq = 12,
    PingResp = 13,
    Disconnect = 14,
    /// From MQTT 5 on.
    Auth = 15,
}

impl PacketType {
    pub const ALL: [Self; 15] = [
        Self::Connect,
        Self::ConnAck,
        Self::Publish,
        Self::PubAck,
        Self::PubRec,
        Self::PubRel,
        Self::PubComp,
        Self::Subscribe,
        Self::SubAck,
        Self::Unsubscribe,
        Self::UnsubAck,
        Self::PingReq,
        Self::PingResp,
        Self::Disconnect,
        Self::Auth,
    ];

    /// None for 0 and 16 and more.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::ConnAck => "CONNACK",
            Self::Publish => "PUBLISH",
            Self::PubAck => "PUBACK",
            Self::PubRec => "PUBREC",
            Self::PubRel => "PUBREL",
            Self::PubComp => "PUBCOMP",
            Self::Subscribe => "SUBSCRIBE",
            Self::SubAck => "SUBACK",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::UnsubAck => "UNSUBACK",
            Self::PingReq => "PINGREQ",
            Self::PingResp => "PINGRESP",
            Self::Disconnect => "DISCONNECT",
            Self::Auth => "AUTH",
        }
    }

    /// Its own bit in a set of types.
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The flags of all but PUBLISH (section 2.1.3).
    pub(crate) fn flags(self) -> u8 {
        match self {
            Self::PubRel | Self::Subscribe | Self::Unsubscribe => 0b0010,
            _ => 0,
        }
    }

    /// The first octet, for all but PUBLISH.
    pub(crate) fn first_octet(self) -> u8 {
        (self as u8) << 4 | self.flags()
    }
}
