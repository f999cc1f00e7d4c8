//! A space's outbox: packets into the queues of clients, and what follows outside the lock.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_mqtt::{Ack, Codes, Packet as Encoded, Properties, ReasonCode, SubAck, UnsubAck};
use crosstie_topics::{Answer, Content, Outbox, Packet, Refused, Reply};

use crate::client::Client;

/// The outbox of one input.
#[derive(Default)]
pub(crate) struct SpaceOutbox {
    /// Messages that were sent.
    pub(crate) sent: u32,
    /// Changes of the filters that are subscribed to.
    pub(crate) interest: Vec<(String, bool)>,
    /// Wills that were published here, for the realm.
    pub(crate) wills: Vec<OwnContent>,
    /// Connections that others have taken over: nobody waits for their clients to close them.
    pub(crate) over: Vec<Arc<Client>>,
    /// Sessions that have ended.
    pub(crate) ended: Vec<String>,
}

/// A message in memory of its own.
pub(crate) struct OwnContent {
    pub(crate) topic: String,
    pub(crate) retain: bool,
    pub(crate) expiry_s: Option<u32>,
    pub(crate) payload: Vec<u8>,
}

impl Outbox<Arc<Client>> for SpaceOutbox {
    type Shared = Bytes;

    fn publish(
        &mut self,
        to: &Arc<Client>,
        packet: Packet<'_>,
        shared: &mut Option<Bytes>,
    ) -> Result<(), Refused> {
        let sent = to.publish(packet.head, packet.rest, shared);
        match sent {
            Ok(()) => self.sent += 1,
            Err(Refused::Full) => to.resume_when_sent(),
            Err(Refused::Gone) => {}
        }
        sent
    }

    fn acknowledge(&mut self, to: &Arc<Client>, answer: Answer) {
        to.send(&match answer {
            Answer::PubAck(id, reason) => Encoded::PubAck(Ack::with_reason(id, reason)),
            Answer::PubRec(id, reason) => Encoded::PubRec(Ack::with_reason(id, reason)),
            Answer::PubRel(id, reason) => Encoded::PubRel(Ack::with_reason(id, reason)),
            Answer::PubComp(id, reason) => Encoded::PubComp(Ack::with_reason(id, reason)),
        });
    }

    fn reply(&mut self, to: &Arc<Client>, reply: &Reply) {
        let octets =
            |codes: &[ReasonCode]| -> Vec<u8> { codes.iter().map(|code| code.octet()).collect() };
        match reply {
            Reply::ConnAck => to.send_connack(),
            Reply::SubAck(packet_id, codes) => to.send(&Encoded::SubAck(SubAck {
                packet_id: *packet_id,
                properties: Properties::EMPTY,
                codes: Codes::from_octets(&octets(codes)),
            })),
            Reply::UnsubAck(packet_id, codes) => to.send(&Encoded::UnsubAck(UnsubAck {
                packet_id: *packet_id,
                properties: Properties::EMPTY,
                codes: Codes::from_octets(&octets(codes)),
            })),
        }
    }

    fn close(&mut self, connection: &Arc<Client>, reason: ReasonCode) {
        connection.end(reason);
        if reason == ReasonCode::SessionTakenOver {
            self.over.push(Arc::clone(connection));
        }
    }

    fn hold(&mut self, to: &Arc<Client>, delta: isize) {
        to.connection.hold(delta);
    }

    fn pause(&mut self, connection: &Arc<Client>, is_paused: bool) {
        connection.set_paused(is_paused);
    }

    fn publish_will(&mut self, _: &str, will: &Content<'_>) -> bool {
        // Permitted when the client connected.
        self.wills.push(OwnContent {
            topic: will.topic.to_owned(),
            retain: will.retain,
            expiry_s: will.expiry_s,
            payload: will.payload.to_vec(),
        });
        true
    }

    fn ended(&mut self, client_id: &str) {
        self.ended.push(client_id.to_owned());
    }

    fn interest(&mut self, filter: &str, begins: bool) {
        self.interest.push((filter.to_owned(), begins));
    }
}
