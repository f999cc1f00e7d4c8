//! A block of properties (section 2.2.2): checked once, then read by name or passed on as the octets that arrived.

use std::{fmt, iter};

use crate::error::Fault;
use crate::packet_type::PacketType;
use crate::property::{Place, Property};
use crate::reader::Reader;
use crate::sink::{Count, Sink};
use crate::values::QoS;

/// Properties as the octets they came in, without the length before them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Properties<'a> {
    bytes: &'a [u8],
    /// A bit for each identifier that occurs, so that an absent property is not searched for.
    present: u64,
    /// Octets of those that a server passes on: each receiver's head contains their number.
    passed_on: u32,
}

/// The kinds of properties in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PropertyKinds(u64);

impl PropertyKinds {
    /// Those that a server passes on.
    #[must_use]
    pub fn passed_on(self) -> Self {
        Self(self.0 & PASSED_ON)
    }
}

/// Properties that are put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertiesBuf {
    bytes: Vec<u8>,
}

/// The identifiers of the properties that a server passes on unchanged (section 3.3.2.3): payload format, content type,
/// response topic, correlation data, user properties.
const PASSED_ON: u64 = 1 << 0x01 | 1 << 0x03 | 1 << 0x08 | 1 << 0x09 | 1 << 0x26;
const USER: u64 = 1 << 0x26;
const SUBSCRIPTION_ID: u64 = 1 << 0x0B;
const AUTHENTICATION_METHOD: u64 = 1 << 0x15;
const AUTHENTICATION_DATA: u64 = 1 << 0x16;

