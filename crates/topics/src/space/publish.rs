//! Publications: retained, delivered, acknowledged.

use std::sync::Arc;

use crosstie_mqtt::{PacketId, PacketType, QoS, ReasonCode};

use super::Space;
use crate::course::{Job, Source};
use crate::fan::Fan;
use crate::incoming::Arrived;
use crate::{Answer, ConnectionKey, Content, Message, Outbox, Record, SessionNumber, Time};

/// A retained message has no room.
struct NoRoom;

impl<H> Space<H> {
    /// Publishes a received message, and acknowledges it: at once, or when it is delivered to all and committed. Also
    /// for a connection that has ended meanwhile, unless [`Self::lose`] or [`Self::disconnect`] was called for it.
    pub fn publish(
        &mut self,
        now: Time,
        key: ConnectionKey,
        packet_id: Option<PacketId>,
        content: &Content<'_>,
        outbox: &mut impl Outbox<H>,
    ) {
        let mut source = Source {
            publisher: Some(key.session),
            will_of: None,
            will_number: SessionNumber(0),
            connection: key.number,
            packet_id,
            qos: content.qos,
        };
        let mut is_v5 = false;
        match self.clients.find_mut(key.session) {
            Some(session) => {
                is_v5 = session.version.is_v5();
                if let Some(id) = packet_id.filter(|_| content.qos == QoS::ExactlyOnce) {
                    let incoming = session.incoming.as_mut();
                    let found = incoming.and_then(|incoming| incoming.find(id));
                    let Some(arrived) = found.filter(|one| one.awaits_verdict_of(key.number))
                    else {
                        return;
                    };
                    arrived.stage = Arrived::Published;
                }
            }
            None => source = Source::OUTSIDE,
        }
        self.ledger.counts.received[usize::from(content.qos.octet())] += 1;
        self.published += 1;
        let kept = match self.retain(now, content, self.published) {
            Ok(kept) => kept,
            Err(NoRoom) if is_v5 && content.qos > QoS::AtMostOnce => {
                let reason = ReasonCode::QuotaExceeded;
                return self.answer_refused(key, content.qos, packet_id, reason, outbox);
            }
            Err(NoRoom) => (None, 0),
        };
        self.start(now, source, content, kept, outbox);
    }

    /// Publishes a message that does not come from a client of this space.
    pub fn publish_from_outside(
        &mut self,
        now: Time,
        content: &Content<'_>,
        outbox: &mut impl Outbox<H>,
    ) {
        self.publish_from(now, Source::OUTSIDE, content, outbox);
    }

    /// Publishes a message of no connection.
    pub(super) fn publish_from(
        &mut self,
        now: Time,
        source: Source,
        content: &Content<'_>,
        outbox: &mut impl Outbox<H>,
    ) {
        self.ledger.counts.from_outside += 1;
        self.published += 1;
        let retained = self.retain(now, content, self.published);
        let kept = retained.unwrap_or((None, 0));
        self.start(now, source, content, kept, outbox);
    }

    /// Answers a received message that is not published, with that reason or 0x80 if acknowledgements cannot have it; in
    /// 3.x as if it were published.
    pub fn refuse(
        &mut self,
        key: ConnectionKey,
        qos: QoS,
        packet_id: Option<PacketId>,
        reason: ReasonCode,
        outbox: &mut impl Outbox<H>,
    ) {
        if let Some(id) = packet_id.filter(|_| qos == QoS::ExactlyOnce) {
            let session = self.clients.find_mut(key.session);
            let incoming = session.and_then(|session| session.incoming.as_mut());
            let found = incoming.and_then(|incoming| incoming.find(id));
            if found.is_none_or(|one| !one.awaits_verdict_of(key.number)) {
                return;
            }
        }
        let reason = match reason.is_allowed_in(PacketType::PubAck) {
            true => reason,
            false => ReasonCode::UnspecifiedError,
        };
        self.answer_refused(key, qos, packet_id, reason, outbox);
    }

