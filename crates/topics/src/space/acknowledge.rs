//! Acknowledgements of clients.

use crosstie_mqtt::{PacketId, QoS, ReasonCode};

use super::Space;
use super::entries::{charge_incoming, remove_entry};
use crate::line::What;
use crate::outgoing::Stage;
use crate::{Answer, ConnectionKey, Outbox, Record, Time};

impl<H> Space<H> {
    /// The client has a message of QoS 1. One that was never sent has no effect.
    pub fn handle_puback(
        &mut self,
        now: Time,
        key: ConnectionKey,
        id: PacketId,
        outbox: &mut impl Outbox<H>,
    ) {
        self.settle(now, key, id, QoS::AtLeastOnce, Stage::Message, outbox);
    }

    /// The client has a message of QoS 2, or refuses it. One that was never sent is answered by PUBREL with 0x92.
    pub fn handle_pubrec(
        &mut self,
        now: Time,
        key: ConnectionKey,
        id: PacketId,
        reason: ReasonCode,
        outbox: &mut impl Outbox<H>,
    ) {
        if reason.is_error() {
            let stage = Stage::Message;
            if self.settle(now, key, id, QoS::ExactlyOnce, stage, outbox) {
                self.ledger.counts.refused_by_receiver += 1;
            }
            return;
        }
        let Some(session) = self.clients.find_mut(key.session) else {
            return;
        };
        let Some(link) = session.link.as_ref() else {
            return;
        };
        if session.connection != key.number {
            return;
        }
        let outgoing = session.outgoing.as_mut();
        let found = outgoing.and_then(|outgoing| {
            let at = outgoing.find_sent(id)?;
            outgoing.get_mut(at)
        });
        let Some(entry) = found.filter(|entry| entry.qos == QoS::ExactlyOnce) else {
            let reason = ReasonCode::PacketIdentifierNotFound;
            return outbox.acknowledge(link, Answer::PubRel(id, reason));
        };
        let ledger = &mut self.ledger;
        let release = Answer::PubRel(id, ReasonCode::Success);
        if entry.stage == Stage::Message {
            entry.stage = Stage::Forwarded;
            if session.number.0 != 0 {
                ledger.record(entry.record(session.number));
                // With PUBREL, the client forgets the identifier: from then on the message may not be sent again.
                entry.position = ledger.journal.position.0;
                let what = What::Answer(release);
                self.line
                    .push(entry.position, key.session, key.number, what);
                return;
            }
        }
        if ledger.is_committed(entry.recorded()) {
            outbox.acknowledge(link, release);
        }
    }

    /// The client has released a message of QoS 2. One that is not known is answered by PUBCOMP with 0x92.
    pub fn handle_pubrel(&mut self, key: ConnectionKey, id: PacketId, outbox: &mut impl Outbox<H>) {
        let session = self.clients.find_mut(key.session);
        let Some(session) = session.filter(|session| session.is_connected_as(key.number)) else {
            return;
        };
        let incoming = session.incoming.as_mut();
        let is_known = incoming.is_some_and(|incoming| incoming.release(id));
        charge_incoming(session, &mut self.ledger, outbox);
        let reason = match is_known {
            true => ReasonCode::Success,
            false => ReasonCode::PacketIdentifierNotFound,
        };
        let mut position = 0;
        if session.is_recorded() {
            if is_known {
                let session = session.number;
                self.ledger.record(Record::Released {
                    session,
                    packet_id: id,
                });
            }
            // With PUBCOMP, the client uses the identifier for another message. An earlier PUBREL may have released it,
            // and wait for its commit.
            position = self.ledger.journal.position.0;
        }
        let answer = Answer::PubComp(id, reason);
        if !self.ledger.is_committed(position) {
            self.count_reply(key.session, key.number, true, outbox);
        }
        self.answer_after(position, (key.session, key.number), answer, outbox);
    }

    /// The client has forgotten a message of QoS 2. One that was never released has no effect.
    pub fn handle_pubcomp(
        &mut self,
        now: Time,
        key: ConnectionKey,
        id: PacketId,
        outbox: &mut impl Outbox<H>,
    ) {
        self.settle(now, key, id, QoS::ExactlyOnce, Stage::Forwarded, outbox);
    }

    /// Removes a sent message of that kind, and sends the next; false if there is none.
    fn settle(
        &mut self,
        now: Time,
        key: ConnectionKey,
        id: PacketId,
        qos: QoS,
        stage: Stage,
        outbox: &mut impl Outbox<H>,
    ) -> bool {
        let Some(session) = self.clients.find_mut(key.session) else {
            return false;
        };
        if !session.is_connected_as(key.number) {
            return false;
        }
        let Some(outgoing) = session.outgoing.as_mut() else {
            return false;
        };
        let Some(at) = outgoing.find_sent(id) else {
            return false;
        };
        let entry = outgoing.get_mut(at);
        if entry.is_none_or(|entry| entry.qos != qos || entry.stage != stage) {
            return false;
        }
        remove_entry(session, at, &mut self.ledger, outbox);
        self.send(now, key.session, outbox);
        true
    }
}
