//! The vhost's frames: deliveries become PUBLISH packets, confirms acknowledgements.

use std::mem;
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_amqp::frame::{self, Decoded, Frame, FrameKind};
use crosstie_amqp::method::{BasicAck, BasicDeliver, BasicNack};
use crosstie_amqp::{ContentHeader, Method};
use crosstie_broker::guest::Guest;
use crosstie_front::cause::Cause;
use crosstie_mqtt::{Ack, Delivery, Head, Message, Packet, PacketType, QoS, ReasonCode};
use crosstie_spaces::{Dropped, Figures};
use crosstie_transport::{Portion, Refused, Taken};
use parking_lot::MutexGuard;

use crate::member::{Inner, Member};
use crate::names;
use crate::properties::{self, Received};
use crate::session::{Owed, Session};

/// Bytes taken from the mailbox at a time.
const TAKEN_BYTES: usize = 64 * 1024;

/// Number of times that it is taken from in a turn.
const TAKES_MAX: usize = 16;

/// Bytes in the socket's queue beyond which deliveries stay in the mailbox, and then in their queues.
const SENT_BYTES_MAX: usize = 256 * 1024;

/// The outcome of the frames at the front.
enum Step {
    Handled(usize),
    Incomplete,
    /// The socket's queue has no room.
    Full,
}

/// A message on its way to a client.
pub(crate) struct Outgoing<'a> {
    pub(crate) key: &'a str,
    pub(crate) qos: QoS,
    pub(crate) is_repeated: bool,
    pub(crate) is_retained: bool,
    /// That of its delivery, if it is to be acknowledged.
    pub(crate) tag: Option<u64>,
    pub(crate) received: Received,
    pub(crate) body: &'a [u8],
}

/// The fate of a message to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Its PUBACK acknowledges it.
    Awaited,
    /// Nothing follows.
    Done,
    /// The socket's queue has no room now.
    Full,
}

impl Member {
    /// Handles the frames that wait, as far as the socket takes their packets.
    pub(crate) fn receive(&self) {
        self.receive_in(self.lock());
    }

    /// The same, for a thread that has the lock.
    pub(crate) fn receive_in(&self, mut inner: MutexGuard<'_, Inner>) {
        if self.is_over() {
            return;
        }
        if self.mailbox.is_closed() {
            // Closed for its memory, or because the client has left.
            if let Some(cause) = Cause::noted(&self.mailbox) {
                cause.note(&self.connection);
            }
            return self.close();
        }
        for _ in 0..TAKES_MAX {
            if !self.handle_frames(&mut inner) || self.connection.queued_bytes() > SENT_BYTES_MAX {
                return self.receive_when_sent();
            }
            match self.mailbox.take(Portion::Bytes(TAKEN_BYTES)) {
                Taken::Bytes(bytes) => inner.frames.extend_from_slice(&bytes),
                Taken::Nothing | Taken::Over => return,
            }
        }
        // What is dropped and acknowledged here makes room for more.
        drop(inner);
        self.receive_later();
    }

    /// Returns false if the socket's queue has no room.
    fn handle_frames(&self, inner: &mut Inner) -> bool {
        let mut frames = mem::take(&mut inner.frames);
        let mut at = 0;
        let has_room = loop {
            match self.handle_frame(&frames[at..], inner) {
                Step::Handled(bytes) => at += bytes,
                Step::Incomplete => break true,
                Step::Full => break false,
            }
        };
        if at < frames.len() {
            frames.drain(..at);
            inner.frames = frames;
        }
        has_room
    }

    fn handle_frame(&self, input: &[u8], inner: &mut Inner) -> Step {
        let Some((frame, consumed)) = next(input) else {
            return Step::Incomplete;
        };
        let method = match frame.kind {
            FrameKind::Method => Method::decode(frame.payload).ok(),
            _ => None,
        };
        match method {
            Some(Method::BasicDeliver(deliver)) => {
                return self.handle_delivery(&deliver, &input[consumed..], inner, consumed);
            }
            Some(Method::BasicAck(BasicAck {
                delivery_tag,
                multiple,
            })) => {
                let owed = inner.session.confirmed(delivery_tag, multiple);
                self.acknowledge(&owed, true, &mut inner.session);
            }
            Some(Method::BasicNack(BasicNack {
                delivery_tag,
                multiple,
                ..
            })) => {
                let owed = inner.session.confirmed(delivery_tag, multiple);
                self.acknowledge(&owed, false, &mut inner.session);
            }
            Some(Method::ConnectionClose(_)) => self.handle_close(),
            // A queue is gone, or the vhost has closed the channel: the client comes back, and finds what is left.
            Some(Method::BasicCancel(_) | Method::ChannelClose(_)) => {
                Cause::VhostGone.note(&self.connection);
                self.close();
            }
            // Answers of methods that cannot do without.
            _ => {}
        }
        Step::Handled(consumed)
    }

    /// The broker closes the connection: some clients never come back after DISCONNECT, so only an operator sends one.
    fn handle_close(&self) {
        let cause = Cause::noted(&self.mailbox).unwrap_or(Cause::Operator);
        cause.note(&self.connection);
        match cause {
            Cause::Operator => self.end(ReasonCode::AdministrativeAction),
            _ => self.close(),
        }
        self.connection.finish();
    }