macro_rules! accessors {
    ($($(#[$doc:meta])* $accessor:ident $name:ident $id:literal $type:ty;)+) => {
        impl<'a> Properties<'a> {
            $(
                $(#[$doc])*
                pub fn $accessor(self) -> Option<$type> {
                    match self.find($id)? {
                        Property::$name(value) => Some(value),
                        _ => None,
                    }
                }
            )+
        }
    };
}

accessors! {
    /// Whether the payload is UTF-8.
    payload_format PayloadFormat 0x01 bool;
    /// Seconds.
    message_expiry MessageExpiry 0x02 u32;
    content_type ContentType 0x03 &'a str;
    response_topic ResponseTopic 0x08 &'a str;
    correlation_data CorrelationData 0x09 &'a [u8];
    /// The first of them: a PUBLISH from a server may have several.
    subscription_id SubscriptionId 0x0B u32;
    /// Seconds; 4,294,967,295 is for ever.
    session_expiry SessionExpiry 0x11 u32;
    assigned_client_id AssignedClientId 0x12 &'a str;
    /// Seconds.
    server_keep_alive ServerKeepAlive 0x13 u16;
    authentication_method AuthenticationMethod 0x15 &'a str;
    authentication_data AuthenticationData 0x16 &'a [u8];
    request_problem_information RequestProblemInformation 0x17 bool;
    /// Seconds.
    will_delay WillDelay 0x18 u32;
    request_response_information RequestResponseInformation 0x19 bool;
    response_information ResponseInformation 0x1A &'a str;
    server_reference ServerReference 0x1C &'a str;
    reason_string ReasonString 0x1F &'a str;
    receive_maximum ReceiveMaximum 0x21 u16;
    topic_alias_maximum TopicAliasMaximum 0x22 u16;
    topic_alias TopicAlias 0x23 u16;
    maximum_qos MaximumQoS 0x24 QoS;
    retain_available RetainAvailable 0x25 bool;
    maximum_packet_size MaximumPacketSize 0x27 u32;
    wildcard_subscription_available WildcardSubscriptionAvailable 0x28 bool;
    subscription_ids_available SubscriptionIdsAvailable 0x29 bool;
    shared_subscription_available SharedSubscriptionAvailable 0x2A bool;
}

impl<'a> Properties<'a> {
    /// None at all.
    pub const EMPTY: Properties<'static> = Properties {
        bytes: &[],
        present: 0,
        passed_on: 0,
    };

    /// Checks a block, without its length, for the place in which it is.
    pub fn from_bytes(bytes: &'a [u8], place: Place) -> Result<Self, Fault> {
        let mut reader = Reader::new(bytes);
        let (mut present, mut passed_on) = (0, 0);
        while !reader.is_at_end() {
            let before = reader.rest().len();
            let property = Property::read(&mut reader)?;
            let bit = property.bit();
            if !property.is_allowed_in(place) {
                return Err(Fault::Property {
                    name: property.name(),
                    in_will: place == Place::Will,
                });
            }
            if present & bit != 0 && !may_repeat(bit, place) {
                return Err(Fault::Duplicate {
                    name: property.name(),
                });
            }
            present |= bit;
            if bit & PASSED_ON != 0 {
                passed_on += before - reader.rest().len();
            }
        }
        if present & AUTHENTICATION_DATA != 0 && present & AUTHENTICATION_METHOD == 0 {
            let name = "authentication method";
            return Err(Fault::Missing { name });
        }
        Ok(Self {
            bytes,
            present,
            passed_on: passed_on as u32,
        })
    }

    /// Takes octets that [`Self::from_bytes`] has checked or a [`PropertiesBuf`] has written, for example those of a
    /// stored message. Invalid octets are no properties.
    pub fn from_checked_bytes(bytes: &'a [u8]) -> Self {
        let mut all = Self {
            bytes,
            ..Self::EMPTY
        };
        for (id, part) in all.parts() {
            all.present |= 1 << id;
            if PASSED_ON & 1 << id != 0 {
                all.passed_on += part.len() as u32;
            }
        }
        all
    }

    /// The kinds that occur.
    pub fn kinds(self) -> PropertyKinds {
        PropertyKinds(self.present)
    }

    /// Takes octets of which the kinds are known, too, so that they are not searched: what a server has passed on by
    /// [`Self::write_passed_on`], with the [`PropertyKinds::passed_on`] of it.
    pub fn from_passed_on(bytes: &'a [u8], kinds: PropertyKinds) -> Self {
        Self {
            bytes,
            present: kinds.passed_on().0,
            passed_on: bytes.len() as u32,
        }
    }

    /// Without the length before them.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(self) -> impl Iterator<Item = Property<'a>> {
        let mut reader = Reader::new(self.bytes);
        iter::from_fn(move || Property::read(&mut reader).ok())
    }

    /// Names and values of the user properties, in their order.
    pub fn user_properties(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all_of(USER).filter_map(|property| match property {
            Property::User(pair) => Some(pair),
            _ => None,
        })
    }

    /// All subscription identifiers: a PUBLISH from a server may have several.
    pub fn subscription_ids(self) -> impl Iterator<Item = u32> {
        self.all_of(SUBSCRIPTION_ID)
            .filter_map(|property| match property {
                Property::SubscriptionId(id) => Some(id),
                _ => None,
            })
    }

    /// Appends those that a server passes on, in their order, and without the length before them: not the topic alias,
    /// subscription identifiers, message expiry and will delay.
    pub fn write_passed_on(self, out: &mut Vec<u8>) {
        self.put_passed_on(out);
    }

    /// Octets of those that a server passes on.
    pub fn passed_on_bytes(self) -> usize {
        self.passed_on as usize
    }

    pub(crate) fn put_passed_on(self, sink: &mut impl Sink) {
        if self.present & !PASSED_ON == 0 {
            return sink.put(self.bytes);
        }
        self.passed_on_parts().for_each(|part| sink.put(part));
    }

    /// Reads the length and the block behind it.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self, Fault> {
        let bytes = reader.variable("property length")?;
        if bytes == 0 {
            return Ok(Self::EMPTY);
        }
        Self::from_bytes(reader.take(bytes as usize, "properties")?, place)
    }

    /// Writes the length and the block behind it.
    #[inline]
    pub(crate) fn write(self, sink: &mut impl Sink) {
        sink.variable(self.bytes.len() as u32);
        sink.put(self.bytes);
    }

    pub(crate) fn has_subscription_id(self) -> bool {
        self.present & SUBSCRIPTION_ID != 0
    }

    #[inline]
    fn find(self, id: u8) -> Option<Property<'a>> {
        match self.present & 1 << id {
            0 => None,
            set => self.all_of(set).next(),
        }
    }

    /// The properties of a set, in their order.
    fn all_of(self, set: u64) -> impl Iterator<Item = Property<'a>> {
        let block = match self.present & set {
            0 => Properties::EMPTY,
            _ => self,
        };
        let parts = block.parts().filter(move |(id, _)| set & 1 << id != 0);
        parts.filter_map(|(_, part)| Property::read(&mut Reader::new(part)).ok())
    }

    fn passed_on_parts(self) -> impl Iterator<Item = &'a [u8]> {
        let parts = self.parts();
        parts.filter_map(|(id, part)| (PASSED_ON & 1 << id != 0).then_some(part))
    }

    /// The identifier and the octets of each property. Texts are not checked again.
    fn parts(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut reader = Reader::new(self.bytes);
        iter::from_fn(move || {
            let before = reader.rest();
            let id = Property::skip(&mut reader).ok()?;
            let bytes = before.len() - reader.rest().len();
            Some((id, &before[..bytes]))
        })
    }
}

/// Whether a property may come more than once in a place.
fn may_repeat(bit: u64, place: Place) -> bool {
    let is_publish = place == Place::Packet(PacketType::Publish);
    bit == USER || bit == SUBSCRIPTION_ID && is_publish
}

impl Default for Properties<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PropertiesBuf {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a property. One with a text or data of more than 65,535 octets has no form on the wire and is left out. No
    /// check that the packet may have it, or that it comes once.
    pub fn push(&mut self, property: Property<'_>) {
        let mut count = Count::default();
        property.write(&mut count);
        if count.is_writable() {
            property.write(&mut self.bytes);
        }
    }

    /// With a property more; see [`Self::push`].
    #[must_use]
    pub fn with(mut self, property: Property<'_>) -> Self {
        self.push(property);
        self
    }

    pub fn as_properties(&self) -> Properties<'_> {
        Properties::from_checked_bytes(&self.bytes)
    }
}
