//! CONNECT: a session begins, or continues.

use std::sync::Arc;

use crosstie_mqtt::{ReasonCode, Version};

use super::Space;
use super::entries::{charge, session_bytes};
use super::receive::is_within;
use crate::aliases::Aliases;
use crate::keys::SessionKey;
use crate::session::{KeptWill, Session, SubscribedKey};
use crate::{Connect, Connected, ConnectionKey, Outbox, Record, Time};

impl<H> Space<H> {
    /// Opens a session, or continues it. A connection with the same client identifier is closed (0x8E).
    pub fn connect(
        &mut self,
        now: Time,
        handle: H,
        connect: &Connect<'_>,
        outbox: &mut impl Outbox<H>,
    ) -> Result<Connected, ReasonCode> {
        let is_v5 = connect.version.is_v5();
        let is_assigned = connect.client_id.is_empty();
        // 3.1 requires a character, 3.1.1 one unless the session is clean.
        if is_assigned && (connect.version == Version::V31 || !is_v5 && !connect.is_clean) {
            return Err(ReasonCode::ClientIdentifierNotValid);
        }
        let will = connect.will.as_ref();
        if will.is_some_and(|will| !is_within(will.content.topic, &self.config.limits)) {
            self.ledger.counts.refused_topics += 1;
            return Err(ReasonCode::TopicNameInvalid);
        }
        let client_id: Arc<str> = match is_assigned {
            true => self.random.client_id().into(),
            false => connect.client_id.into(),
        };
        let position_before = self.ledger.journal.position.0;
        let mut found = self.clients.find_by_id(&client_id);
        if let Some(key) = found {
            self.take_over(now, key, outbox);
            if connect.is_clean {
                self.remove_session(now, key, outbox);
            }
            // Without expiry, it has ended with its connection.
            found = self.clients.find_by_id(&client_id);
        }
        if found.is_none() && !self.has_room(now, outbox) {
            self.ledger.counts.refused_sessions += 1;
            return Err(ReasonCode::QuotaExceeded);
        }
        let limits = &self.config.limits;
        let expiry_s = match (is_v5, connect.is_clean) {
            (true, _) => connect.session_expiry_s.min(limits.session_expiry_max_s),
            (false, true) => 0,
            (false, false) => limits.session_expiry_3_s,
        };
        let key = found.unwrap_or_else(|| self.begin(Arc::clone(&client_id)));
        let number = self.attach(key, handle, connect, expiry_s, outbox);
        self.keep_will(now, key, connect);
        // The end of an earlier session of this client, too: it would be there again after a crash.
        let ended = self.ends.get(&client_id).copied().unwrap_or_default();
        let position = match self.ledger.journal.position.0 {
            last if last > position_before => last,
            _ => ended,
        };
        let is_cut = is_v5 && expiry_s != connect.session_expiry_s;
        Ok(Connected {
            key: ConnectionKey {
                session: key,
                number,
            },
            is_present: found.is_some(),
            client_id,
            is_assigned,
            session_expiry_s: is_cut.then_some(expiry_s),
            position,
        })
    }

    /// Notes the user of a session, as text that only the owner reads.
    pub fn set_user(&mut self, client_id: &str, user: Arc<str>) {
        let found = self.clients.find_by_id(client_id);
        if let Some(session) = found.and_then(|key| self.clients.find_mut(key)) {
            session.user = Some(user);
        }
    }

    /// The user of a session.
    pub fn user(&self, client_id: &str) -> Option<&Arc<str>> {
        let key = self.clients.find_by_id(client_id)?;
        self.clients.find(key)?.user.as_ref()
    }

    /// Sets a lower bound of a client's subscriptions. Those that it has stay.
    pub fn limit_subscriptions(&mut self, key: ConnectionKey, max: Option<usize>) {
        if let Some(session) = self.connected_mut(key) {
            session.rare_mut().subscriptions_max = max;
            session.tidy();
        }
    }

    /// Continues sending to a connection that has space again.
    pub fn resume(&mut self, now: Time, key: ConnectionKey, outbox: &mut impl Outbox<H>) {
        let Some(session) = self.connected_mut(key) else {
            return;
        };
        session.is_full = false;
        self.send(now, key.session, outbox);
    }