    fn handle_delivery(
        &self,
        deliver: &BasicDeliver<'_>,
        behind: &[u8],
        inner: &mut Inner,
        consumed: usize,
    ) -> Step {
        let Some((header, header_bytes)) = next(behind) else {
            return Step::Incomplete;
        };
        // Only the broker writes there.
        let Ok(header) = ContentHeader::decode(header.payload) else {
            return Step::Handled(consumed + header_bytes);
        };
        let (mut body, mut bytes) = (&[][..], consumed + header_bytes);
        if header.body_bytes > 0 {
            let Some((frame, body_bytes)) = next(&behind[header_bytes..]) else {
                return Step::Incomplete;
            };
            body = frame.payload;
            bytes += body_bytes;
        }
        let found = header.properties.parse();
        let received = properties::from_amqp(&found, self.version.is_v5(), now_s());
        let is_acknowledged = deliver.consumer_tag == names::consumer_tag(QoS::AtLeastOnce);
        let tag = is_acknowledged.then_some(deliver.delivery_tag);
        let outgoing = Outgoing {
            key: deliver.routing_key,
            qos: match tag {
                Some(_) => received.qos,
                None => QoS::AtMostOnce,
            },
            is_repeated: deliver.redelivered,
            is_retained: false,
            tag,
            received,
            body,
        };
        match self.publish(&outgoing, &mut inner.session) {
            Sent::Full => return Step::Full,
            Sent::Awaited => {}
            Sent::Done => settle(inner.guest.as_mut(), tag),
        }
        Step::Handled(bytes)
    }

    /// Sends a message.
    pub(crate) fn publish(&self, outgoing: &Outgoing<'_>, session: &mut Session) -> Sent {
        if self.is_over() {
            // It stays in its queue.
            return Sent::Awaited;
        }
        let Some(topic) = names::topic(outgoing.key) else {
            Figures::get().count_dropped(Dropped::NoTopic);
            return Sent::Done;
        };
        let message = Message {
            topic: &topic,
            properties: outgoing.received.properties.as_properties(),
            payload: outgoing.body,
        };
        let is_acknowledged = outgoing.qos != QoS::AtMostOnce;
        let id = match is_acknowledged {
            true => session.take_off(outgoing.tag),
            false => None,
        };
        let head = Head {
            delivery: id.map_or(Delivery::AtMostOnce, Delivery::AtLeastOnce),
            dup: is_acknowledged && outgoing.is_repeated,
            retain: outgoing.is_retained,
            expiry: outgoing.received.expiry_s,
            ..Head::PLAIN
        };
        let bytes = message
            .encoded_bytes(self.version, &head)
            .unwrap_or(usize::MAX);
        let sent = match bytes > session.packet_bytes_max as usize {
            true => Err(Refused::Writer(())),
            false => self.append(|out| {
                let _ = message.encode(self.version, &head, out);
            }),
        };
        if sent.is_err()
            && let Some(id) = id
        {
            session.land(id);
        }
        match sent {
            Ok(()) => Figures::get().count_sent(PacketType::Publish),
            Err(Refused::Gone) => return Sent::Awaited,
            Err(Refused::Full) if self.connection.queued_bytes() > 0 => return Sent::Full,
            // It never fits.
            Err(Refused::Full | Refused::Writer(())) => {
                Figures::get().count_dropped(Dropped::Large);
                return Sent::Done;
            }
        }
        match id {
            Some(_) => Sent::Awaited,
            None => Sent::Done,
        }
    }

    /// Answers publications that the vhost has confirmed or refused.
    fn acknowledge(&self, owed: &[Owed], is_taken: bool, session: &mut Session) {
        let reason = match is_taken {
            true => ReasonCode::Success,
            false => ReasonCode::QuotaExceeded,
        };
        if !is_taken && !self.version.is_v5() && !owed.is_empty() {
            // MQTT 3 cannot say no: the client keeps the message, and repeats it when it is back.
            Figures::get().count_dropped(Dropped::Denied);
            return self.close();
        }
        for Owed { id, qos } in owed {
            let ack = Ack::with_reason(*id, reason);
            match qos {
                QoS::ExactlyOnce => {
                    session.note_received(*id, is_taken);
                    self.send(&Packet::PubRec(ack));
                }
                _ => self.send(&Packet::PubAck(ack)),
            }
        }
        self.note_owed(session);
    }
}

/// Acknowledges a delivery.
pub(crate) fn settle(guest: Option<&mut Guest>, tag: Option<u64>) {
    if let (Some(guest), Some(delivery_tag)) = (guest, tag) {
        guest.settle(&BasicAck::one(delivery_tag));
    }
}

pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The frame at the front, if it is complete.
fn next(input: &[u8]) -> Option<(Frame<'_>, usize)> {
    match frame::decode(input, 0) {
        Ok(Decoded::Frame { frame, consumed }) => Some((frame, consumed)),
        // Only the broker writes there.
        Ok(Decoded::Incomplete { .. }) | Err(_) => None,
    }
}
