//! A message for its receivers: a head for each of them, and a rest that all share.

use crate::error::EncodeError;
use crate::header::DUP;
use crate::packet_type::PacketType;
use crate::properties::Properties;
use crate::publish::Delivery;
use crate::sink::{Sink, variable_bytes};
use crate::values::{PacketId, REMAINING_MAX, Version};

/// The part of a message that is the same for all receivers.
///
/// [`Self::encode`] writes a whole PUBLISH; receivers with equal heads get the same octets, and those that differ in the
/// packet identifier get a copy on which [`set_packet_id`] was called. [`Self::encode_head`] and [`Self::encode_rest`]
/// write the two parts one by one, for a caller that keeps the rest once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub topic: &'a str,
    /// The publisher's properties. Only those that a server passes on are written; see
    /// [`Properties::write_passed_on`].
    pub properties: Properties<'a>,
    pub payload: &'a [u8],
}

/// The part of a PUBLISH that a receiver has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub delivery: Delivery,
    /// Left out at QoS 0.
    pub dup: bool,
    pub retain: bool,
    /// The message expiry interval that is left, in seconds.
    pub expiry: Option<u32>,
    /// From 1 to 268,435,455 each.
    pub subscription_ids: &'a [u32],
    /// From 1 on. The topic may be empty with one.
    pub topic_alias: Option<u16>,
}

/// Sizes of a PUBLISH, before it is written.
#[derive(Clone, Copy)]
struct Sizes {
    remaining: usize,
    properties: usize,
}

const EXPIRY: u8 = 0x02;
const SUBSCRIPTION_ID: u8 = 0x0B;
const TOPIC_ALIAS: u8 = 0x23;

impl Head<'_> {
    /// QoS 0, and nothing else.
    pub const PLAIN: Head<'static> = Head {
        delivery: Delivery::AtMostOnce,
        dup: false,
        retain: false,
        expiry: None,
        subscription_ids: &[],
        topic_alias: None,
    };

    /// Octets of the receiver's own properties.
    fn properties_bytes(&self) -> usize {
        let ids = self.subscription_ids.iter();
        let ids: usize = ids.map(|id| 1 + variable_bytes(*id as usize)).sum();
        ids + self.expiry.map_or(0, |_| 5) + self.topic_alias.map_or(0, |_| 3)
    }
}

impl Message<'_> {
    /// Octets of the whole PUBLISH, to compare with the receiver's maximum packet size.
    pub fn encoded_bytes(&self, version: Version, head: &Head<'_>) -> Result<usize, EncodeError> {
        let remaining = self.sizes(version, head)?.remaining;
        Ok(1 + variable_bytes(remaining) + remaining)
    }

    /// Appends a whole PUBLISH; an error appends nothing.
    #[inline]
    pub fn encode(
        &self,
        version: Version,
        head: &Head<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let sizes = self.sizes(version, head)?;
        out.reserve(5 + sizes.remaining);
        self.put_head(version, head, sizes, out);
        self.encode_rest(version, out);
        Ok(())
    }

    /// Appends a receiver's part, which [`Self::encode_rest`] has to follow; an error appends nothing.
    pub fn encode_head(
        &self,
        version: Version,
        head: &Head<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let sizes = self.sizes(version, head)?;
        self.put_head(version, head, sizes, out);
        Ok(())
    }

    /// Appends the part that all receivers of a version share.
    #[inline]
    pub fn encode_rest(&self, version: Version, out: &mut Vec<u8>) {
        if version.is_v5() {
            self.properties.put_passed_on(out);
        }
        out.extend_from_slice(self.payload);
    }

    #[inline]
    fn sizes(&self, version: Version, head: &Head<'_>) -> Result<Sizes, EncodeError> {
        let bytes = self.topic.len();
        if bytes > usize::from(u16::MAX) {
            let field = "topic name";
            return Err(EncodeError::TooLong { field, bytes });
        }
        let packet_id = head.delivery.packet_id().map_or(0, |_| 2);
        let mut remaining = 2 + bytes + packet_id + self.payload.len();
        let mut properties = 0;
        if version.is_v5() {
            properties = head.properties_bytes() + self.properties.passed_on_bytes();
            remaining += variable_bytes(properties) + properties;
        }
        match remaining > REMAINING_MAX as usize {
            true => Err(EncodeError::TooLarge { bytes: remaining }),
            false => Ok(Sizes {
                remaining,
                properties,
            }),
        }
    }

    #[inline]
    fn put_head(&self, version: Version, head: &Head<'_>, sizes: Sizes, out: &mut Vec<u8>) {
        out.octet(head.delivery.first_octet(head.dup, head.retain));
        out.variable(sizes.remaining as u32);
        out.text("topic name", self.topic);
        if let Some(id) = head.delivery.packet_id() {
            out.short(id.get());
        }
        if !version.is_v5() {
            return;
        }
        out.variable(sizes.properties as u32);
        if let Some(seconds) = head.expiry {
            out.octet(EXPIRY);
            out.long(seconds);
        }
        if let Some(alias) = head.topic_alias {
            out.octet(TOPIC_ALIAS);
            out.short(alias);
        }
        for id in head.subscription_ids {
            out.octet(SUBSCRIPTION_ID);
            out.variable(*id);
        }
    }
}

/// Changes the packet identifier of a PUBLISH with QoS 1 or 2 that this crate has encoded, and DUP. Any other octets
/// stay as they are; false is returned then.
pub fn set_packet_id(packet: &mut [u8], id: PacketId, dup: bool) -> bool {
    let Some(length_bytes) = packet
        .iter()
        .skip(1)
        .take(4)
        .position(|octet| octet & 0x80 == 0)
    else {
        return false;
    };
    let first = packet[0];
    if first >> 4 != PacketType::Publish as u8 || first & 0b0110 == 0 {
        return false;
    }
    let topic = 2 + length_bytes;
    let Some([high, low]) = packet.get(topic..topic + 2) else {
        return false;
    };
    let at = topic + 2 + usize::from(u16::from_be_bytes([*high, *low]));
    let Some(place) = packet.get_mut(at..at + 2) else {
        return false;
    };
    place.copy_from_slice(&id.get().to_be_bytes());
    packet[0] = first & !DUP | u8::from(dup) << 3;
    true
}
