//! Restores a space from the records that a store has kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosstie_mqtt::{Options, PacketId, QoS};

use super::entries::{charge, charge_incoming, entry_bytes, session_bytes};
use super::{Space, Timer};
use crate::incoming::{Arrived, Id};
use crate::keys::SessionKey;
use crate::outgoing::{DealtBy, Entry, Identifiers, Outgoing, Stage};
use crate::session::{KeptWill, Session};
use crate::subscribers::PackedOptions;
use crate::{Message, MessageNumber, Outbox, Record, SessionNumber, Time};

/// The records, sorted by what they are about.
#[derive(Default)]
struct Found {
    sessions: BTreeMap<SessionNumber, FoundSession>,
    subscriptions: BTreeMap<(SessionNumber, Arc<str>), (Options, u32, bool)>,
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
    known_before: u64,
    known_max: u32,
}

impl FoundSession {
    fn ends_at(&self, now: Time) -> Time {
        self.ends_at.unwrap_or_else(|| now.after_s(self.expiry_s))
    }

    /// When its last connection ended.
    fn left_at(&self, now: Time) -> Time {
        let expiry_ms = u64::from(self.expiry_s) * 1000;
        let left_at = self.ends_at.map(|at| at.0.saturating_sub(expiry_ms));
        left_at.map_or(now, Time)
    }
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
    /// records about one subject the last, in any order. Those that belong to nothing are dropped. `now` is not before the
    /// last record, whatever the machine's clock shows: the numbers of this run follow from it.
    pub fn restore(
        &mut self,
        now: Time,
        records: impl IntoIterator<Item = Record>,
        outbox: &mut impl Outbox<H>,
    ) {
        let mut found = Found::default();
        records.into_iter().for_each(|record| found.add(record));
        self.ledger.begin_run(now, found.greatest());
        let mut keys = BTreeMap::new();
        let mut ended = Vec::new();
        // Of two sessions of one client, the earlier one has ended.
        for (number, session) in found.sessions.iter().rev() {
            let key = self.restore_session(now, *number, session);
            keys.insert(*number, key);
            let is_live = self.clients.find_by_id(&session.client_id) == Some(key);
            ended.extend((!is_live).then_some(key));
        }
        for number in found.strangers() {
            self.ledger.record(Record::SessionEnded { session: number });
        }
        let mut scans = Vec::new();
        for ((number, filter), found) in std::mem::take(&mut found.subscriptions) {
            if let Some(key) = keys.get(&number) {
                let (options, identifier, is_scanned) = found;
                let options = PackedOptions::of(options);
                let made = self.add_subscription(*key, &filter, identifier, options, outbox);
                // Text that is no filter has matched nothing.
                if let Ok(made) = made
                    && is_scanned
                {
                    scans.push((*key, made.node, filter, identifier, options));
                }
            }
        }
        self.restore_queues(&mut found, &keys, outbox);
        self.restore_received(&mut found, &keys, outbox);
        for (number, will) in std::mem::take(&mut found.wills) {
            if let (Some(key), Some(session)) = (keys.get(&number), found.sessions.get(&number)) {
                self.restore_will(session.left_at(now), *key, will);
            }
        }
        for (_, message) in std::mem::take(&mut found.retained) {
            let message = Arc::new(message.renumbered(self.ledger.message_number()));
            self.ledger.hold_retained(&message);
            self.retained.insert(message, 0);
        }
        // From the first one again: it is not known how far they were.
        for (key, node, filter, identifier, options) in scans {
            self.begin_scan(key, node, (&filter, identifier, options), outbox);
        }
        for key in keys.into_values() {
            self.begin_absence(key, &found);
        }
        for key in ended {
            self.remove_session(now, key, outbox);
        }
        // All that was due meanwhile happens before the first client comes back.
        while self.next_timeout().is_some_and(|at| at <= now) {
            self.handle_timeout(now, outbox);
        }
    }

    fn restore_received(
        &mut self,
        found: &mut Found,
        keys: &BTreeMap<SessionNumber, SessionKey>,
        outbox: &mut impl Outbox<H>,
    ) {
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
    }

