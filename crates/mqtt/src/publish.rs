//! PUBLISH (section 3.3).

use crate::error::{EncodeError, Fault};
use crate::header::{DUP, RETAIN};
use crate::packet_type::PacketType;
use crate::properties::Properties;
use crate::property::Place;
use crate::reader::Reader;
use crate::sink::{Body, Sink};
use crate::values::{PacketId, QoS, Version};

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    pub delivery: Delivery,
    /// Only with a packet identifier.
    pub dup: bool,
    pub retain: bool,
    /// Empty if the topic alias stands for it.
    pub topic: &'a str,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
    pub payload: &'a [u8],
}

/// The quality of service of a PUBLISH, with the packet identifier that QoS 1 and 2 need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    AtMostOnce,
    AtLeastOnce(PacketId),
    ExactlyOnce(PacketId),
}

impl Delivery {
    pub fn qos(self) -> QoS {
        match self {
            Self::AtMostOnce => QoS::AtMostOnce,
            Self::AtLeastOnce(_) => QoS::AtLeastOnce,
            Self::ExactlyOnce(_) => QoS::ExactlyOnce,
        }
    }

    pub fn packet_id(self) -> Option<PacketId> {
        match self {
            Self::AtMostOnce => None,
            Self::AtLeastOnce(id) | Self::ExactlyOnce(id) => Some(id),
        }
    }

    /// The first octet of a PUBLISH. DUP is left out at QoS 0.
    pub(crate) fn first_octet(self, dup: bool, retain: bool) -> u8 {
        let quality = match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce(_) => QoS::AtLeastOnce.octet() << 1 | u8::from(dup) << 3,
            Self::ExactlyOnce(_) => QoS::ExactlyOnce.octet() << 1 | u8::from(dup) << 3,
        };
        (PacketType::Publish as u8) << 4 | quality | u8::from(retain)
    }
}

impl<'a> Publish<'a> {
    #[inline]
    pub(crate) fn decode(flags: u8, body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let topic = reader.topic_or_empty("topic name")?;
        let dup = flags & DUP != 0;
        let delivery = match flags >> 1 & 3 {
            // 3.1 does not forbid it.
            0 if dup && version != Version::V31 => return Err(Fault::DupWithoutQoS),
            0 => Delivery::AtMostOnce,
            1 => Delivery::AtLeastOnce(reader.packet_id()?),
            2 => Delivery::ExactlyOnce(reader.packet_id()?),
            _ => return Err(Fault::PublishQoS),
        };
        let properties = match version {
            Version::V5 => Properties::read(&mut reader, Place::Packet(PacketType::Publish))?,
            _ => Properties::EMPTY,
        };
        if topic.is_empty() && properties.topic_alias().is_none() {
            return Err(Fault::NoTopic);
        }
        Ok(Self {
            delivery,
            dup: dup && delivery != Delivery::AtMostOnce,
            retain: flags & RETAIN != 0,
            topic,
            properties,
            payload: reader.rest(),
        })
    }

    /// Appends the packet, with all of its properties. [`crate::Message`] is the form for passing on.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let first = self.delivery.first_octet(self.dup, self.retain);
        self.append(first, version, out)
    }
}

impl Body for Publish<'_> {
    #[inline]
    fn write(&self, version: Version, sink: &mut impl Sink) {
        sink.text("topic name", self.topic);
        if let Some(id) = self.delivery.packet_id() {
            sink.short(id.get());
        }
        if version.is_v5() {
            self.properties.write(sink);
        }
        sink.put(self.payload);
    }
}
