//! A message that is kept: for sessions, as retained, as a will.

use std::str;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crosstie_mqtt::{PacketType, Place, Properties, PropertyKinds, QoS};

use crate::{Content, MessageNumber, Time};

/// A message with octets of its own.
#[derive(Debug)]
pub struct Message {
    /// Topic, properties and payload.
    octets: Box<[u8]>,
    topic_bytes: u32,
    properties_bytes: u32,
    /// The kinds of the properties: a message is sent often, and a publisher may give it many.
    kinds: PropertyKinds,
    pub qos: QoS,
    pub retain: bool,
    /// When the message expires.
    pub expires_at: Option<Time>,
    pub(crate) number: MessageNumber,
    pub(crate) holders: Holders,
}

/// The holders of a message. Only the space changes them, under its owner's lock: the order of memory accesses is that of
/// the lock.
#[derive(Debug)]
pub(crate) struct Holders {
    all: AtomicU32,
    /// Entries of kept sessions.
    stored: AtomicU32,
    /// The position of its record, if that is written at the end of its publication.
    recorded: AtomicU64,
}

impl Message {
    pub fn new(content: &Content<'_>, number: MessageNumber, now: Time) -> Self {
        let Content { topic, payload, .. } = *content;
        let properties_bytes = content.properties.passed_on_bytes();
        let mut octets = Vec::with_capacity(topic.len() + properties_bytes + payload.len());
        octets.extend_from_slice(topic.as_bytes());
        content.properties.write_passed_on(&mut octets);
        octets.extend_from_slice(payload);
        Self {
            octets: octets.into(),
            topic_bytes: topic.len() as u32,
            properties_bytes: properties_bytes as u32,
            kinds: content.properties.kinds().passed_on(),
            qos: content.qos,
            retain: content.retain,
            expires_at: content.expiry_s.map(|seconds| now.after_s(seconds)),
            number,
            holders: Holders::new(),
        }
    }

    /// A message from topic, properties and payload; none if they cannot be those of a message.
    pub(crate) fn from_parts(
        (topic, properties, payload): (&str, &[u8], &[u8]),
        (qos, retain): (QoS, bool),
        expires_at: Option<Time>,
        number: MessageNumber,
    ) -> Option<Self> {
        let known = Properties::from_bytes(properties, Place::Packet(PacketType::Publish)).ok()?;
        if known.passed_on_bytes() != properties.len() {
            return None;
        }
        Some(Self {
            octets: [topic.as_bytes(), properties, payload].concat().into(),
            topic_bytes: u32::try_from(topic.len()).ok()?,
            properties_bytes: u32::try_from(properties.len()).ok()?,
            kinds: known.kinds(),
            qos,
            retain,
            expires_at,
            number,
            holders: Holders::new(),
        })
    }

    /// A copy without holders.
    pub(crate) fn renumbered(&self, number: MessageNumber) -> Self {
        Self {
            octets: self.octets.clone(),
            number,
            holders: Holders::new(),
            ..*self
        }
    }

    pub fn topic(&self) -> &str {
        let topic = self.octets.get(..self.topic_bytes as usize);
        str::from_utf8(topic.unwrap_or_default()).unwrap_or_default()
    }

    /// Properties and payload, as MQTT 5 sends them behind the properties of one receiver.
    pub(crate) fn tail(&self) -> &[u8] {
        self.octets
            .get(self.topic_bytes as usize..)
            .unwrap_or_default()
    }

    /// The properties that are passed on.
    pub fn properties(&self) -> Properties<'_> {
        let properties = self.tail().get(..self.properties_bytes as usize);
        Properties::from_passed_on(properties.unwrap_or_default(), self.kinds)
    }

    pub fn payload(&self) -> &[u8] {
        let payload = self.tail().get(self.properties_bytes as usize..);
        payload.unwrap_or_default()
    }

    /// As an input, with what is left of its expiry; none if it has expired.
    pub fn content(&self, now: Time) -> Option<Content<'_>> {
        Some(Content {
            topic: self.topic(),
            qos: self.qos,
            retain: self.retain,
            expiry_s: self.left_s(now)?,
            properties: self.properties(),
            payload: self.payload(),
        })
    }

    /// The seconds until it expires, rounded up; none if it has expired. One with an expiry of 0 can be sent at once alone.
    pub(crate) fn left_s(&self, now: Time) -> Option<Option<u32>> {
        let Some(at) = self.expires_at else {
            return Some(None);
        };
        let left = at.0.checked_sub(now.0)?;
        Some(Some(u32::try_from(left.div_ceil(1000)).unwrap_or(u32::MAX)))
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.octets.len()
    }
}

impl Holders {
    fn new() -> Self {
        Self {
            all: AtomicU32::new(0),
            stored: AtomicU32::new(0),
            recorded: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds a holder; true for the first.
    pub(crate) fn add(&self) -> bool {
        add(&self.all)
    }

    /// Removes a holder; true for the last.
    pub(crate) fn remove(&self) -> bool {
        remove(&self.all)
    }

    pub(crate) fn add_stored(&self) -> bool {
        add(&self.stored)
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn remove_stored(&self) -> bool {
        remove(&self.stored)
    }

    pub(crate) fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    pub(crate) fn set_recorded(&self, position: u64) {
        self.recorded.store(position, Ordering::Relaxed);
    }
}

fn add(count: &AtomicU32) -> bool {
    let before = count.load(Ordering::Relaxed);
    count.store(before + 1, Ordering::Relaxed);
    before == 0
}

fn remove(count: &AtomicU32) -> bool {
    let before = count.load(Ordering::Relaxed);
    count.store(before.saturating_sub(1), Ordering::Relaxed);
    before == 1
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        let lengths = |one: &Self| (one.topic_bytes, one.properties_bytes, one.qos, one.retain);
        self.octets == other.octets
            && lengths(self) == lengths(other)
            && self.expires_at == other.expires_at
    }
}
