//! Acknowledgements leave, at once or after a commit.

use std::collections::BTreeSet;

use crosstie_mqtt::ReasonCode;

use super::Space;
use super::entries::charge_incoming;
use super::scan::has_many_scans;
use crate::course::Source;
use crate::incoming::Arrived;
use crate::keys::SessionKey;
use crate::line::What;
use crate::session::Session;
use crate::{Answer, Connected, ConnectionKey, Outbox, Position, Reply, Time};

/// A publisher is not read while so many of its publications wait for later turns; while those of all publishers exceed
/// their bound, a single one.
const POSTPONED_MAX: u32 = 8;

impl<H> Space<H> {
    /// The store has committed everything up to `position`. Waiting answers are sent: some at once, the rest by
    /// [`Self::work`].
    pub fn handle_committed(&mut self, now: Time, position: Position, outbox: &mut impl Outbox<H>) {
        self.ledger.committed = self.ledger.committed.max(position.0);
        let committed = self.ledger.committed;
        self.ends.retain(|_, position| *position > committed);
        self.continue_line(now, self.config.limits.steps_max.max(1), outbox);
    }

    /// Serves those that have waited for a commit.
    pub(super) fn continue_line(&mut self, now: Time, steps: usize, outbox: &mut impl Outbox<H>) {
        for _ in 0..steps {
            let Some(waiting) = self.line.take_due(self.ledger.committed) else {
                return;
            };
            let (key, connection) = (waiting.session, waiting.connection);
            match waiting.what {
                What::Answer(answer) => {
                    if matches!(answer, Answer::PubComp(..)) {
                        self.count_reply(key, connection, false, outbox);
                    }
                    self.answer(key, connection, answer, outbox);
                }
                What::Reply(reply) => {
                    self.count_reply(key, connection, false, outbox);
                    self.give(now, (key, connection), &reply, outbox);
                }
                What::Send => {
                    if let Some(session) = self.clients.find_mut(key) {
                        session.awaits_commit = false;
                        self.send(now, key, outbox);
                    }
                }
            }
        }
    }

    /// The store has failed to commit the records up to `position`. It keeps them and tries again, so that the next commit
    /// has them, too. Connections whose messages and requests wait are closed meanwhile: a client that comes back sends
    /// again what was not acknowledged. A message of QoS 2 stays known, and is answered after the commit.
    pub fn handle_not_committed(
        &mut self,
        now: Time,
        position: Position,
        outbox: &mut impl Outbox<H>,
    ) {
        let mut waiting = BTreeSet::new();
        for one in self.line.up_to(position.0) {
            let connection = match &one.what {
                What::Answer(Answer::PubRec(id, _)) => {
                    let session = self.clients.find_mut(one.session);
                    let incoming = session.and_then(|session| session.incoming.as_mut());
                    let found = incoming.and_then(|incoming| incoming.find(*id));
                    found.map_or(one.connection, |found| found.asked_by)
                }
                What::Answer(Answer::PubAck(..)) | What::Reply(_) => one.connection,
                // The client has nothing to repeat.
                What::Answer(_) | What::Send => continue,
            };
            waiting.insert((one.session, connection));
        }
        self.failed.extend(waiting);
        // No connection is there for these any more.
        self.line.forget(position.0, |one| {
            !matches!(one.what, What::Answer(Answer::PubAck(..)) | What::Reply(_))
        });
        self.continue_failed(now, self.config.limits.steps_max.max(1), outbox);
    }

    /// Closes connections that have waited for a commit that failed.
    pub(super) fn continue_failed(&mut self, now: Time, steps: usize, outbox: &mut impl Outbox<H>) {
        for _ in 0..steps {
            let Some((key, connection)) = self.failed.pop_front() else {
                return;
            };
            let session = self.clients.find(key);
            let session = session.filter(|session| session.is_connected_as(connection));
            if let Some(link) = session.and_then(|session| session.link.as_ref()) {
                outbox.close(link, ReasonCode::ImplementationSpecificError);
                self.detach(now, key, true, outbox);
            }
        }
    }

    /// Opens a connection once its CONNECT is committed: the outbox is asked for CONNACK, then what waits is sent.
    pub fn open(&mut self, now: Time, connected: &Connected, outbox: &mut impl Outbox<H>) {
        self.reply_after(
            now,
            connected.position,
            connected.key,
            Reply::ConnAck,
            outbox,
        );
    }

    /// Answers SUBSCRIBE or UNSUBSCRIBE, once it is committed.
    pub fn reply(
        &mut self,
        now: Time,
        key: ConnectionKey,
        reply: Reply,
        outbox: &mut impl Outbox<H>,
    ) {
        let is_recorded = self.connected(key).is_some_and(Session::is_recorded);
        let position = match is_recorded {
            true => self.ledger.journal.position.0,
            false => 0,
        };
        self.reply_after(now, position, key, reply, outbox);
    }