    /// Ends the connection of a session in favour of another one.
    fn take_over(&mut self, now: Time, key: SessionKey, outbox: &mut impl Outbox<H>) {
        let session = self.clients.find(key);
        let Some(link) = session.and_then(|session| session.link.as_ref()) else {
            return;
        };
        outbox.close(link, ReasonCode::SessionTakenOver);
        self.ledger.counts.taken_over += 1;
        self.detach(now, key, true, outbox);
    }

    /// Whether one more session may begin. At the bound, the idle session that would end first ends for it.
    fn has_room(&mut self, now: Time, outbox: &mut impl Outbox<H>) -> bool {
        let sessions_max = self.config.limits.sessions_max;
        if self.clients.len() >= sessions_max
            && let Some((_, key)) = self.idle.pop_first()
        {
            self.ledger.counts.evicted_sessions += 1;
            self.remove_session(now, key, outbox);
        }
        self.clients.len() < sessions_max
    }

    pub(super) fn begin(&mut self, client_id: Arc<str>) -> SessionKey {
        self.clients.insert(Session::new(client_id))
    }

    /// Gives a session its connection; returns the connection's number.
    fn attach(
        &mut self,
        key: SessionKey,
        handle: H,
        connect: &Connect<'_>,
        expiry_s: u32,
        outbox: &mut impl Outbox<H>,
    ) -> u32 {
        self.connections_made = self.connections_made.wrapping_add(1);
        let Some(session) = self.clients.find_mut(key) else {
            return 0;
        };
        let ledger = &mut self.ledger;
        ledger.keep(-(session.held as isize));
        outbox.hold(&handle, session.held as isize);
        session.link = Some(handle);
        session.connection = self.connections_made;
        session.version = connect.version;
        session.packet_bytes_max = connect.packet_bytes_max;
        session.window = connect
            .receive_max
            .min(self.config.limits.in_flight_max)
            .max(1);
        session.expiry_s = expiry_s;
        if connect.version.is_v5() && connect.topic_alias_max > 0 {
            let aliases = Aliases::new(connect.topic_alias_max);
            session.rare_mut().aliases = Some(Box::new(aliases));
        }
        (session.is_open, session.is_full) = (false, false);
        if let Some(rare) = &mut session.rare
            && let Some(ends_at) = rare.ends_at.take()
        {
            self.idle.remove(&(ends_at, key));
        }
        if session.held == 0 {
            let bytes = session_bytes(&session.client_id);
            charge(session, bytes, ledger, outbox);
        }
        if let Some(outgoing) = &mut session.outgoing {
            outgoing.restart();
        }
        if expiry_s > 0 && ledger.is_stored && !session.is_recorded() {
            session.number = ledger.session_number();
        }
        if session.is_recorded() {
            ledger.record(session.record(None));
        }
        ledger.counts.connected += 1;
        self.move_in_groups(key, true);
        self.connections_made
    }

    /// Notes that a member of groups has come or gone.
    pub(super) fn move_in_groups(&mut self, key: SessionKey, is_connected: bool) {
        let Some(session) = self.clients.find(key) else {
            return;
        };
        for at in 0..session.subscriptions.len() {
            let found = self.clients.find(key);
            let Some(one) = found.and_then(|session| session.subscriptions.as_slice().get(at))
            else {
                return;
            };
            let subscribed = one.key;
            if subscribed.group == SubscribedKey::ALONE {
                continue;
            }
            let moves = self
                .shares
                .set_connected(subscribed.group, one.place, is_connected);
            self.note_moves(subscribed, moves);
        }
    }

    /// Replaces the will of an earlier connection, which the new one cancels.
    fn keep_will(&mut self, now: Time, key: SessionKey, connect: &Connect<'_>) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        if let Some(will) = session.take_will() {
            self.ledger.release(&will.message);
            if session.is_recorded() && connect.will.is_none() {
                self.ledger.record(Record::WillGone {
                    session: session.number,
                });
            }
        }
        let Some(will) = &connect.will else {
            return;
        };
        let mut content = will.content;
        content.expiry_s = None;
        let message = self.ledger.message(&content, now);
        self.ledger.hold(&message);
        if session.is_recorded() {
            self.ledger.record(Record::Will {
                session: session.number,
                content: Arc::clone(&message),
                expiry_s: will.content.expiry_s,
                delay_s: will.delay_s,
            });
        }
        session.rare_mut().will = Some(KeptWill {
            message,
            expiry_s: will.content.expiry_s,
            delay_s: will.delay_s,
            due_at: None,
        });
    }
}
