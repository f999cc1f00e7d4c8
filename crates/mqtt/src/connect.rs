//! CONNECT and CONNACK (sections 3.1 and 3.2).

use crate::ack::reason;
use crate::error::Fault;
use crate::packet_type::PacketType;
use crate::properties::Properties;
use crate::property::Place;
use crate::reader::Reader;
use crate::reason::ReasonCode;
use crate::sink::{Body, Sink};
use crate::values::{QoS, Version};

/// CONNECT. It decides the version of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    pub version: Version,
    /// The bit 0x80 of the protocol level, by which bridges of mosquitto and others identify themselves in 3.1 and
    /// 3.1.1: such a client gets RETAIN as published, and none of its own messages.
    pub is_bridge: bool,
    /// Clean start, which is clean session before MQTT 5.
    pub clean_start: bool,
    /// Seconds; 0 turns keep-alive off.
    pub keep_alive: u16,
    /// Empty if the server is to assign one. 3.1 does not allow that, nor 3.1.1 without clean session: the session
    /// answers with [`ReasonCode::ClientIdentifierNotValid`].
    pub client_id: &'a str,
    pub will: Option<Will<'a>>,
    pub user_name: Option<&'a str>,
    pub password: Option<&'a [u8]>,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
}

/// The message that the server publishes for a client that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: QoS,
    pub retain: bool,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
}

/// CONNACK. Before MQTT 5 its reason is written as [`ReasonCode::return_code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnAck<'a> {
    /// 3.1 does not have it.
    pub session_present: bool,
    pub reason: ReasonCode,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
}

/// The bit of the protocol level by which a bridge identifies itself.
const BRIDGE: u8 = 0x80;

// The connect flags (section 3.1.2.3).
const USER_NAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
const WILL_RETAIN: u8 = 0x20;
const WILL_QOS: u8 = 0x18;
const WILL: u8 = 0x04;
const CLEAN_START: u8 = 0x02;
const RESERVED: u8 = 0x01;

/// The protocol that a CONNECT asks for (sections 3.1.2.1 and 3.1.2.2).
pub(crate) struct Protocol {
    version: Version,
    is_bridge: bool,
}

impl Protocol {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let name = reader.data("protocol name")?;
        let level = reader.octet("protocol level")?;
        let by_level = |level| {
            let found = Version::from_level(level)?;
            (found.protocol_name().as_bytes() == name).then_some(found)
        };
        if let Some(version) = by_level(level) {
            return Ok(Self {
                version,
                is_bridge: false,
            });
        }
        match by_level(level & !BRIDGE) {
            Some(version @ (Version::V31 | Version::V311)) => Ok(Self {
                version,
                is_bridge: true,
            }),
            _ => Err(Fault::Protocol {
                level,
                is_mqtt: name == b"MQTT" || name == b"MQIsdp",
            }),
        }
    }

    fn level(connect: &Connect<'_>) -> u8 {
        let is_bridge = connect.is_bridge && !connect.version.is_v5();
        connect.version.level() | if is_bridge { BRIDGE } else { 0 }
    }
}

impl<'a> Connect<'a> {
    /// A fault comes with the version, as far as the packet names one.
    pub(crate) fn decode(body: &'a [u8], assumed: Version) -> Result<Self, (Version, Fault)> {
        let mut reader = Reader::new(body);
        let protocol = Protocol::read(&mut reader).map_err(|fault| (assumed, fault))?;
        let version = protocol.version;
        Self::decode_rest(protocol, reader).map_err(|fault| (version, fault))
    }

    fn decode_rest(protocol: Protocol, mut reader: Reader<'a>) -> Result<Self, Fault> {
        let Protocol { version, is_bridge } = protocol;
        let flags = reader.octet("connect flags")?;
        check_flags(flags, version)?;
        let keep_alive = reader.short("keep alive")?;
        let properties = block(&mut reader, Place::Packet(PacketType::Connect), version)?;
        let client_id = reader.text("client identifier")?;
        let will = match flags & WILL {
            0 => None,
            _ => Some(Will::read(&mut reader, flags, version)?),
        };
        // 3.1 allows a packet that ends before the user name and password that its flags announce (section 3.1 of 3.1).
        let is_there = |reader: &Reader<'_>, flag| {
            flags & flag != 0 && !(version == Version::V31 && reader.is_at_end())
        };
        let user_name = match is_there(&reader, USER_NAME) {
            true => Some(reader.text("user name")?),
            false => None,
        };
        let password = match is_there(&reader, PASSWORD) {
            true => Some(reader.data("password")?),
            false => None,
        };
        reader.end()?;
        Ok(Self {
            version,
            is_bridge,
            clean_start: flags & CLEAN_START != 0,
            keep_alive,
            client_id,
            will,
            user_name,
            password,
            properties,
        })
    }

    fn flags(&self) -> u8 {
        let bit = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let will = self.will.map_or(0, |will| {
            WILL | bit(will.retain, WILL_RETAIN) | will.qos.octet() << 3
        });
        bit(self.clean_start, CLEAN_START)
            | will
            | bit(self.user_name.is_some(), USER_NAME)
            | bit(self.password.is_some(), PASSWORD)
    }
}

