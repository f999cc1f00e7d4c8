//! Delivers a publication to one session.

use std::sync::Arc;

use crosstie_mqtt::QoS;

use super::entries::{add_alias, charge, entry_bytes, remove_entry};
use super::send::send_waiting;
use super::{Space, Timer};
use crate::course::Recording;
use crate::fan::Fan;
use crate::keys::SessionKey;
use crate::ledger::Ledger;
use crate::outgoing::{DealtBy, Entry, Identifiers, Outgoing, Stage, UNRECORDED};
use crate::session::Session;
use crate::{Content, Message, Outbox, Record, Time};

/// How a session gets a message.
#[derive(Debug)]
pub(super) struct Form<'a> {
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) group: DealtBy,
    pub(super) identifiers: &'a [u32],
}

impl<H> Space<H> {
    /// Delivers a message to a session: sends it, or keeps it.
    #[inline]
    pub(super) fn deliver<O: Outbox<H>>(
        &mut self,
        now: Time,
        key: SessionKey,
        form: &Form<'_>,
        fan: &mut Fan<'_, O::Shared>,
        recording: &mut Recording,
        outbox: &mut O,
    ) {
        if form.qos == QoS::AtMostOnce {
            if let Some(session) = self.clients.find_mut(key) {
                send_plain(session, form, fan, &mut self.ledger, outbox);
            }
            return;
        }
        self.keep(now, key, form, fan, recording, outbox);
    }

    /// Puts a message of QoS 1 or 2 into the queue of a session, and sends it if it may.
    #[inline(never)]
    fn keep<O: Outbox<H>>(
        &mut self,
        now: Time,
        key: SessionKey,
        form: &Form<'_>,
        fan: &mut Fan<'_, O::Shared>,
        recording: &mut Recording,
        outbox: &mut O,
    ) {
        let session = self.clients.find(key);
        if session.is_none_or(|session| session.has_ended) {
            return;
        }
        let message = match &fan.message {
            Some(message) => Arc::clone(message),
            None => {
                let message = self.ledger.message(&fan.content, now);
                fan.message = Some(Arc::clone(&message));
                message
            }
        };
        let identifiers = Identifiers::of(form.identifiers);
        let bytes = message.bytes() + identifiers.bytes();
        if !self.make_room(key, bytes, outbox) {
            return;
        }
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        self.ledger.hold(&message);
        self.ledger.counts.queued += 1;
        let first_place = self.ledger.first_place;
        let outgoing = session
            .outgoing
            .get_or_insert_with(|| Box::new(Outgoing::new(first_place)));
        let expires_at = message.expires_at;
        let mut entry = Entry {
            place: outgoing.take_place(),
            position: 0,
            identifiers,
            qos: form.qos,
            stage: Stage::Message,
            is_retained: form.retain,
            group: form.group,
            is_repeated: false,
            message,
        };
        if session.number.0 != 0 {
            record(session.number, &mut entry, key, recording, &mut self.ledger);
        }
        let own_bytes = entry_bytes(&entry);
        outgoing.push(entry);
        let sweeps_at = outgoing.sweeps_at;
        let sweep = expires_at.filter(|at| sweeps_at.is_none_or(|earlier| *at < earlier));
        outgoing.sweeps_at = sweep.or(sweeps_at);
        charge(session, own_bytes, &mut self.ledger, outbox);
        let parts = (&mut self.ledger, &mut self.line);
        send_waiting(now, (key, session), fan, parts, outbox);
        if let Some(at) = sweep {
            self.set_timer(at, Timer::Messages(key));
        }
    }

    /// Drops the oldest unsent messages of a session until another one fits; false if it cannot.
    fn make_room(&mut self, key: SessionKey, bytes: usize, outbox: &mut impl Outbox<H>) -> bool {
        let limits = &self.config.limits;
        let Some(session) = self.clients.find_mut(key) else {
            return false;
        };
        let queued_max = limits.queued_max.min(QUEUED_MAX);
        let is_full = |out: &Outgoing| {
            out.len() >= queued_max || out.bytes() + bytes > limits.queued_bytes_max
        };
        let full = session.outgoing.as_deref().filter(|out| is_full(out));
        // Others are not dropped for a message that has no room beside those that stay.
        let staying = full.map_or(0, Outgoing::staying_bytes);
        if bytes > limits.queued_bytes_max.saturating_sub(staying) {
            self.ledger.counts.dropped_large += 1;
            return false;
        }
        loop {
            let Some(outgoing) = session.outgoing.as_deref().filter(|out| is_full(out)) else {
                return true;
            };
            self.ledger.counts.dropped_oldest += 1;
            // An entry that the client may know stays, for the sake of its identifier.
            let Some(at) = outgoing.first_unsent() else {
                return false;
            };
            remove_entry(session, at, &mut self.ledger, outbox);
        }
    }
}

/// Packet identifiers suffice for so many entries; the configuration accepts no more.
const QUEUED_MAX: usize = 60_000;

/// Sends a message of QoS 0, or drops it.
#[inline]
fn send_plain<H, O: Outbox<H>>(
    session: &mut Session<H>,
    form: &Form<'_>,
    fan: &mut Fan<'_, O::Shared>,
    ledger: &mut Ledger,
    outbox: &mut O,
) {
    let Some(link) = session.link.as_ref().filter(|_| session.is_open) else {
        return;
    };
    let Content { topic, .. } = fan.content;
    let alias = match session.rare {
        Some(_) => session.alias(topic, fan.other_bytes(form.identifiers)),
        None => None,
    };
    // A session of MQTT 5 keeps its identifiers when its client comes back in 3.x, which has none.
    let encoded = match (form.identifiers, alias) {
        ([_, ..], _) if session.version.is_v5() => fan.headed(form.retain, form.identifiers, alias),
        (_, Some(_)) => fan.headed(form.retain, &[], alias),
        _ => fan.whole(session.version, form.retain),
    };
    let fits = |bytes| bytes <= session.packet_bytes_max as usize;
    let encoded = encoded.filter(|(packet, _)| fits(packet.head.len() + packet.rest.len()));
    let Some((packet, shared)) = encoded else {
        ledger.counts.dropped_large += 1;
        return;
    };
    match outbox.publish(link, packet, shared) {
        Ok(()) => {
            ledger.counts.sent[0] += 1;
            if alias.is_some_and(|alias| !alias.is_known) {
                add_alias(session, topic, ledger, outbox);
            }
        }
        Err(_) => ledger.counts.dropped_full += 1,
    }
}

/// Records an entry of a kept session, and its message with the first one. In a long publication the record of the message
/// is the last one: a restart drops entries without it, so that it has all of them or none.
fn record(
    session: crate::SessionNumber,
    entry: &mut Entry,
    key: SessionKey,
    recording: &mut Recording,
    ledger: &mut Ledger,
) {
    let message: &Arc<Message> = &entry.message;
    let is_first = message.holders.add_stored();
    if recording.is_long {
        ledger.record(entry.record(session));
        entry.position = UNRECORDED;
        if entry.qos == QoS::ExactlyOnce {
            recording.stored.push(key);
        }
        return;
    }
    if is_first {
        ledger.record(Record::Message {
            message: message.number,
            content: Arc::clone(message),
        });
    }
    ledger.record(entry.record(session));
    entry.position = ledger.journal.position.0;
    recording.position = entry.position;
}