    fn restore_session(
        &mut self,
        now: Time,
        number: SessionNumber,
        found: &FoundSession,
    ) -> SessionKey {
        let client_id = Arc::clone(&found.client_id);
        let has_ended = found.expiry_s == 0 || self.clients.find_by_id(&client_id).is_some();
        let key = match has_ended {
            false => self.begin(client_id),
            true => self.clients.insert_ended(Session::new(client_id)),
        };
        if let Some(session) = self.clients.find_mut(key) {
            session.number = number;
            session.expiry_s = found.expiry_s;
            // The restart has ended its connection.
            session.rare_mut().ends_at = Some(found.ends_at(now));
            let bytes = session_bytes(&found.client_id);
            session.held = bytes as usize;
            self.ledger.keep(bytes);
        }
        key
    }

    /// Lets a restored session wait for its client.
    fn begin_absence(&mut self, key: SessionKey, found: &Found) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let known = found.sessions.get(&session.number);
        let (before, known_max) = known.map_or((0, 0), |known| {
            (known.known_before, known.known_max as usize)
        });
        let mut timers = Vec::new();
        if let Some(outgoing) = &mut session.outgoing {
            outgoing.set_known(known_max.max(outgoing.count_before(before)));
            outgoing.sweeps_at = outgoing.next_expiry();
            timers.extend(outgoing.sweeps_at.map(|at| (at, Timer::Messages(key))));
        }
        if let Some(ends_at) = session.ends_at() {
            timers.push((ends_at, Timer::Session(key)));
            // The next restart does not begin it anew.
            if known.is_some_and(|known| known.ends_at.is_none()) {
                let record = session.record(Some(ends_at));
                self.ledger.record(record);
            }
        }
        self.idle
            .extend(session.idle_until().map(|ends_at| (ends_at, key)));
        for (at, timer) in timers {
            self.set_timer(at, timer);
        }
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
        // In the order of the places of each session.
        for ((number, place), queued) in std::mem::take(&mut found.queued) {
            let key = keys.get(&number);
            let Some(session) = key.and_then(|key| self.clients.find_mut(*key)) else {
                continue;
            };
            let Some(message) = messages.get(&queued.message) else {
                let session = number;
                self.ledger.record(Record::Departed { session, place });
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
                is_repeated: false,
            };
            let own_bytes = entry_bytes(&entry);
            outgoing.push(entry);
            if queued.is_forwarded {
                // It was sent, and so were those before it.
                outgoing.set_known(outgoing.len());
            }
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
        left_at: Time,
        key: SessionKey,
        (message, expiry_s, delay_s): (Arc<Message>, Option<u32>, u32),
    ) {
        let message = Arc::new(message.renumbered(self.ledger.message_number()));
        self.ledger.hold(&message);
        let due_at = left_at.after_s(delay_s);
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
    /// The greatest number of a session, of a message, of a place.
    fn greatest(&self) -> [u64; 3] {
        let session = self.sessions.keys().next_back();
        let message = self.messages.keys().next_back();
        let place = self.queued.keys().map(|(_, place)| *place).max();
        let numbers = [session.map(|one| one.0), message.map(|one| one.0), place];
        numbers.map(Option::unwrap_or_default)
    }

    /// Sessions without a record of their own.
    fn strangers(&self) -> BTreeSet<SessionNumber> {
        let subscriptions = self.subscriptions.keys().map(|(session, _)| *session);
        let queued = self.queued.keys().map(|(session, _)| *session);
        let received = self.received.iter().map(|(session, _)| *session);
        let wills = self.wills.keys().copied();
        let all = subscriptions.chain(queued).chain(received).chain(wills);
        all.filter(|session| !self.sessions.contains_key(session))
            .collect()
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Session {
                session,
                client_id,
                expiry_s,
                ends_at,
                known_before,
                known_max,
            } => {
                let found = FoundSession {
                    client_id,
                    expiry_s,
                    ends_at,
                    known_before,
                    known_max,
                };
                self.sessions.insert(session, found);
            }
            Record::SessionEnded { session } => drop(self.sessions.remove(&session)),
            Record::Subscribed {
                session,
                filter,
                options,
                identifier,
                is_scanned,
            } => {
                let key = (session, filter);
                let found = (options, identifier, is_scanned);
                self.subscriptions.insert(key, found);
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
