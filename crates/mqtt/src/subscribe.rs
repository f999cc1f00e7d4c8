//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK (sections 3.8 to 3.11).

use std::{fmt, iter};

use crate::ack::reason;
use crate::error::Fault;
use crate::packet_type::PacketType;
use crate::properties::Properties;
use crate::property::Place;
use crate::reader::Reader;
use crate::reason::ReasonCode;
use crate::sink::{Body, Sink};
use crate::topic;
use crate::values::{PacketId, QoS, Version};

/// SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    pub packet_id: PacketId,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
    pub subscriptions: Subscriptions<'a>,
}

/// UNSUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    pub packet_id: PacketId,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
    pub filters: Filters<'a>,
}

/// SUBACK. Before MQTT 5 each error is written as 0x80.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAck<'a> {
    pub packet_id: PacketId,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
    pub codes: Codes<'a>,
}

/// UNSUBACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsubAck<'a> {
    pub packet_id: PacketId,
    /// Empty before MQTT 5.
    pub properties: Properties<'a>,
    /// Empty before MQTT 5.
    pub codes: Codes<'a>,
}

/// A filter with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    pub filter: &'a str,
    pub options: Options,
}

/// Subscription options (section 3.8.3.1). 3.x has the QoS alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub qos: QoS,
    pub no_local: bool,
    pub retain_as_published: bool,
    pub retain_handling: RetainHandling,
}

/// The moments at which retained messages are sent for a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RetainHandling {
    /// At each SUBSCRIBE.
    #[default]
    Always = 0,
    /// If the subscription did not exist before.
    New = 1,
    Never = 2,
}

/// The filters of a SUBSCRIBE with their options, checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Subscriptions<'a> {
    bytes: &'a [u8],
}

/// The filters of an UNSUBSCRIBE, checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Filters<'a> {
    bytes: &'a [u8],
}

/// Filters with options that are put together for a SUBSCRIBE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionsBuf {
    bytes: Vec<u8>,
}

/// Filters that are put together for an UNSUBSCRIBE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FiltersBuf {
    bytes: Vec<u8>,
}

/// Reason codes, one for each filter, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Codes<'a> {
    bytes: &'a [u8],
}

const FILTER: &str = "topic filter";
const NO_LOCAL: u8 = 0x04;
const RETAIN_AS_PUBLISHED: u8 = 0x08;

impl Options {
    /// A QoS, and everything else as in 3.x.
    pub fn new(qos: QoS) -> Self {
        Self {
            qos,
            ..Self::default()
        }
    }

    fn from_octet(octet: u8, version: Version) -> Result<Self, Fault> {
        let reserved = if version.is_v5() { 0xc0 } else { 0xfc };
        if octet & reserved != 0 {
            return Err(Fault::OptionsReserved { found: octet });
        }
        Ok(Self {
            qos: QoS::from_octet(octet & 3).ok_or(Fault::OptionsQoS)?,
            no_local: octet & NO_LOCAL != 0,
            retain_as_published: octet & RETAIN_AS_PUBLISHED != 0,
            retain_handling: match octet >> 4 {
                0 => RetainHandling::Always,
                1 => RetainHandling::New,
                2 => RetainHandling::Never,
                _ => return Err(Fault::OptionsRetainHandling),
            },
        })
    }

    fn octet(self, version: Version) -> u8 {
        if !version.is_v5() {
            return self.qos.octet();
        }
        let no_local = if self.no_local { NO_LOCAL } else { 0 };
        let as_published = if self.retain_as_published {
            RETAIN_AS_PUBLISHED
        } else {
            0
        };
        self.qos.octet() | no_local | as_published | (self.retain_handling as u8) << 4
    }
}

impl<'a> Subscription<'a> {
    fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Fault> {
        let filter = reader.text(FILTER)?;
        let options = Options::from_octet(reader.octet("subscription options")?, version)?;
        Ok(Self { filter, options })
    }

    fn check(&self, version: Version) -> Result<(), Fault> {
        let is_shared = check_filter(self.filter, version)?;
        match is_shared && self.options.no_local {
            true => Err(Fault::NoLocalShared),
            false => Ok(()),
        }
    }
}

/// Checks a filter, and says whether it is that of a shared subscription. 3.x knows none of these; a server may still
/// treat them so.
fn check_filter(filter: &str, version: Version) -> Result<bool, Fault> {
    let fault = |error| Fault::Topic {
        field: FILTER,
        error,
    };
    topic::check_filter(filter).map_err(fault)?;
    match version {
        Version::V5 => Ok(topic::split_share(filter).map_err(fault)?.is_some()),
        _ => Ok(false),
    }
}

impl<'a> Subscriptions<'a> {
    fn from_bytes(bytes: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(bytes);
        if reader.is_at_end() {
            return Err(Fault::Nothing { field: FILTER });
        }
        while !reader.is_at_end() {
            Subscription::read(&mut reader, version)?.check(version)?;
        }
        Ok(Self { bytes })
    }

    pub fn iter(self) -> impl Iterator<Item = Subscription<'a>> {
        let mut reader = Reader::new(self.bytes);
        iter::from_fn(move || Subscription::read(&mut reader, Version::V5).ok())
    }
}

impl<'a> Filters<'a> {
    fn from_bytes(bytes: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(bytes);
        if reader.is_at_end() {
            return Err(Fault::Nothing { field: FILTER });
        }
        while !reader.is_at_end() {
            check_filter(reader.text(FILTER)?, version)?;
        }
        Ok(Self { bytes })
    }

    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut reader = Reader::new(self.bytes);
        iter::from_fn(move || reader.text(FILTER).ok())
    }
}

