//! Faults in packets: what failed, what was expected, what came; and the reason code that fits.

use std::fmt;

use crate::packet_type::PacketType;
use crate::reason::ReasonCode;
use crate::topic::TopicError;
use crate::values::{REMAINING_MAX, Side, Version};

/// Octets that are no packet of the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// None if the first octet has no type of the version.
    pub packet_type: Option<PacketType>,
    /// Of CONNECT: the version that the packet asked for, as far as it was read.
    pub version: Version,
    pub fault: Fault,
}

/// The fault itself. A `field` is a name in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The type does not exist in the version.
    PacketType { number: u8 },
    /// The flags of the fixed header are not those of the type.
    Flags { found: u8, expected: u8 },
    /// The flags of PUBLISH say QoS 3.
    PublishQoS,
    /// PUBLISH has DUP and QoS 0.
    DupWithoutQoS,
    /// The fourth octet of the remaining length announces a fifth.
    LengthTooLong,
    /// The remaining length has more octets than its value needs.
    LengthOverlong,
    /// The packet exceeds the maximum packet size.
    TooLarge { bytes: u32, bytes_max: u32 },
    /// The first packet is not CONNECT.
    NotConnect,
    /// The side that sent this must not send that type of packet.
    Sender { side: Side },
    /// The side that sent this must not send that property.
    SenderProperty { side: Side, name: &'static str },
    /// The side that sent this must not send that reason code.
    SenderReason { side: Side, found: ReasonCode },
    /// The packet ends within the field.
    Short { field: &'static str },
    /// There are octets behind the last field.
    Trailing { bytes: usize },
    /// The text is not UTF-8.
    NotUtf8 { field: &'static str },
    /// The text contains U+0000.
    Null { field: &'static str },
    /// The topic name or filter is invalid.
    Topic {
        field: &'static str,
        error: TopicError,
    },
    /// A variable byte integer has a fifth octet, or more octets than its value needs.
    VariableInteger { field: &'static str },
    /// The value is none of those that the field may have.
    Value {
        field: &'static str,
        found: u32,
        expected: &'static str,
    },
    /// CONNECT names no version that this crate knows.
    Protocol { level: u8, is_mqtt: bool },
    /// The reserved bit of the connect flags is set.
    ConnectReserved,
    /// The connect flags have QoS 3 for the will.
    WillQoS,
    /// The connect flags have a QoS or RETAIN for a will that is not there.
    WillFlags,
    /// The connect flags have a password without a user name, before MQTT 5.
    PasswordAlone,
    /// PUBLISH has neither a topic nor a topic alias.
    NoTopic,
    /// The packet identifier is 0.
    PacketIdZero,
    /// SUBSCRIBE or UNSUBSCRIBE without a filter, or an answer to them without a code.
    Nothing { field: &'static str },
    /// Reserved bits of the subscription options are set.
    OptionsReserved { found: u8 },
    /// The subscription options have QoS 3.
    OptionsQoS,
    /// The subscription options have retain handling 3.
    OptionsRetainHandling,
    /// No Local on a shared subscription.
    NoLocalShared,
    /// The reason code or return code does not exist.
    UnknownReason { found: u8 },
    /// The reason code is not for this packet.
    Reason { found: ReasonCode },
    /// The property identifier does not exist.
    UnknownProperty { id: u32 },
    /// The property is not for this packet.
    Property { name: &'static str, in_will: bool },
    /// The property came twice.
    Duplicate { name: &'static str },
    /// The property is missing although another one, or the packet, requires it.
    Missing { name: &'static str },
    /// A value of the property is out of range.
    PropertyValue {
        name: &'static str,
        found: u32,
        expected: &'static str,
    },
}

/// A packet that has no form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A text or data has more than 65,535 octets.
    TooLong { field: &'static str, bytes: usize },
    /// The remaining length would exceed 268,435,455.
    TooLarge { bytes: usize },
    /// The version does not have the packet.
    Absent {
        packet_type: PacketType,
        version: Version,
    },
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(packet_type: PacketType, version: Version, fault: Fault) -> Self {
        Self {
            packet_type: Some(packet_type),
            version,
            fault,
        }
    }

    #[cold]
    pub(crate) fn without_type(version: Version, fault: Fault) -> Self {
        Self {
            packet_type: None,
            version,
            fault,
        }
    }

    /// The reason code of the DISCONNECT that answers it. A second CONNECT may have faults for which DISCONNECT has no
    /// code: a second one is itself a protocol error (section 3.1).
    pub fn disconnect_reason(&self) -> ReasonCode {
        match self.reason() {
            reason if reason.is_allowed_in(PacketType::Disconnect) => reason,
            _ => ReasonCode::ProtocolError,
        }
    }

    /// The reason code of MQTT 5 for the DISCONNECT or CONNACK that answers it (section 4.13).
    pub fn reason(&self) -> ReasonCode {
        match self.fault {
            Fault::TooLarge { .. } => ReasonCode::PacketTooLarge,
            Fault::Protocol { .. } => ReasonCode::UnsupportedProtocolVersion,
            Fault::Topic { field, error } => match (field, error) {
                (_, TopicError::Null) => ReasonCode::MalformedPacket,
                ("topic filter", _) => ReasonCode::TopicFilterInvalid,
                // A response topic is no topic name to which the packet publishes (section 3.3.2.3.5).
                ("response topic", _) => ReasonCode::ProtocolError,
                _ => ReasonCode::TopicNameInvalid,
            },
            Fault::PropertyValue {
                name: "topic alias",
                ..
            } => ReasonCode::TopicAliasInvalid,
            Fault::NotConnect
            | Fault::Sender { .. }
            | Fault::SenderProperty { .. }
            | Fault::SenderReason { .. }
            | Fault::NoTopic
            | Fault::PacketIdZero
            | Fault::Nothing { .. }
            | Fault::OptionsRetainHandling
            | Fault::NoLocalShared
            | Fault::Reason { .. }
            | Fault::Duplicate { .. }
            | Fault::Missing { .. }
            | Fault::PropertyValue { .. } => ReasonCode::ProtocolError,
            _ => ReasonCode::MalformedPacket,
        }
    }

    /// The CONNACK that the specification has for a faulty CONNECT: the form in which to write it, and its code.
    /// 3.x has one for an unknown version only; any other fault closes the connection without an answer.
    pub fn connack(&self) -> Option<(Version, ReasonCode)> {
        let is_connect = self.packet_type == Some(PacketType::Connect);
        match self.fault {
            // 0x80 is the bit of bridges.
            Fault::Protocol { level, .. } if level & 0x7f < Version::V5.level() => {
                Some((Version::V311, self.reason()))
            }
            Fault::Protocol { .. } => Some((Version::V5, self.reason())),
            _ if is_connect && self.version.is_v5() => Some((Version::V5, self.reason())),
            _ => None,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(packet_type) = self.packet_type {
            write!(f, "{}: ", packet_type.name())?;
        }
        match self.fault {
            Fault::PacketType { number } => {
                write!(
                    f,
                    "packet type {number}, which MQTT {} does not have",
                    self.version
                )
            }
            fault => fault.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PacketType { .. }
            | Self::Flags { .. }
            | Self::PublishQoS
            | Self::DupWithoutQoS
            | Self::LengthTooLong
            | Self::LengthOverlong
            | Self::TooLarge { .. }
            | Self::NotConnect => self.fmt_header(f),
            Self::Sender { .. } | Self::SenderProperty { .. } | Self::SenderReason { .. } => {
                self.fmt_sender(f)
            }
            Self::Protocol { .. }
            | Self::ConnectReserved
            | Self::WillQoS
            | Self::WillFlags
            | Self::PasswordAlone => self.fmt_connect(f),
            Self::UnknownProperty { .. }
            | Self::Property { .. }
            | Self::Duplicate { .. }
            | Self::Missing { .. }
            | Self::PropertyValue { .. } => self.fmt_property(f),
            _ => self.fmt_body(f),
        }
    }
}

impl Fault {
    fn fmt_header(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketType { number } => write!(f, "unknown packet type {number}"),
            Self::Flags { found, expected } => {
                write!(
                    f,
                    "flags {found:#06b} in the fixed header, expected {expected:#06b}"
                )
            }
            Self::PublishQoS => f.write_str("QoS 3, expected 0, 1 or 2"),
            Self::DupWithoutQoS => f.write_str("DUP is set with QoS 0, expected QoS 1 or 2"),
            Self::LengthTooLong => {
                f.write_str("remaining length of more than 4 octets, expected at most 4")
            }
            Self::LengthOverlong => {
                f.write_str("remaining length with more octets than its value needs")
            }
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "packet of {bytes} octets, expected at most {bytes_max}")
            }
            Self::NotConnect => f.write_str("first packet of a connection, expected CONNECT"),
            _ => Ok(()),
        }
    }

    fn fmt_sender(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sender { side: Side::Client } => {
                f.write_str("sent by a client, expected from a server only")
            }
            Self::Sender { .. } => f.write_str("sent by a server, expected from a client only"),
            Self::SenderProperty { side, name } => {
                write!(
                    f,
                    "property {name}, which the {} must not send",
                    side.name()
                )
            }
            Self::SenderReason { side, found } => {
                write!(
                    f,
                    "reason code {found}, which the {} must not send",
                    side.name()
                )
            }
            _ => Ok(()),
        }
    }

    fn fmt_connect(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol {
                level,
                is_mqtt: true,
            } => {
                write!(
                    f,
                    "protocol level {level}, expected MQTT with 4 or 5, or MQIsdp with 3"
                )
            }
            Self::Protocol { level, .. } => {
                write!(
                    f,
                    "unknown protocol name with level {level}, expected MQTT or MQIsdp"
                )
            }
            Self::ConnectReserved => {
                f.write_str("reserved bit of the connect flags is set, expected 0")
            }
            Self::WillQoS => f.write_str("QoS 3 for the will, expected 0, 1 or 2"),
            Self::WillFlags => f.write_str("QoS or RETAIN of a will without the will flag"),
            _ => f.write_str("password without a user name, which only MQTT 5 allows"),
        }
    }

    fn fmt_property(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownProperty { id } => write!(f, "unknown property {id:#04x}"),
            Self::Property {
                name,
                in_will: false,
            } => {
                write!(f, "property {name}, which this packet does not have")
            }
            Self::Property { name, .. } => write!(f, "property {name}, which a will does not have"),
            Self::Duplicate { name } => write!(f, "property {name} twice, expected it once"),
            Self::PropertyValue {
                name,
                found,
                expected,
            } => {
                write!(f, "property {name} is {found}, expected {expected}")
            }
            Self::Missing { name } => write!(f, "property {name} is missing"),
            _ => Ok(()),
        }
    }

    fn fmt_body(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { field } => write!(f, "the packet ends within the {field}"),
            Self::Trailing { bytes } => write!(f, "octets behind the last field: {bytes}"),
            Self::NotUtf8 { field } => write!(f, "the {field} is not UTF-8"),
            Self::Null { field } => write!(f, "the {field} contains U+0000"),
            Self::Topic { field, error } => write!(f, "the {field} {error}"),
            Self::VariableInteger { field } => write!(
                f,
                "the {field} has more octets than its value needs, or more than 4"
            ),
            Self::Value {
                field,
                found,
                expected,
            } => {
                write!(f, "{field} {found}, expected {expected}")
            }
            Self::NoTopic => {
                f.write_str("the topic name is empty, expected a name or a topic alias")
            }
            Self::PacketIdZero => f.write_str("the packet identifier is 0, expected 1 to 65535"),
            Self::Nothing { field } => write!(f, "no {field}, expected one at least"),
            Self::OptionsReserved { found } => {
                write!(
                    f,
                    "subscription options {found:#04x} with reserved bits set, expected 0"
                )
            }
            Self::OptionsQoS => {
                f.write_str("QoS 3 in the subscription options, expected 0, 1 or 2")
            }
            Self::OptionsRetainHandling => {
                f.write_str("retain handling 3 in the subscription options, expected 0, 1 or 2")
            }
            Self::NoLocalShared => f.write_str("No Local on a shared subscription, expected 0"),
            Self::UnknownReason { found } => write!(f, "unknown code {found:#04x}"),
            Self::Reason { found } => {
                write!(f, "reason code {found}, which this packet does not have")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { field, bytes } => {
                write!(f, "the {field} has {bytes} octets, expected at most 65535")
            }
            Self::TooLarge { bytes } => write!(
                f,
                "remaining length of {bytes} octets, expected at most {REMAINING_MAX}"
            ),
            Self::Absent {
                packet_type,
                version,
            } => {
                write!(f, "MQTT {version} does not have {}", packet_type.name())
            }
        }
    }
}

impl std::error::Error for EncodeError {}
