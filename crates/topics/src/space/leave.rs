//! Connections end, and sessions; wills are published.

use std::sync::Arc;

use crosstie_mqtt::ReasonCode;

use super::entries::{charge_incoming, forget_aliases};
use super::{Space, Timer};
use crate::course::Source;
use crate::keys::SessionKey;
use crate::session::KeptWill;
use crate::{ConnectionKey, Content, Outbox, Record, SessionNumber, Time, Violation};

impl<H> Space<H> {
    /// Ends a connection by DISCONNECT. The will stays only if the reason is not 0.
    pub fn disconnect(
        &mut self,
        now: Time,
        key: ConnectionKey,
        reason: ReasonCode,
        session_expiry_s: Option<u32>,
        outbox: &mut impl Outbox<H>,
    ) -> Result<(), Violation> {
        let expiry_max_s = self.config.limits.session_expiry_max_s;
        if let Some(session) = self.connected_mut(key)
            && let Some(expiry_s) = session_expiry_s
        {
            if session.expiry_s == 0 && expiry_s > 0 {
                let text = "DISCONNECT may not give an expiry to a session without one";
                return Err(Violation::new(ReasonCode::ProtocolError, text));
            }
            session.expiry_s = expiry_s.min(expiry_max_s);
        }
        self.end_connection(now, key, reason != ReasonCode::Success, outbox);
        Ok(())
    }

    /// Ends a connection without DISCONNECT. Messages that were received by it and not published are forgotten: the
    /// client sends them again.
    pub fn lose(&mut self, now: Time, key: ConnectionKey, outbox: &mut impl Outbox<H>) {
        self.end_connection(now, key, true, outbox);
    }

    /// Ends all connections without their wills, before the owner ends: the clients come back.
    pub fn disconnect_all(&mut self, now: Time, outbox: &mut impl Outbox<H>) {
        for place in 0..self.clients.places() {
            if let Some(key) = self.clients.key_at(place as u32) {
                self.detach(now, key, false, outbox);
            }
        }
    }

    /// Ends a session, connected or not; its will is published. False if there is none.
    pub fn end_session(
        &mut self,
        now: Time,
        client_id: &str,
        reason: ReasonCode,
        outbox: &mut impl Outbox<H>,
    ) -> bool {
        let Some(key) = self.clients.find_by_id(client_id) else {
            return false;
        };
        let session = self.clients.find(key);
        if let Some(link) = session.and_then(|session| session.link.as_ref()) {
            outbox.close(link, reason);
            self.detach(now, key, true, outbox);
        }
        // Without expiry, it has ended with its connection.
        if self.clients.find_by_id(client_id) == Some(key) {
            self.remove_session(now, key, outbox);
        }
        true
    }

    /// Publishes a will that the outbox was passed and did not let the space publish. Its session may go on.
    pub fn publish_will_of(
        &mut self,
        now: Time,
        client_id: &str,
        will: &Content<'_>,
        outbox: &mut impl Outbox<H>,
    ) {
        let source = Source {
            will_of: self.clients.find_by_id(client_id),
            ..Source::OUTSIDE
        };
        self.publish_from(now, source, will, outbox);
    }

    fn end_connection(
        &mut self,
        now: Time,
        key: ConnectionKey,
        keeps_will: bool,
        outbox: &mut impl Outbox<H>,
    ) {
        if let Some(session) = self.clients.find_mut(key.session)
            && let Some(incoming) = &mut session.incoming
        {
            incoming.forget_unpublished(key.number);
            charge_incoming(session, &mut self.ledger, outbox);
        }
        if self.connected(key).is_some() {
            self.detach(now, key.session, keeps_will, outbox);
        }
    }

    /// Takes the connection from a session, which ends if it has no expiry.
    pub(super) fn detach(
        &mut self,
        now: Time,
        key: SessionKey,
        keeps_will: bool,
        outbox: &mut impl Outbox<H>,
    ) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let Some(link) = session.link.take() else {
            return;
        };
        outbox.hold(&link, -(session.held as isize));
        self.ledger.keep(session.held as isize);
        self.ledger.counts.connected -= 1;
        (session.is_open, session.is_full) = (false, false);
        if let Some(incoming) = &mut session.incoming {
            incoming.end_connection();
        }
        charge_incoming(session, &mut self.ledger, outbox);
        session.tidy_incoming();
        forget_aliases(session, &mut self.ledger, outbox);
        if !keeps_will && let Some(will) = session.take_will() {
            self.ledger.release(&will.message);
            if session.is_recorded() {
                self.ledger.record(Record::WillGone {
                    session: session.number,
                });
            }
        }
        if session.expiry_s == 0 {
            self.move_in_groups(key, false);
            self.remove_session(now, key, outbox);
            return;
        }
        let ends_at = now.after_s(session.expiry_s);
        session.rare_mut().ends_at = Some(ends_at);
        if session.is_recorded() {
            self.ledger.record(session.record(Some(ends_at)));
        }
        self.idle
            .extend(session.idle_until().map(|ends_at| (ends_at, key)));
        self.move_in_groups(key, false);
        self.set_timer(ends_at, Timer::Session(key));
        self.begin_delay(now, key, outbox);
    }

    /// Publishes the will of a session without a connection, or lets it wait.
    fn begin_delay(&mut self, now: Time, key: SessionKey, outbox: &mut impl Outbox<H>) {
        let session = self.clients.find_mut(key);
        let Some(rare) = session.and_then(|session| session.rare.as_mut()) else {
            return;
        };
        let Some(will) = &mut rare.will else {
            return;
        };
        if will.delay_s == 0 {
            return self.send_will(now, key, outbox);
        }
        let due_at = now.after_s(will.delay_s);
        will.due_at = Some(due_at);
        // Otherwise the session ends before, and publishes it.
        if rare.ends_at.is_none_or(|ends_at| due_at < ends_at) {
            self.set_timer(due_at, Timer::Will(key));
        }
    }

    /// Publishes the will of a session that goes on.
    pub(super) fn send_will(&mut self, now: Time, key: SessionKey, outbox: &mut impl Outbox<H>) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let Some(will) = session.take_will() else {
            return;
        };
        let number = session.number;
        let client_id = Arc::clone(&session.client_id);
        self.publish_will(now, (key, number, &client_id), &will, outbox);
    }

    pub(super) fn publish_will(
        &mut self,
        now: Time,
        (key, number, client_id): (SessionKey, SessionNumber, &str),
        will: &KeptWill,
        outbox: &mut impl Outbox<H>,
    ) {
        self.ledger.counts.wills += 1;
        self.ledger.release(&will.message);
        if number.0 != 0 {
            self.closing.entry(number).or_default().parts += 1;
        }
        let source = Source {
            will_of: Some(key),
            will_number: number,
            ..Source::OUTSIDE
        };
        let content = will.message.content(now).map(|content| Content {
            expiry_s: will.expiry_s,
            ..content
        });
        match content.filter(|content| outbox.publish_will(client_id, content)) {
            Some(content) => self.publish_from(now, source, &content, outbox),
            None => self.note_will_published(&source),
        }
    }

    /// Records that a will is gone, with the last records of its publication.
    pub(super) fn note_will_published(&mut self, source: &Source) {
        let number = source.will_number;
        if number.0 == 0 {
            return;
        }
        let session = source.will_of.and_then(|key| self.clients.find(key));
        // A later connection may have replaced the record by its own will.
        if !session.is_some_and(|one| one.number == number && one.will().is_some()) {
            self.ledger.record(Record::WillGone { session: number });
        }
        self.end_part(number);
    }
}