    fn answer_refused(
        &mut self,
        key: ConnectionKey,
        qos: QoS,
        packet_id: Option<PacketId>,
        reason: ReasonCode,
        outbox: &mut impl Outbox<H>,
    ) {
        let Some(id) = packet_id else {
            return;
        };
        let answer = match qos {
            QoS::ExactlyOnce => Answer::PubRec(id, reason),
            _ => Answer::PubAck(id, reason),
        };
        self.answer(key.session, key.number, answer, outbox);
    }

    /// Sets or removes a retained message; returns it, and the position of its record.
    fn retain(
        &mut self,
        now: Time,
        content: &Content<'_>,
        published: u64,
    ) -> Result<(Option<Arc<Message>>, u64), NoRoom> {
        if !content.retain {
            return Ok((None, 0));
        }
        if content.payload.is_empty() {
            let Some(removed) = self.retained.remove(content.topic) else {
                // Its removal may wait for its commit.
                let is_stored = self.ledger.is_stored;
                let last = self.ledger.journal.position.0;
                return Ok((None, if is_stored { last } else { 0 }));
            };
            self.ledger.release_retained(&removed);
            return Ok((None, self.record_retained_gone(content.topic)));
        }
        let limits = &self.config.limits;
        let earlier = self.retained.get(content.topic);
        let message = self.ledger.message(content, now);
        let bytes = self.retained.bytes() + message.bytes();
        let is_one_more = earlier.is_none() && self.retained.len() >= limits.retained_max;
        let earlier_bytes = earlier.map_or(0, |earlier| earlier.bytes());
        if is_one_more || bytes - earlier_bytes > limits.retained_bytes_max {
            self.ledger.counts.refused_retained += 1;
            return Err(NoRoom);
        }
        self.ledger.hold_retained(&message);
        if let Some(earlier) = self.retained.insert(Arc::clone(&message), published) {
            self.ledger.release_retained(&earlier);
        }
        let mut position = 0;
        if self.ledger.is_stored {
            self.ledger.record(Record::Retained {
                content: Arc::clone(&message),
            });
            position = self.ledger.journal.position.0;
        }
        Ok((Some(message), position))
    }

    pub(super) fn record_retained_gone(&mut self, topic: &str) -> u64 {
        if !self.ledger.is_stored {
            return 0;
        }
        self.ledger.record(Record::RetainedGone {
            topic: topic.into(),
        });
        self.ledger.journal.position.0
    }

    /// Delivers a publication, unless an earlier one of its publisher waits.
    fn start<O: Outbox<H>>(
        &mut self,
        now: Time,
        source: Source,
        content: &Content<'_>,
        (message, position): (Option<Arc<Message>>, u64),
        outbox: &mut O,
    ) {
        let mut course = self.course.take().unwrap_or_default();
        self.trie.begin(&mut course.walk);
        course.recording.position = position;
        let waits = match source.publisher {
            Some(key) => self.clients.find(key).is_some_and(|s| s.postponed > 0),
            None => match source.will_of {
                Some(_) => !self.wills.is_empty(),
                None => self.outside_postponed > 0,
            },
        };
        if waits && self.exceeds_postponed(2) && !source.is_repeatable() {
            self.ledger.counts.dropped_postponed += 1;
            self.course = Some(course);
            return self.note_will_published(&source);
        }
        // A later subscription is sent a retained message of this or a later publication by its scan, not this one.
        let mut steps = self.config.limits.steps_max;
        self.walk(content.topic, &mut course, &mut steps);
        course.recording.is_long |= waits;
        let mut message = match message {
            // Entries of a scan have the retained one, and a record of it before this publication ends.
            Some(retained) if course.recording.is_long && self.ledger.is_stored => {
                let number = self.ledger.message_number();
                Some(Arc::new(retained.renumbered(number)))
            }
            other => other,
        };
        if !waits {
            let mut fan = Fan::<O::Shared>::new(*content, self.buffers.take());
            fan.message = message;
            let is_done = self.run(now, &source, &mut fan, &mut course, steps, outbox);
            self.buffers = Some(fan.buffers);
            message = fan.message;
            if is_done {
                return self.put_back(course);
            }
        }
        let message = message.unwrap_or_else(|| self.ledger.message(content, now));
        self.postpone(
            Job {
                source,
                message,
                course,
                charged: 0,
            },
            outbox,
        );
        self.pay(now, outbox);
    }
}
