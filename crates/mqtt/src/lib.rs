//! MQTT 5, 3.1.1 and 3.1 on the wire: packets, properties, topics. Bytes in, values out, and back.
//!
//! Everything decoded borrows from the input and is checked; a message's properties and payload pass as the octets that
//! arrived. The codec is our own because the kept one that speaks all three versions (mqute-codec 0.4) copies each
//! topic and property into a `String`, and the framing of messages is this project's hot path. Section numbers are of the OASIS specification of MQTT 5.
//!
//! The order of use on a server: [`decode_connect`] for the first packet, whose [`Connect::version`] is the argument
//! of [`decode`] for all later ones, and [`Packet::check_sender`] for each. A client begins with [`decode`].
//!
//! Never: IO, a clock, a session.

mod ack;
mod connect;
mod error;
mod header;
mod message;
mod packet;
mod packet_type;
mod properties;
mod property;
mod publish;
mod reader;
mod reason;
mod sender;
mod sink;
mod subscribe;
pub mod topic;
mod values;

pub use ack::{Ack, Auth, Disconnect};
pub use connect::{ConnAck, Connect, Will};
pub use error::{DecodeError, EncodeError, Fault};
pub use header::{Header, HeaderDecoded, decode_header};
pub use message::{Head, Message, set_packet_id};
pub use packet::{Decoded, Packet, decode, decode_connect};
pub use packet_type::PacketType;
pub use properties::{Properties, PropertiesBuf, PropertyKinds};
pub use property::{Place, Property};
pub use publish::{Delivery, Publish};
pub use reason::ReasonCode;
pub use subscribe::{
    Codes, Filters, FiltersBuf, Options, RetainHandling, SubAck, Subscribe, Subscription,
    Subscriptions, SubscriptionsBuf, UnsubAck, Unsubscribe,
};
pub use topic::TopicError;
pub use values::{PacketId, QoS, REMAINING_MAX, Side, Version};
