//! Sends a session the messages that wait for it.

use std::sync::Arc;

use crosstie_mqtt::{Delivery, Head, QoS, ReasonCode, Version};

use super::Space;
use super::entries::{add_alias, remove_entry};
use crate::aliases::Alias;
use crate::fan::{Fan, rest_of, with_alias};
use crate::keys::SessionKey;
use crate::ledger::Ledger;
use crate::line::{Line, What};
use crate::outgoing::{Entry, Stage, UNRECORDED};
use crate::session::Session;
use crate::{Answer, Content, Outbox, Packet, Refused, Time};

/// The fate of the next entry.
enum Sent {
    Done,
    Expired,
    TooLarge,
    Refused,
}

impl<H> Space<H> {
    /// Sends what waits for a session, and continues its scans.
    pub(super) fn send<O: Outbox<H>>(&mut self, now: Time, key: SessionKey, outbox: &mut O) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let outgoing = session.outgoing.as_deref();
        if outgoing.is_none_or(|outgoing| outgoing.next().is_none()) {
            return self.wake_scans(key);
        }
        let buffers = self.buffers.take();
        let mut fan = Fan::<O::Shared>::new(Content::EMPTY, buffers);
        send_waiting(
            now,
            (key, session),
            &mut fan,
            (&mut self.ledger, &mut self.line),
            outbox,
        );
        self.buffers = Some(fan.buffers);
        self.wake_scans(key);
    }
}

/// Sends entries of a session in their order, as far as its window, its connection and the store allow.
pub(super) fn send_waiting<H, O: Outbox<H>>(
    now: Time,
    (key, session): (SessionKey, &mut Session<H>),
    fan: &mut Fan<'_, O::Shared>,
    (ledger, line): (&mut Ledger, &mut Line),
    outbox: &mut O,
) {
    while session.is_open && !session.is_full {
        let (Some(link), Some(outgoing)) = (&session.link, &session.outgoing) else {
            return;
        };
        if outgoing.sent() >= usize::from(session.window) {
            return;
        }
        let Some(entry) = outgoing.next() else {
            return;
        };
        let recorded = entry.recorded();
        if recorded == UNRECORDED && entry.qos == QoS::ExactlyOnce {
            return;
        }
        // A packet identifier of QoS 2 that the client knows must survive, and so must the PUBREC that PUBREL follows.
        if entry.qos == QoS::ExactlyOnce && !ledger.is_committed(recorded) {
            if !session.awaits_commit {
                session.awaits_commit = true;
                line.push(recorded, key, session.connection, What::Send);
            }
            return;
        }
        let at = outgoing.sent();
        let limits = (session.version, session.packet_bytes_max);
        let alias = match (&session.rare, entry.stage) {
            (Some(_), Stage::Message) => alias(session, entry),
            _ => None,
        };
        match send_entry(now, entry, (limits, alias), link, fan, outbox) {
            Sent::Done => {
                ledger.counts.sent[usize::from(entry.qos.octet())] += 1;
                let new = alias.filter(|alias| !alias.is_known);
                let message = new.map(|_| Arc::clone(&entry.message));
                if let Some(outgoing) = &mut session.outgoing {
                    outgoing.note_sent();
                }
                if let Some(message) = message {
                    add_alias(session, message.topic(), ledger, outbox);
                }
            }
            Sent::Expired => {
                ledger.counts.expired_messages += 1;
                remove_entry(session, at, ledger, outbox);
            }
            Sent::TooLarge => {
                ledger.counts.dropped_large += 1;
                remove_entry(session, at, ledger, outbox);
            }
            Sent::Refused => session.is_full = true,
        }
    }
}

/// The alias of an entry's topic.
fn alias<H>(session: &Session<H>, entry: &Entry) -> Option<Alias> {
    let message = &entry.message;
    let identifiers = entry.identifiers.as_slice();
    let other_bytes = rest_of(message, Version::V5).len() + 5 * identifiers.len();
    session.alias(message.topic(), other_bytes)
}

fn send_entry<H, O: Outbox<H>>(
    now: Time,
    entry: &Entry,
    ((version, packet_bytes_max), alias): ((Version, u32), Option<Alias>),
    link: &H,
    fan: &mut Fan<'_, O::Shared>,
    outbox: &mut O,
) -> Sent {
    let id = entry.packet_id();
    if entry.stage == Stage::Forwarded {
        outbox.acknowledge(link, Answer::PubRel(id, ReasonCode::Success));
        return Sent::Done;
    }
    let message = &entry.message;
    let expiry = match message.left_s(now) {
        Some(expiry) => expiry,
        // The client may know its identifier, which a later message must not meet.
        None if entry.is_repeated && entry.qos == QoS::ExactlyOnce => Some(1),
        None => return Sent::Expired,
    };
    let delivery = match entry.qos {
        QoS::ExactlyOnce => Delivery::ExactlyOnce(id),
        _ => Delivery::AtLeastOnce(id),
    };
    let head = Head {
        delivery,
        dup: entry.is_repeated,
        retain: entry.is_retained,
        expiry,
        subscription_ids: entry.identifiers.as_slice(),
        topic_alias: alias.map(|alias| alias.number),
    };
    let (encoder, own, shared) = fan.parts(message, version);
    let encoder = with_alias(encoder, alias);
    own.clear();
    let encoded = encoder.encode_head(version, &head, own);
    let rest = rest_of(message, version);
    if encoded.is_err() || own.len() + rest.len() > packet_bytes_max as usize {
        return Sent::TooLarge;
    }
    let packet = Packet { head: own, rest };
    match outbox.publish(link, packet, shared.unwrap_or(&mut None)) {
        Ok(()) => Sent::Done,
        Err(Refused::Full | Refused::Gone) => Sent::Refused,
    }
}
