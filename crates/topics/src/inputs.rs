//! The inputs of a space and their answers.

use std::fmt;
use std::sync::Arc;

use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode, Version};

use crate::keys::SessionKey;

/// A client's connection to a space. The key of a connection that was taken over or has ended has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionKey {
    pub(crate) session: SessionKey,
    pub(crate) number: u32,
}

/// A CONNECT of a client that has been authenticated.
#[derive(Clone, Debug)]
pub struct Connect<'a> {
    pub version: Version,
    /// Empty if the space has to assign one.
    pub client_id: &'a str,
    /// Clean start in MQTT 5, clean session in 3.x.
    pub is_clean: bool,
    /// Session expiry interval in seconds, `u32::MAX` for ever. Ignored in 3.x.
    pub session_expiry_s: u32,
    /// Receive maximum of the client; 65,535 without the property.
    pub receive_max: u16,
    /// Maximum packet size of the client; `u32::MAX` without the property.
    pub packet_bytes_max: u32,
    /// Topic alias maximum of the client, or a bound of the owner: the topics of its connection that have an alias. 0 for an
    /// outbox that may drop a message which it has accepted. Ignored in 3.x.
    pub topic_alias_max: u16,
    pub will: Option<Will<'a>>,
}

/// The will of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Will<'a> {
    pub content: Content<'a>,
    /// Will delay interval in seconds.
    pub delay_s: u32,
}

/// A message that is published.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// A valid topic name ([`crosstie_mqtt::topic::check_name`]).
    pub topic: &'a str,
    pub qos: QoS,
    pub retain: bool,
    /// Message expiry interval in seconds.
    pub expiry_s: Option<u32>,
    /// The properties as they arrived. Those that a server passes on reach the receivers, in their order. Empty in 3.x.
    pub properties: Properties<'a>,
    pub payload: &'a [u8],
}

impl Content<'_> {
    pub(crate) const EMPTY: Content<'static> = Content {
        topic: "",
        qos: QoS::AtMostOnce,
        retain: false,
        expiry_s: None,
        properties: Properties::EMPTY,
        payload: &[],
    };
}

/// The answer to [`Connect`]. The owner calls [`crate::Space::open`], and sends CONNACK when the outbox asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    pub key: ConnectionKey,
    /// The CONNACK's session present.
    pub is_present: bool,
    /// The client's identifier, and whether the space has assigned it.
    pub client_id: Arc<str>,
    pub is_assigned: bool,
    /// The session's expiry, if the client of MQTT 5 has asked for another one.
    pub session_expiry_s: Option<u32>,
    /// The position of the last record of CONNECT; 0 without one.
    pub(crate) position: u64,
}

/// The head of an incoming PUBLISH.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Empty if only an alias is given.
    pub topic: &'a str,
    pub alias: Option<u16>,
    pub qos: QoS,
    /// Of QoS 1 and 2.
    pub packet_id: Option<PacketId>,
}

/// The next step for an incoming PUBLISH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A new message: the owner authorizes it, and calls [`crate::Space::publish`] or [`crate::Space::refuse`] once. The
    /// topic is present if the client sent an alias alone.
    New(Option<Arc<str>>),
    /// Nothing: the message is repeated, and not published again. The space answers.
    Answered,
}

/// A filter of SUBSCRIBE.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A valid filter ([`crosstie_mqtt::topic::check_filter`]), which may begin with `$share/`.
    pub filter: &'a str,
    /// Those of 3.x have the QoS alone.
    pub options: Options,
    /// Why the owner refuses it, if it does: 0x80 stands for a reason that SUBACK cannot have.
    pub refusal: Option<ReasonCode>,
}

/// Ends a connection: the owner sends DISCONNECT with the reason (3.x: nothing), closes, and calls
/// [`crate::Space::lose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub reason: ReasonCode,
    pub text: &'static str,
}

impl Violation {
    pub(crate) fn new(reason: ReasonCode, text: &'static str) -> Self {
        Self { reason, text }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.text)
    }
}

impl std::error::Error for Violation {}
