//! A space's outbox: packets into the queues of clients, and what follows outside the lock.

use std::sync::Arc;

use bytes::Bytes;
use crosstie_mqtt::{Ack, Codes, Packet as Encoded, Properties, ReasonCode, SubAck, UnsubAck};
use crosstie_topics::{Answer, Content, Outbox, Packet, Refused, Reply};
use crosstie_transport::{Connection, Queued};

use crate::client::Client;
use crate::own_content::OwnContent;

/// The outbox of one input.
#[derive(Default)]
pub(crate) struct SpaceOutbox {
    /// Messages that were sent.
    pub(crate) sent: u32,
    /// A receiver for which publishers have to wait.
    pub(crate) slow: Option<Arc<Connection>>,
    /// Changes of the filters that are subscribed to.
    pub(crate) interest: Vec<(String, bool)>,
    /// The client whose connection ends, or was ended last.
    pub(crate) leaving: Option<Arc<Client>>,
    /// Wills that were published here, for the realm.
    pub(crate) wills: Vec<OwnContent>,
    /// Connections that others have taken over: nobody waits for their clients to close them.
    pub(crate) over: Vec<Arc<Client>>,
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
            Ok(queued) => {
                self.sent += 1;
                if queued == Queued::Slowly {
                    self.slow = Some(Arc::clone(&to.connection));
                }
            }
            Err(Refused::Full) => to.resume_when_sent(),
            Err(Refused::Gone) => {}
        }
        sent.map(drop)
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
        self.leaving = Some(Arc::clone(connection));
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

    fn publish_will(&mut self, client_id: &str, will: &Content<'_>) -> bool {
        let leaving = self.leaving.as_ref();
        if leaving.is_some_and(|leaving| leaving.keep_will(client_id, will)) {
            return false;
        }
        // Permitted when the client connected, which has gone.
        self.wills.push(OwnContent::of(will));
        true
    }

    fn interest(&mut self, filter: &str, begins: bool) {
        self.interest.push((filter.to_owned(), begins));
    }
}