impl SubscriptionsBuf {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a filter, in the form of MQTT 5. One of more than 65,535 octets has no form on the wire and is left out.
    pub fn push(&mut self, filter: &str, options: Options) {
        if filter.len() <= topic::TOPIC_BYTES_MAX {
            self.bytes.text(FILTER, filter);
            self.bytes.octet(options.octet(Version::V5));
        }
    }

    /// With a filter more; see [`Self::push`].
    #[must_use]
    pub fn with(mut self, filter: &str, options: Options) -> Self {
        self.push(filter, options);
        self
    }

    pub fn as_subscriptions(&self) -> Subscriptions<'_> {
        Subscriptions { bytes: &self.bytes }
    }
}

impl FiltersBuf {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a filter. One of more than 65,535 octets has no form on the wire and is left out.
    pub fn push(&mut self, filter: &str) {
        if filter.len() <= topic::TOPIC_BYTES_MAX {
            self.bytes.text(FILTER, filter);
        }
    }

    /// With a filter more; see [`Self::push`].
    #[must_use]
    pub fn with(mut self, filter: &str) -> Self {
        self.push(filter);
        self
    }

    pub fn as_filters(&self) -> Filters<'_> {
        Filters { bytes: &self.bytes }
    }
}

impl<'a> Codes<'a> {
    pub const EMPTY: Codes<'static> = Codes { bytes: &[] };

    /// Takes octets of reason codes ([`ReasonCode::octet`]). Others are left out by [`Self::iter`].
    pub fn from_octets(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn iter(self) -> impl Iterator<Item = ReasonCode> {
        let octets = self.bytes.iter();
        octets.filter_map(|octet| ReasonCode::from_octet(*octet))
    }

    pub fn octets(self) -> &'a [u8] {
        self.bytes
    }

    fn check(bytes: &'a [u8], packet_type: PacketType, version: Version) -> Result<Self, Fault> {
        if bytes.is_empty() {
            let field = "reason code";
            return Err(Fault::Nothing { field });
        }
        for &found in bytes {
            let is_of_3 = matches!(found, 0..=2 | 0x80);
            if !version.is_v5() && !is_of_3 {
                return Err(Fault::UnknownReason { found });
            }
            reason(packet_type, found)?;
        }
        Ok(Self { bytes })
    }
}

impl fmt::Debug for Subscriptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Filters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Codes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The fields that these packets begin with.
fn front<'a>(
    reader: &mut Reader<'a>,
    packet_type: PacketType,
    version: Version,
) -> Result<(PacketId, Properties<'a>), Fault> {
    let packet_id = reader.packet_id()?;
    let properties = match version {
        Version::V5 => Properties::read(reader, Place::Packet(packet_type))?,
        _ => Properties::EMPTY,
    };
    Ok((packet_id, properties))
}

fn write_front(id: PacketId, properties: Properties<'_>, version: Version, sink: &mut impl Sink) {
    sink.short(id.get());
    if version.is_v5() {
        properties.write(sink);
    }
}

impl<'a> Subscribe<'a> {
    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (packet_id, properties) = front(&mut reader, PacketType::Subscribe, version)?;
        Ok(Self {
            packet_id,
            properties,
            subscriptions: Subscriptions::from_bytes(reader.rest(), version)?,
        })
    }
}

impl<'a> Unsubscribe<'a> {
    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (packet_id, properties) = front(&mut reader, PacketType::Unsubscribe, version)?;
        Ok(Self {
            packet_id,
            properties,
            filters: Filters::from_bytes(reader.rest(), version)?,
        })
    }
}

impl<'a> SubAck<'a> {
    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (packet_id, properties) = front(&mut reader, PacketType::SubAck, version)?;
        Ok(Self {
            packet_id,
            properties,
            codes: Codes::check(reader.rest(), PacketType::SubAck, version)?,
        })
    }
}

impl<'a> UnsubAck<'a> {
    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, Fault> {
        let mut reader = Reader::new(body);
        let (packet_id, properties) = front(&mut reader, PacketType::UnsubAck, version)?;
        let codes = match version {
            Version::V5 => Codes::check(reader.rest(), PacketType::UnsubAck, version)?,
            _ => {
                reader.end()?;
                Codes::EMPTY
            }
        };
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }
}

impl Body for Subscribe<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        write_front(self.packet_id, self.properties, version, sink);
        for subscription in self.subscriptions.iter() {
            sink.text(FILTER, subscription.filter);
            sink.octet(subscription.options.octet(version));
        }
    }
}

impl Body for Unsubscribe<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        write_front(self.packet_id, self.properties, version, sink);
        sink.put(self.filters.bytes);
    }
}

impl Body for SubAck<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        write_front(self.packet_id, self.properties, version, sink);
        match version {
            Version::V5 => sink.put(self.codes.bytes),
            _ => self.codes.bytes.iter().for_each(|&code| {
                sink.octet(code.min(ReasonCode::UnspecifiedError.octet()));
            }),
        }
    }
}

impl Body for UnsubAck<'_> {
    fn write(&self, version: Version, sink: &mut impl Sink) {
        write_front(self.packet_id, self.properties, version, sink);
        if version.is_v5() {
            sink.put(self.codes.bytes);
        }
    }
}