    fn reply_after(
        &mut self,
        now: Time,
        position: u64,
        key: ConnectionKey,
        reply: Reply,
        outbox: &mut impl Outbox<H>,
    ) {
        if self.ledger.is_committed(position) {
            return self.give(now, (key.session, key.number), &reply, outbox);
        }
        let what = What::Reply(reply);
        self.line.push(position, key.session, key.number, what);
        self.count_reply(key.session, key.number, true, outbox);
    }

    /// Counts replies, and PUBCOMP, that wait with the acknowledgements that do: a client with many is not read.
    pub(super) fn count_reply(
        &mut self,
        key: SessionKey,
        connection: u32,
        waits: bool,
        outbox: &mut impl Outbox<H>,
    ) {
        let session = self.clients.find_mut(key);
        if let Some(session) = session.filter(|session| session.is_connected_as(connection)) {
            let incoming = session.incoming.get_or_insert_default();
            incoming.unacknowledged = match waits {
                true => incoming.unacknowledged.saturating_add(1),
                false => incoming.unacknowledged.saturating_sub(1),
            };
            self.pause_or_not(key, outbox);
        }
    }

    fn give(
        &mut self,
        now: Time,
        (key, connection): (SessionKey, u32),
        reply: &Reply,
        outbox: &mut impl Outbox<H>,
    ) {
        let session = self.clients.find_mut(key);
        let Some(session) = session.filter(|session| session.is_connected_as(connection)) else {
            return;
        };
        if let Some(link) = &session.link {
            outbox.reply(link, reply);
        }
        if *reply == Reply::ConnAck {
            session.is_open = true;
            self.send(now, key, outbox);
        }
    }

    /// Sends an acknowledgement once a record is committed; 0 is none.
    pub(super) fn answer_after(
        &mut self,
        position: u64,
        (key, connection): (SessionKey, u32),
        answer: Answer,
        outbox: &mut impl Outbox<H>,
    ) {
        match self.ledger.is_committed(position) {
            true => self.answer(key, connection, answer, outbox),
            false => self
                .line
                .push(position, key, connection, What::Answer(answer)),
        }
    }

    /// Sends an acknowledgement to a connection. PUBREC goes to the last connection that has sent the message.
    pub(super) fn answer(
        &mut self,
        key: SessionKey,
        connection: u32,
        answer: Answer,
        outbox: &mut impl Outbox<H>,
    ) {
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let is_v5 = session.version.is_v5();
        let mut to = connection;
        let mut ends = true;
        if let Answer::PubRec(id, reason) = answer {
            let Some(incoming) = &mut session.incoming else {
                return;
            };
            let Some(arrived) = incoming.find(id) else {
                return;
            };
            to = arrived.asked_by;
            arrived.stage = Arrived::Answered;
            // 3.x has no refusal: the client goes on with PUBREL.
            ends = is_v5 && reason.is_error();
            if ends {
                incoming.remove(id);
                charge_incoming(session, &mut self.ledger, outbox);
            }
        }
        if !session.is_connected_as(to) {
            return;
        }
        if let Some(link) = &session.link {
            outbox.acknowledge(link, answer);
        }
        if let Some(incoming) = &mut session.incoming {
            let is_first = matches!(answer, Answer::PubAck(..));
            incoming.unacknowledged = incoming.unacknowledged.saturating_sub(u16::from(is_first));
            let is_incoming = ends && !matches!(answer, Answer::PubRel(..));
            incoming.outstanding = incoming.outstanding.saturating_sub(u16::from(is_incoming));
        }
        self.pause_or_not(key, outbox);
    }

    /// Pauses the reading of a client whose acknowledgements wait, or lets it continue.
    pub(super) fn pause_or_not(&mut self, key: SessionKey, outbox: &mut impl Outbox<H>) {
        let receive_max = self.config.limits.receive_max;
        let queued_max = self.config.limits.queued_max;
        let is_overdue = self.exceeds_postponed(1);
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let has_many_scans = has_many_scans(session, queued_max);
        if has_many_scans {
            session.incoming.get_or_insert_default();
        }
        let (Some(link), Some(incoming)) = (&session.link, &mut session.incoming) else {
            return;
        };
        let postponed_max = if is_overdue { 0 } else { POSTPONED_MAX - 1 };
        let bounds = match incoming.is_paused {
            true => (receive_max / 2, 0),
            false => (receive_max.saturating_sub(1), postponed_max),
        };
        let is_paused =
            has_many_scans || incoming.unacknowledged > bounds.0 || session.postponed > bounds.1;
        if is_paused != incoming.is_paused {
            incoming.is_paused = is_paused;
            outbox.pause(link, is_paused);
        }
    }

    /// Notes that a publication of a session is postponed, or done.
    pub(super) fn count_postponed(
        &mut self,
        source: &Source,
        is_postponed: bool,
        outbox: &mut impl Outbox<H>,
    ) {
        let change = |count: &mut u32| match is_postponed {
            true => *count += 1,
            false => *count = count.saturating_sub(1),
        };
        let Some(key) = source.publisher else {
            if source.will_of.is_none() {
                change(&mut self.outside_postponed);
            }
            return;
        };
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        change(&mut session.postponed);
        session.incoming.get_or_insert_default();
        self.pause_or_not(key, outbox);
    }
}
