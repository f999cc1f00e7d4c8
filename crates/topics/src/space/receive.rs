//! Incoming messages before they are authorized: topic aliases, packet identifiers, the receive maximum.

use std::sync::Arc;

use crosstie_mqtt::{PacketId, QoS, ReasonCode};

use super::Space;
use super::entries::charge_incoming;
use crate::incoming::{Arrived, Id};
use crate::{Answer, Arrival, ConnectionKey, Outbox, Received, SpaceLimits, Violation};

impl<H> Space<H> {
    /// Registers an incoming PUBLISH: its alias, its packet identifier, the receive maximum.
    pub fn receive(
        &mut self,
        key: ConnectionKey,
        arrival: Arrival<'_>,
        outbox: &mut impl Outbox<H>,
    ) -> Result<Received, Violation> {
        if self.connected(key).is_none() {
            return Ok(Received::Answered);
        }
        let aliased = match arrival.alias {
            Some(alias) => self.resolve(key, alias, arrival.topic, outbox)?,
            None => None,
        };
        let topic = aliased.as_deref().unwrap_or(arrival.topic);
        let is_topic_valid = is_within(topic, &self.config.limits);
        let Some(id) = arrival.packet_id else {
            self.ledger.counts.refused_topics += u64::from(!is_topic_valid);
            return Ok(match is_topic_valid {
                true => Received::New(aliased),
                false => Received::Answered,
            });
        };
        let is_new = match arrival.qos {
            QoS::ExactlyOnce => self.receive_exactly_once(key, id, outbox)?,
            _ => self.receive_at_least_once(key, outbox)?,
        };
        if is_new && !is_topic_valid {
            self.ledger.counts.refused_topics += 1;
            let reason = ReasonCode::TopicNameInvalid;
            self.refuse(key, arrival.qos, Some(id), reason, outbox);
            return Ok(Received::Answered);
        }
        Ok(match is_new {
            true => Received::New(aliased),
            false => Received::Answered,
        })
    }

    /// Sets an alias, or finds its topic.
    fn resolve(
        &mut self,
        key: ConnectionKey,
        alias: u16,
        topic: &str,
        outbox: &mut impl Outbox<H>,
    ) -> Result<Option<Arc<str>>, Violation> {
        let limits = &self.config.limits;
        let alias_max = limits.topic_alias_max;
        let session = self.clients.find_mut(key.session);
        let Some(session) = session.filter(|session| session.is_connected_as(key.number)) else {
            return Ok(None);
        };
        let incoming = session.incoming.get_or_insert_default();
        let found = match (alias, topic) {
            (1.., "") if alias <= alias_max => incoming.alias(alias).cloned(),
            (1.., _) if alias <= alias_max => {
                // A topic beyond the bounds takes no memory, and the earlier one does not stay.
                let is_valid = is_within(topic, limits);
                incoming.set_alias(alias, is_valid.then_some(topic));
                charge_incoming(session, &mut self.ledger, outbox);
                return Ok(None);
            }
            _ => {
                self.ledger.counts.refused_aliases += 1;
                let text = "the topic alias is 0 or beyond the maximum";
                return Err(Violation::new(ReasonCode::TopicAliasInvalid, text));
            }
        };
        if found.is_none() {
            self.ledger.counts.refused_aliases += 1;
            let text = "the topic alias stands for no topic";
            return Err(Violation::new(ReasonCode::ProtocolError, text));
        }
        Ok(found)
    }

    /// Counts a message of QoS 1.
    fn receive_at_least_once(
        &mut self,
        key: ConnectionKey,
        outbox: &mut impl Outbox<H>,
    ) -> Result<bool, Violation> {
        self.count_outstanding(key)?;
        if let Some(session) = self.connected_mut(key) {
            let incoming = session.incoming.get_or_insert_default();
            incoming.unacknowledged = incoming.unacknowledged.saturating_add(1);
        }
        self.pause_or_not(key.session, outbox);
        Ok(true)
    }

    /// Registers a message of QoS 2; false if it is repeated.
    fn receive_exactly_once(
        &mut self,
        key: ConnectionKey,
        id: PacketId,
        outbox: &mut impl Outbox<H>,
    ) -> Result<bool, Violation> {
        let (receive_max, unreleased_max) = {
            let limits = &self.config.limits;
            (limits.receive_max, limits.unreleased_max)
        };
        let Some(session) = self.connected_mut(key) else {
            return Ok(false);
        };
        let is_v5 = session.version.is_v5();
        let incoming = session.incoming.get_or_insert_default();
        let ids = incoming.ids();
        if let Some(known) = incoming.find(id) {
            if known.is_with_owner_of_earlier(key.number) {
                // The verdict of the earlier connection has no effect any more.
                return self.receive_anew(key, id);
            }
            let is_first = known.asked_by != key.number;
            known.asked_by = key.number;
            let is_answered = known.stage == Arrived::Answered;
            incoming.outstanding = incoming.outstanding.saturating_add(u16::from(is_first));
            if is_answered && let Some(link) = &session.link {
                outbox.acknowledge(link, Answer::PubRec(id, ReasonCode::Success));
            }
            self.ledger.counts.repeated += 1;
            return Ok(false);
        }
        // A client that has come back may still have to release those of its earlier connection.
        let ids_max = match is_v5 {
            true => 2 * usize::from(receive_max),
            false => usize::from(unreleased_max),
        };
        if ids >= ids_max {
            self.ledger.counts.refused_receive_max += 1;
            let text = "too many messages of QoS 2 are not released";
            return Err(Violation::new(ReasonCode::ReceiveMaximumExceeded, text));
        }
        self.count_outstanding(key)?;
        if let Some(session) = self.clients.find_mut(key.session) {
            session.incoming.get_or_insert_default().insert(Id {
                id,
                stage: Arrived::WithOwner,
                came_by: key.number,
                asked_by: key.number,
            });
            charge_incoming(session, &mut self.ledger, outbox);
        }
        Ok(true)
    }

    /// Registers a message of QoS 2 that an earlier connection has sent and its owner not published.
    fn receive_anew(&mut self, key: ConnectionKey, id: PacketId) -> Result<bool, Violation> {
        self.count_outstanding(key)?;
        let session = self.connected_mut(key);
        let incoming = session.and_then(|session| session.incoming.as_mut());
        if let Some(known) = incoming.and_then(|incoming| incoming.find(id)) {
            (known.came_by, known.asked_by) = (key.number, key.number);
        }
        Ok(true)
    }

    /// Counts a message towards the receive maximum, which only clients of MQTT 5 know.
    fn count_outstanding(&mut self, key: ConnectionKey) -> Result<(), Violation> {
        let receive_max = self.config.limits.receive_max;
        let Some(session) = self.connected_mut(key) else {
            return Ok(());
        };
        let is_v5 = session.version.is_v5();
        let incoming = session.incoming.get_or_insert_default();
        if is_v5 && incoming.outstanding >= receive_max {
            self.ledger.counts.refused_receive_max += 1;
            let text = "more messages are unacknowledged than the receive maximum";
            return Err(Violation::new(ReasonCode::ReceiveMaximumExceeded, text));
        }
        incoming.outstanding = incoming.outstanding.saturating_add(1);
        Ok(())
    }
}

/// Whether a topic is within the bounds.
pub(super) fn is_within(topic: &str, limits: &SpaceLimits) -> bool {
    let separators = topic.bytes().filter(|octet| *octet == b'/').count();
    topic.len() <= limits.topic_bytes_max && separators < limits.levels_max
}
