//! Restores a space from the records that a store has kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosstie_mqtt::{Options, PacketId, QoS};

use super::entries::{charge, charge_incoming, entry_bytes, session_bytes};
use super::{Space, Timer};
use crate::incoming::{Arrived, Id};
use crate::keys::SessionKey;
use crate::outgoing::{DealtBy, Entry, Identifiers, Outgoing, Stage};
use crate::session::KeptWill;
use crate::subscribers::PackedOptions;
use crate::{Message, MessageNumber, Outbox, Record, SessionNumber, Time};

/// The records, sorted by what they are about.
#[derive(Default)]
struct Found {
    sessions: BTreeMap<SessionNumber, FoundSession>,
    subscriptions: BTreeMap<(SessionNumber, Arc<str>), (Options, u32)>,
    messages: BTreeMap<MessageNumber, Arc<Message>>,
    queued: BTreeMap<(SessionNumber, u64), Queued>,
    received: BTreeSet<(SessionNumber, PacketId)>,
    wills: BTreeMap<SessionNumber, (Arc<Message>, Option<u32>, u32)>,
    retained: BTreeMap<Arc<str>, Arc<Message>>,
}

struct FoundSession {
    client_id: Arc<str>,
    expiry_s: u32,
    ends_at: Option<Time>,
}

struct Queued {
    message: MessageNumber,
    qos: QoS,
    is_retained: bool,
    is_shared: bool,
    is_forwarded: bool,
    identifiers: Vec<u32>,
}

impl<H> Space<H> {
    /// Restores what a store has kept, before any other input: the records in the order in which they were made, or of all
    /// records about one subject the last, in any order. Those that belong to nothing are dropped.
    pub fn restore(
        &mut self,
        now: Time,
        records: impl IntoIterator<Item = Record>,
        outbox: &mut impl Outbox<H>,
    ) {
        let mut found = Found::default();
        self.ledger.begin_run(now);
        records.into_iter().for_each(|record| found.add(record));
        let mut keys = BTreeMap::new();
        for (number, session) in std::mem::take(&mut found.sessions) {
            match self.restore_session(now, number, &session) {
                Some(key) => drop(keys.insert(number, key)),
                None => self.ledger.record(Record::SessionEnded { session: number }),
            }
        }
        for ((number, filter), (options, identifier)) in std::mem::take(&mut found.subscriptions) {
            if let Some(key) = keys.get(&number) {
                let options = PackedOptions::of(options);
                // A bound that is lower now does not end it.
                let _ = self.add_subscription(*key, &filter, identifier, options, outbox);
            }
        }
        self.restore_queues(&mut found, &keys, outbox);
        for (number, id) in std::mem::take(&mut found.received) {
            let key = keys.get(&number);
            if let Some(session) = key.and_then(|key| self.clients.find_mut(*key)) {
                session.incoming.get_or_insert_default().insert(Id {
                    id,
                    stage: Arrived::Answered,
                    came_by: 0,
                    asked_by: 0,
                });
                charge_incoming(session, &mut self.ledger, outbox);
            }
        }
        for (number, will) in std::mem::take(&mut found.wills) {
            if let Some(key) = keys.get(&number) {
                self.restore_will(now, *key, will);
            }
        }
        for (_, message) in std::mem::take(&mut found.retained) {
            let message = Arc::new(message.renumbered(self.ledger.message_number()));
            self.ledger.hold_retained(&message);
            self.retained.insert(message, 0);
        }
    }

    /// None if the session has ended with its connection.
    fn restore_session(
        &mut self,
        now: Time,
        number: SessionNumber,
        found: &FoundSession,
    ) -> Option<SessionKey> {
        if found.expiry_s == 0 || self.clients.find_by_id(&found.client_id).is_some() {
            return None;
        }
        let key = self.begin(Arc::clone(&found.client_id));
        // The restart has ended its connection.
        let ends_at = found.ends_at.unwrap_or_else(|| now.after_s(found.expiry_s));
        let session = self.clients.find_mut(key)?;
        session.number = number;
        session.expiry_s = found.expiry_s;
        session.rare_mut().ends_at = Some(ends_at);
        let bytes = session_bytes(&found.client_id);
        session.held = bytes as usize;
        self.ledger.keep(bytes);
        self.set_timer(ends_at, Timer::Session(key));
        Some(key)
    }

