//! A message on its way to many receivers, encoded once for all that get the same octets.

use std::sync::Arc;

use crosstie_mqtt::{Head, Message as Encoder, Version};

use crate::aliases::Alias;
use crate::{Content, Message, Packet};

/// The forms of a message for the receivers of one turn. `S` is what the outbox shares.
pub(crate) struct Fan<'a, S> {
    pub(crate) content: Content<'a>,
    /// With octets of its own, once a session keeps it.
    pub(crate) message: Option<Arc<Message>>,
    pub(crate) buffers: Box<Buffers>,
    is_encoded: [bool; FORMS],
    shared: [Option<S>; FORMS],
}

/// Memory for encoded messages, which is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    forms: [Vec<u8>; FORMS],
    pub(crate) head: Vec<u8>,
}

/// Whole packets of QoS 0 in 3.x and in MQTT 5, each with and without the retain flag; then the rests of packets with a
/// head for each receiver.
const FORMS: usize = 6;
const RESTS: usize = 4;

impl<'a, S> Fan<'a, S> {
    pub(crate) fn new(content: Content<'a>, buffers: Option<Box<Buffers>>) -> Self {
        Self {
            content,
            message: None,
            buffers: buffers.unwrap_or_default(),
            is_encoded: [false; FORMS],
            shared: [const { None }; FORMS],
        }
    }

    /// The whole packet at QoS 0; none if it is too large for any packet.
    #[inline]
    pub(crate) fn whole(
        &mut self,
        version: Version,
        retain: bool,
    ) -> Option<(Packet<'_>, &mut Option<S>)> {
        let form = usize::from(version.is_v5()) * 2 + usize::from(retain);
        if !self.is_encoded[form] {
            let octets = emptied(&mut self.buffers.forms[form]);
            let head = Head {
                retain,
                expiry: self.content.expiry_s,
                ..Head::PLAIN
            };
            encoder(&self.content).encode(version, &head, octets).ok()?;
            self.is_encoded[form] = true;
        }
        let packet = Packet {
            head: &[],
            rest: &self.buffers.forms[form],
        };
        Some((packet, &mut self.shared[form]))
    }

    /// The packet at QoS 0 with properties of one receiver.
    pub(crate) fn headed(
        &mut self,
        retain: bool,
        identifiers: &[u32],
        alias: Option<Alias>,
    ) -> Option<(Packet<'_>, &mut Option<S>)> {
        let encoder = with_alias(encoder(&self.content), alias);
        let form = rest(Version::V5);
        if !self.is_encoded[form] {
            let octets = emptied(&mut self.buffers.forms[form]);
            encoder.encode_rest(Version::V5, octets);
            self.is_encoded[form] = true;
        }
        let head = Head {
            retain,
            expiry: self.content.expiry_s,
            subscription_ids: identifiers,
            topic_alias: alias.map(|alias| alias.number),
            ..Head::PLAIN
        };
        let own = &mut self.buffers.head;
        own.clear();
        encoder.encode_head(Version::V5, &head, own).ok()?;
        let packet = Packet {
            head: own,
            rest: &self.buffers.forms[form],
        };
        Some((packet, &mut self.shared[form]))
    }

    /// Bytes of a packet with so many identifiers beside its head and its topic.
    pub(crate) fn other_bytes(&self, identifiers: &[u32]) -> usize {
        let Content {
            properties,
            payload,
            ..
        } = &self.content;
        properties.bytes().len() + payload.len() + 5 * identifiers.len()
    }

    /// The form of a kept message, memory for a head, and the place for what is shared of the rest: that of this message,
    /// or none.
    pub(crate) fn parts<'b>(
        &'b mut self,
        message: &'b Arc<Message>,
        version: Version,
    ) -> (Encoder<'b>, &'b mut Vec<u8>, Option<&'b mut Option<S>>) {
        let own = self.message.as_ref();
        if own.is_some_and(|own| Arc::ptr_eq(own, message)) {
            // The same octets as those behind the head of a packet of QoS 0.
            let shared = &mut self.shared[rest(version)];
            return (encoder(&self.content), &mut self.buffers.head, Some(shared));
        }
        let encoder = Encoder {
            topic: message.topic(),
            properties: message.properties(),
            payload: message.payload(),
        };
        (encoder, &mut self.buffers.head, None)
    }
}

fn rest(version: Version) -> usize {
    RESTS + usize::from(version.is_v5())
}

fn encoder<'a>(content: &Content<'a>) -> Encoder<'a> {
    Encoder {
        topic: content.topic,
        properties: content.properties,
        payload: content.payload,
    }
}

/// The form of a message whose topic has an alias: without the topic, if the receiver knows it.
pub(crate) fn with_alias<'a>(encoder: Encoder<'a>, alias: Option<Alias>) -> Encoder<'a> {
    match alias {
        Some(Alias { is_known: true, .. }) => Encoder {
            topic: "",
            ..encoder
        },
        _ => encoder,
    }
}

/// The octets behind the head.
pub(crate) fn rest_of(message: &Message, version: Version) -> &[u8] {
    match version.is_v5() {
        true => message.tail(),
        false => message.payload(),
    }
}

/// An empty buffer. The memory of a large message is freed.
fn emptied(octets: &mut Vec<u8>) -> &mut Vec<u8> {
    octets.clear();
    octets.shrink_to(FORM_BYTES_KEPT);
    octets
}

/// A larger buffer is not kept for the next message.
const FORM_BYTES_KEPT: usize = 64 << 10;