impl<'a> Will<'a> {
    fn read(reader: &mut Reader<'a>, flags: u8, version: Version) -> Result<Self, Fault> {
        Ok(Self {
            properties: block(reader, Place::Will, version)?,
            topic: reader.topic("will topic")?,
            payload: reader.data("will payload")?,
            qos: QoS::from_octet((flags & WILL_QOS) >> 3).ok_or(Fault::WillQoS)?,
            retain: flags & WILL_RETAIN != 0,
        })
    }
}

/// Checks the connect flags among each other. 3.1 has the reserved bit and the flags of an absent will undefined.
fn check_flags(flags: u8, version: Version) -> Result<(), Fault> {
    let is_strict = version != Version::V31;
    if is_strict && flags & RESERVED != 0 {
        return Err(Fault::ConnectReserved);
    }
    if flags & WILL != 0 && flags & WILL_QOS == WILL_QOS {
        return Err(Fault::WillQoS);
    }
    if is_strict && flags & WILL == 0 && flags & (WILL_QOS | WILL_RETAIN) != 0 {
        return Err(Fault::WillFlags);
    }
    if !version.is_v5() && flags & (PASSWORD | USER_NAME) == PASSWORD {
        return Err(Fault::PasswordAlone);
    }
    Ok(())
}

/// Properties, which there are from MQTT 5 on.
fn block<'a>(
    reader: &mut Reader<'a>,
    place: Place,
    version: Version,
) -> Result<Properties<'a>, Fault> {
    match version {
        Version::V5 => Properties::read(reader, place),
        _ => Ok(Properties::EMPTY),
    }
}

impl Body for Connect<'_> {
    /// In the version of the packet: the argument is that of the connection, which it decides.
    fn write(&self, _: Version, sink: &mut impl Sink) {
        sink.text("protocol name", self.version.protocol_name());
        sink.octet(Protocol::level(self));
        sink.octet(self.flags());
        sink.short(self.keep_alive);
        let write_properties = |properties: Properties<'_>, sink: &mut _| {
            if self.version.is_v5() {
                properties.write(sink);
            }
        };
        write_properties(self.properties, sink);
        sink.text("client identifier", self.client_id);
        if let Some(will) = self.will {
            write_properties(will.properties, sink);
            sink.text("will topic", will.topic);
            sink.data("will payload", will.payload);
        }
        if let Some(user_name) = self.user_name {
            sink.text("user name", user_name);
        }
        if let Some(password) = self.password {
            sink.data("password", password);
        }
    }
}

impl<'a> ConnAck<'a> {
    /// A refusal, or a success without a session and properties.
    pub fn new(reason: ReasonCode) -> Self {
        Self {
            session_present: false,
            reason,
            properties: Properties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let flags = reader.octet("connect acknowledge flags")?;
        // Reserved in 3.1, and nowhere said to be 0.
        let flags = if version == Version::V31 { 0 } else { flags };
        if flags > 1 {
            return Err(Fault::Value {
                field: "connect acknowledge flags",
                found: flags.into(),
                expected: "0 or 1",
            });
        }
        let code = reader.octet("reason code")?;
        let (reason, properties) = match version {
            Version::V5 => (
                reason(PacketType::ConnAck, code)?,
                Properties::read(&mut reader, Place::Packet(PacketType::ConnAck))?,
            ),
            _ => {
                let unknown = Fault::UnknownReason { found: code };
                let reason = ReasonCode::from_return_code(code).ok_or(unknown)?;
                (reason, Properties::EMPTY)
            }
        };
        reader.end()?;
        Ok(Self {
            session_present: flags == 1,
            reason,
            properties,
        })
    }
}

impl Body for ConnAck<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        sink.octet(u8::from(self.session_present && version != Version::V31));
        match version {
            Version::V5 => {
                sink.octet(self.reason.octet());
                self.properties.write(sink);
            }
            _ => sink.octet(self.reason.return_code()),
        }
    }
}