    fn restore_queues(
        &mut self,
        found: &mut Found,
        keys: &BTreeMap<SessionNumber, SessionKey>,
        outbox: &mut impl Outbox<H>,
    ) {
        let mut messages = BTreeMap::new();
        for (number, message) in std::mem::take(&mut found.messages) {
            messages.insert(number, Arc::new(message.renumbered(number)));
        }
        let first_place = self.ledger.first_place;
        let in_flight_max = usize::from(self.config.limits.in_flight_max);
        // In the order of the places of each session.
        for ((number, place), queued) in std::mem::take(&mut found.queued) {
            let Some(message) = messages.get(&queued.message) else {
                continue;
            };
            let key = keys.get(&number);
            let Some(session) = key.and_then(|key| self.clients.find_mut(*key)) else {
                continue;
            };
            self.ledger.hold(message);
            message.holders.add_stored();
            self.ledger.counts.queued += 1;
            let make = || Box::new(Outgoing::new(first_place));
            let outgoing = session.outgoing.get_or_insert_with(make);
            let stage = match queued.is_forwarded {
                true => Stage::Forwarded,
                false => Stage::Message,
            };
            let entry = Entry {
                message: Arc::clone(message),
                place,
                position: 0,
                identifiers: Identifiers::of(&queued.identifiers),
                qos: queued.qos,
                stage,
                is_retained: queued.is_retained,
                group: match queued.is_shared {
                    true => DealtBy::SOME,
                    false => DealtBy::NONE,
                },
                // Those of a window may have been sent.
                is_repeated: outgoing.len() < in_flight_max,
            };
            let own_bytes = entry_bytes(&entry);
            outgoing.push(entry);
            charge(session, own_bytes, &mut self.ledger, outbox);
        }
        for (number, message) in messages {
            if !message.holders.is_stored() {
                self.ledger.record(Record::MessageGone { message: number });
            }
        }
    }

    /// The will of a connection that the restart has ended, or whose delay had begun.
    fn restore_will(
        &mut self,
        now: Time,
        key: SessionKey,
        (message, expiry_s, delay_s): (Arc<Message>, Option<u32>, u32),
    ) {
        let message = Arc::new(message.renumbered(self.ledger.message_number()));
        self.ledger.hold(&message);
        let due_at = now.after_s(delay_s);
        if let Some(session) = self.clients.find_mut(key) {
            session.rare_mut().will = Some(KeptWill {
                message,
                expiry_s,
                delay_s,
                due_at: Some(due_at),
            });
        }
        self.set_timer(due_at, Timer::Will(key));
    }
}

impl Found {
    fn add(&mut self, record: Record) {
        match record {
            Record::Session {
                session,
                client_id,
                expiry_s,
                ends_at,
            } => {
                let found = FoundSession {
                    client_id,
                    expiry_s,
                    ends_at,
                };
                self.sessions.insert(session, found);
            }
            Record::SessionEnded { session } => drop(self.sessions.remove(&session)),
            Record::Subscribed {
                session,
                filter,
                options,
                identifier,
            } => {
                let key = (session, filter);
                self.subscriptions.insert(key, (options, identifier));
            }
            Record::Unsubscribed { session, filter } => {
                self.subscriptions.remove(&(session, filter));
            }
            Record::Message { message, content } => {
                self.messages.insert(message, content);
            }
            Record::MessageGone { message } => drop(self.messages.remove(&message)),
            Record::Queued { .. } => self.add_queued(record),
            Record::Departed { session, place } => {
                self.queued.remove(&(session, place));
            }
            Record::Received { session, packet_id } => {
                self.received.insert((session, packet_id));
            }
            Record::Released { session, packet_id } => {
                self.received.remove(&(session, packet_id));
            }
            Record::Will {
                session,
                content,
                expiry_s,
                delay_s,
            } => drop(self.wills.insert(session, (content, expiry_s, delay_s))),
            Record::WillGone { session } => drop(self.wills.remove(&session)),
            Record::Retained { content } => {
                self.retained.insert(content.topic().into(), content);
            }
            Record::RetainedGone { topic } => drop(self.retained.remove(&*topic)),
        }
    }

    fn add_queued(&mut self, record: Record) {
        if let Record::Queued {
            session,
            place,
            message,
            qos,
            is_retained,
            is_shared,
            is_forwarded,
            identifiers,
        } = record
        {
            let queued = Queued {
                message,
                qos,
                is_retained,
                is_shared,
                is_forwarded,
                identifiers,
            };
            self.queued.insert((session, place), queued);
        }
    }
}
