//! The output of a space.

use crosstie_mqtt::{PacketId, ReasonCode};

use crate::Content;

/// Sends the space's packets. `H` names a connection to it.
pub trait Outbox<H> {
    /// Octets that several connections send, for example `bytes::Bytes`.
    type Shared;

    /// Sends a PUBLISH. The receivers of one publication that are sent the same `packet.rest` pass the same `shared`,
    /// which is empty before the first of them: an outbox puts there what it makes of the rest, once.
    ///
    /// A refused message of QoS 1 or 2 stays in the session, which is sent no further one until
    /// [`crate::Space::resume`]; one of QoS 0 is dropped and counted.
    fn publish(
        &mut self,
        to: &H,
        packet: Packet<'_>,
        shared: &mut Option<Self::Shared>,
    ) -> Result<(), Refused>;

    /// Sends PUBACK, PUBREC, PUBREL or PUBCOMP. Never refused: the owner closes a connection that cannot be answered.
    /// In 3.x a PUBACK or PUBREC with an error is sent without its reason, as 3.x has none.
    fn acknowledge(&mut self, to: &H, answer: Answer);

    /// Sends CONNACK, SUBACK or UNSUBACK, once what it answers is committed. Never refused.
    fn reply(&mut self, to: &H, reply: &Reply);

    /// The space has ended a connection by itself (take-over, kill, a store that fails). The owner sends DISCONNECT with the reason in
    /// MQTT 5 and nothing in 3.x, and closes. The key has no effect any more.
    fn close(&mut self, connection: &H, reason: ReasonCode);

    /// Changes the bytes held for a connection's session: subscriptions and entries of messages. Those of a session
    /// are released at the latest when its connection ends, and count in [`crate::Space::kept_bytes`] from then on.
    fn hold(&mut self, to: &H, delta: isize) {
        let _ = (to, delta);
    }

    /// The acknowledgements that wait for a connection have reached the bound, or are below it again. The owner does not
    /// read from a paused one.
    fn pause(&mut self, connection: &H, is_paused: bool) {
        let _ = (connection, is_paused);
    }

    /// The will of a session is due. True lets the space publish it at once. An owner that has to authorize it returns
    /// false, and passes it to [`crate::Space::publish_will_of`] later, or not.
    fn publish_will(&mut self, client_id: &str, will: &Content<'_>) -> bool {
        let _ = (client_id, will);
        true
    }

    /// The first subscription to a filter was added, or the last one removed. The filter of a shared subscription is the
    /// part behind the share name.
    fn interest(&mut self, filter: &str, begins: bool) {
        let _ = (filter, begins);
    }

    /// A session has ended. Its connection, if any, has ended before.
    fn ended(&mut self, client_id: &str) {
        let _ = client_id;
    }
}

/// An encoded PUBLISH in two parts: the octets of one receiver, then octets that several receivers get.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Empty for QoS 0, unless the receiver has subscription identifiers or a topic alias.
    pub head: &'a [u8],
    pub rest: &'a [u8],
}

/// An acknowledgement of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    PubAck(PacketId, ReasonCode),
    PubRec(PacketId, ReasonCode),
    PubRel(PacketId, ReasonCode),
    PubComp(PacketId, ReasonCode),
}

/// An answer to a packet that is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The connection is open. The owner has the rest from [`crate::Connected`].
    ConnAck,
    SubAck(PacketId, Box<[ReasonCode]>),
    UnsubAck(PacketId, Box<[ReasonCode]>),
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer does not read; it may later.
    Full,
    /// The connection is gone.
    Gone,
}
