//! Packets that are a reason code and properties: PUBACK, PUBREC, PUBREL, PUBCOMP (sections 3.4 to 3.7), DISCONNECT
//! (section 3.14), AUTH (section 3.15).

use crate::error::Fault;
use crate::packet_type::PacketType;
use crate::properties::Properties;
use crate::property::Place;
use crate::reader::Reader;
use crate::reason::ReasonCode;
use crate::sink::{Body, Sink};
use crate::values::{PacketId, Version};

/// PUBACK, PUBREC, PUBREL or PUBCOMP. Before MQTT 5 it is the packet identifier alone: the reason is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    pub packet_id: PacketId,
    pub reason: ReasonCode,
    pub properties: Properties<'a>,
}

/// DISCONNECT. Before MQTT 5 only clients send it, and it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disconnect<'a> {
    pub reason: ReasonCode,
    pub properties: Properties<'a>,
}

/// AUTH, a step of an enhanced authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auth<'a> {
    pub reason: ReasonCode,
    pub properties: Properties<'a>,
}

impl Ack<'_> {
    /// Success, without properties.
    pub fn success(packet_id: PacketId) -> Self {
        Self::with_reason(packet_id, ReasonCode::Success)
    }

    pub fn with_reason(packet_id: PacketId, reason: ReasonCode) -> Self {
        Self {
            packet_id,
            reason,
            properties: Properties::EMPTY,
        }
    }
}

impl<'a> Ack<'a> {
    #[inline]
    pub(crate) fn decode(
        packet_type: PacketType,
        body: &'a [u8],
        version: Version,
    ) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let packet_id = reader.packet_id()?;
        let (reason, properties) = match version {
            Version::V5 => outcome(packet_type, &mut reader)?,
            _ => (ReasonCode::Success, Properties::EMPTY),
        };
        reader.end()?;
        Ok(Self {
            packet_id,
            reason,
            properties,
        })
    }
}

impl<'a> Disconnect<'a> {
    pub fn new(reason: ReasonCode) -> Self {
        Self {
            reason,
            properties: Properties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (reason, properties) = match version {
            Version::V5 => outcome(PacketType::Disconnect, &mut reader)?,
            _ => (ReasonCode::Success, Properties::EMPTY),
        };
        reader.end()?;
        Ok(Self { reason, properties })
    }
}

impl<'a> Auth<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (reason, properties) = outcome(PacketType::Auth, &mut reader)?;
        reader.end()?;
        // Section 3.15.2.2.2; a packet of no octets has none either (section 3.15.2.1).
        if !body.is_empty() && properties.authentication_method().is_none() {
            let name = "authentication method";
            return Err(Fault::Missing { name });
        }
        Ok(Self { reason, properties })
    }
}

/// A reason code and properties; either may be absent, from the end on.
#[inline]
fn outcome<'a>(
    packet_type: PacketType,
    reader: &mut Reader<'a>,
) -> Result<(ReasonCode, Properties<'a>), Fault> {
    if reader.is_at_end() {
        return Ok((ReasonCode::Success, Properties::EMPTY));
    }
    let reason = reason(packet_type, reader.octet("reason code")?)?;
    if reader.is_at_end() {
        return Ok((reason, Properties::EMPTY));
    }
    let properties = Properties::read(reader, Place::Packet(packet_type))?;
    Ok((reason, properties))
}

/// A reason code that the packet may have.
pub(crate) fn reason(packet_type: PacketType, found: u8) -> Result<ReasonCode, Fault> {
    match ReasonCode::from_octet(found) {
        Some(reason) if reason.is_allowed_in(packet_type) => Ok(reason),
        Some(found) => Err(Fault::Reason { found }),
        None => Err(Fault::UnknownReason { found }),
    }
}

/// The shortest form.
fn write_outcome(reason: ReasonCode, properties: Properties<'_>, sink: &mut impl Sink) {
    if !properties.is_empty() {
        sink.octet(reason.octet());
        properties.write(sink);
    } else if reason != ReasonCode::Success {
        sink.octet(reason.octet());
    }
}

impl Body for Ack<'_> {
    #[inline]
    fn write(&self, version: Version, sink: &mut impl Sink) {
        sink.short(self.packet_id.get());
        if version.is_v5() {
            write_outcome(self.reason, self.properties, sink);
        }
    }
}

impl Body for Disconnect<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        if version.is_v5() {
            write_outcome(self.reason, self.properties, sink);
        }
    }
}

impl Body for Auth<'_> {
    fn write(&self, _: Version, sink: &mut impl Sink) {
        write_outcome(self.reason, self.properties, sink);
    }
}
