//! The properties of MQTT 5 (section 2.2.2.2): identifiers, types, and the packets that may have them.

use crate::error::Fault;
use crate::packet_type::PacketType;
use crate::reader::Reader;
use crate::sink::Sink;
use crate::values::QoS;

/// The place of a block of properties: a packet, or the will in a CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Packet(PacketType),
    Will,
}

impl Place {
    const fn bit(self) -> u16 {
        match self {
            Self::Packet(packet_type) => packet_type.bit(),
            // No packet has type 0.
            Self::Will => 1,
        }
    }
}

macro_rules! places {
    ($($place:ident)+) => { $(places!(@ $place))|+ };
    (@ Will) => { Place::Will.bit() };
    (@ $packet:ident) => { PacketType::$packet.bit() };
}

macro_rules! properties {
    ($($id:literal $name:ident($type:ty) $kind:ident $text:literal [$($place:ident)+];)+) => {
        /// One property with its value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property<'a> {
            $($name($type),)+
        }

        impl<'a> Property<'a> {
            pub fn id(&self) -> u8 {
                match self {
                    $(Self::$name(_) => $id,)+
                }
            }

            /// The name in the specification, in small letters.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $text,)+
                }
            }

            /// A bit for each place that may have it.
            fn places(&self) -> u16 {
                match self {
                    $(Self::$name(_) => places!($($place)+),)+
                }
            }

            /// Reads the value of a property whose identifier was read.
            fn read_value(id: u8, reader: &mut Reader<'a>) -> Result<Self, Fault> {
                match id {
                    $($id => <$kind as Kind<'_>>::read(reader, $text).map(Self::$name),)+
                    _ => Err(Fault::UnknownProperty { id: id.into() }),
                }
            }

            /// Passes over the value of a property whose identifier was read, without a check of texts.
            fn skip_value(id: u8, reader: &mut Reader<'a>) -> Result<(), Fault> {
                match id {
                    $($id => <$kind as Kind<'_>>::skip(reader, $text),)+
                    _ => Err(Fault::UnknownProperty { id: id.into() }),
                }
            }

            fn write_value(&self, sink: &mut impl Sink) {
                match self {
                    $(Self::$name(value) => <$kind as Kind<'_>>::write(*value, sink, $text),)+
                }
            }
        }
    };
}

properties! {
    0x01 PayloadFormat(bool) Flag "payload format indicator" [Publish Will];
    0x02 MessageExpiry(u32) Long "message expiry interval" [Publish Will];
    0x03 ContentType(&'a str) Text "content type" [Publish Will];
    0x08 ResponseTopic(&'a str) Topic "response topic" [Publish Will];
    0x09 CorrelationData(&'a [u8]) Data "correlation data" [Publish Will];
    0x0B SubscriptionId(u32) PositiveVariable "subscription identifier" [Publish Subscribe];
    0x11 SessionExpiry(u32) Long "session expiry interval" [Connect ConnAck Disconnect];
    0x12 AssignedClientId(&'a str) Text "assigned client identifier" [ConnAck];
    0x13 ServerKeepAlive(u16) Short "server keep alive" [ConnAck];
    0x15 AuthenticationMethod(&'a str) Text "authentication method" [Connect ConnAck Auth];
    0x16 AuthenticationData(&'a [u8]) Data "authentication data" [Connect ConnAck Auth];
    0x17 RequestProblemInformation(bool) Flag "request problem information" [Connect];
    0x18 WillDelay(u32) Long "will delay interval" [Will];
    0x19 RequestResponseInformation(bool) Flag "request response information" [Connect];
    0x1A ResponseInformation(&'a str) Text "response information" [ConnAck];
    0x1C ServerReference(&'a str) Text "server reference" [ConnAck Disconnect];
    0x1F ReasonString(&'a str) Text "reason string" [ConnAck PubAck PubRec PubRel PubComp SubAck UnsubAck Disconnect Auth];
    0x21 ReceiveMaximum(u16) PositiveShort "receive maximum" [Connect ConnAck];
    0x22 TopicAliasMaximum(u16) Short "topic alias maximum" [Connect ConnAck];
    0x23 TopicAlias(u16) PositiveShort "topic alias" [Publish];
    0x24 MaximumQoS(QoS) Quality "maximum QoS" [ConnAck];
    0x25 RetainAvailable(bool) Flag "retain available" [ConnAck];
    0x26 User((&'a str, &'a str)) Pair "user property" [Connect ConnAck Publish Will PubAck PubRec PubRel PubComp Subscribe SubAck Unsubscribe UnsubAck Disconnect Auth];
    0x27 MaximumPacketSize(u32) PositiveLong "maximum packet size" [Connect ConnAck];
    0x28 WildcardSubscriptionAvailable(bool) Flag "wildcard subscription available" [ConnAck];
    0x29 SubscriptionIdsAvailable(bool) Flag "subscription identifiers available" [ConnAck];
    0x2A SharedSubscriptionAvailable(bool) Flag "shared subscription available" [ConnAck];
}

impl<'a> Property<'a> {
    pub fn is_allowed_in(&self, place: Place) -> bool {
        self.places() & place.bit() != 0
    }

    /// Reads the next property of a block.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let id = read_id(reader)?;
        Self::read_value(id, reader)
    }

    /// Passes over the next property of a block that was checked: its identifier.
    #[inline]
    pub(crate) fn skip(reader: &mut Reader<'a>) -> Result<u8, Fault> {
        let id = read_id(reader)?;
        Self::skip_value(id, reader)?;
        Ok(id)
    }

    pub(crate) fn write(&self, sink: &mut impl Sink) {
        sink.octet(self.id());
        self.write_value(sink);
    }

    /// The bit of a property's identifier in a set of them.
    pub(crate) fn bit(&self) -> u64 {
        1 << self.id()
    }
}

#[inline]
fn read_id(reader: &mut Reader<'_>) -> Result<u8, Fault> {
    let id = reader.variable("property identifier")?;
    u8::try_from(id).map_err(|_| Fault::UnknownProperty { id })
}

#[cold]
fn out_of_range<T>(name: &'static str, found: u32, expected: &'static str) -> Result<T, Fault> {
    Err(Fault::PropertyValue {
        name,
        found,
        expected,
    })
}

/// A form of values.
trait Kind<'a> {
    type Value;

    fn read(reader: &mut Reader<'a>, name: &'static str) -> Result<Self::Value, Fault>;
    fn write(value: Self::Value, sink: &mut impl Sink, name: &'static str);

    fn skip(reader: &mut Reader<'a>, name: &'static str) -> Result<(), Fault>;
}

/// Says how each form is read and written.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $type:ty: |$reader:ident, $name:ident| $read:expr, |$value:ident, $sink:ident, $field:ident| $write:expr, $skip:ident;)+) => {$(
        $(#[$doc])*
        enum $kind {}

        impl<'a> Kind<'a> for $kind {
            type Value = $type;

            fn read($reader: &mut Reader<'a>, $name: &'static str) -> Result<$type, Fault> {
                $read
            }

            fn write($value: $type, $sink: &mut impl Sink, $field: &'static str) {
                $write
            }

            fn skip(reader: &mut Reader<'a>, name: &'static str) -> Result<(), Fault> {
                reader.$skip(name).map(drop)
            }
        }
    )+};
}

kinds! {
    Flag bool:
        |reader, name| match reader.octet(name)? {
            0 => Ok(false),
            1 => Ok(true),
            other => out_of_range(name, other.into(), "0 or 1"),
        },
        |value, sink, _field| sink.octet(value.into()), octet;
    Quality QoS:
        |reader, name| match reader.octet(name)? {
            0 => Ok(QoS::AtMostOnce),
            1 => Ok(QoS::AtLeastOnce),
            other => out_of_range(name, other.into(), "0 or 1"),
        },
        |value, sink, _field| sink.octet(value.octet()), octet;
    Short u16: |reader, name| reader.short(name), |value, sink, _field| sink.short(value), short;
    PositiveShort u16:
        |reader, name| match reader.short(name)? {
            0 => out_of_range(name, 0, "1 to 65535"),
            value => Ok(value),
        },
        |value, sink, _field| sink.short(value), short;
    Long u32: |reader, name| reader.long(name), |value, sink, _field| sink.long(value), long;
    PositiveLong u32:
        |reader, name| match reader.long(name)? {
            0 => out_of_range(name, 0, "1 to 4294967295"),
            value => Ok(value),
        },
        |value, sink, _field| sink.long(value), long;
    PositiveVariable u32:
        |reader, name| match reader.variable(name)? {
            0 => out_of_range(name, 0, "1 to 268435455"),
            value => Ok(value),
        },
        |value, sink, _field| sink.variable(value), variable;
    Text &'a str: |reader, name| reader.text(name), |value, sink, field| sink.text(field, value), data;
    /// A topic name, to which others publish.
    Topic &'a str: |reader, name| reader.topic(name), |value, sink, field| sink.text(field, value), data;
    Data &'a [u8]: |reader, name| reader.data(name), |value, sink, field| sink.data(field, value), data;
    Pair (&'a str, &'a str):
        |reader, name| Ok((reader.text(name)?, reader.text(name)?)),
        |value, sink, field| {
            sink.text(field, value.0);
            sink.text(field, value.1);
        }, data_pair;
}
