//! Acknowledgements leave, at once or after a commit.

use crosstie_mqtt::ReasonCode;

use super::Space;
use super::entries::charge_incoming;
use super::scan::has_many_scans;
use crate::course::Source;
use crate::incoming::Arrived;
use crate::keys::SessionKey;
use crate::line::What;
use crate::{Answer, Outbox, Position, Time};

/// A publisher is not read while so many of its publications wait for later turns; while those of all publishers exceed
/// their bound, a single one.
const POSTPONED_MAX: u32 = 8;

impl<H> Space<H> {
    /// The store has committed everything up to `position`.
    pub fn handle_committed(&mut self, now: Time, position: Position, outbox: &mut impl Outbox<H>) {
        self.ledger.committed = self.ledger.committed.max(position.0);
        while let Some(waiting) = self.line.take_due(self.ledger.committed) {
            let key = waiting.session;
            match waiting.what {
                What::Answer(answer) => self.answer(key, waiting.connection, answer, outbox),
                What::Send => {
                    if let Some(session) = self.clients.find_mut(key) {
                        session.awaits_commit = false;
                        self.send(now, key, outbox);
                    }
                }
            }
        }
    }

    /// The store has failed: it commits nothing up to `position`. Connections that wait for it are closed, because no
    /// acknowledgement can tell a client that it has to repeat its message.
    pub fn handle_not_committed(
        &mut self,
        now: Time,
        position: Position,
        outbox: &mut impl Outbox<H>,
    ) {
        while let Some(waiting) = self.line.take_due(position.0) {
            let key = waiting.session;
            let Some(session) = self.clients.find_mut(key) else {
                continue;
            };
            let mut waits = waiting.connection;
            match waiting.what {
                // The client sends the message again, and is answered then.
                What::Answer(Answer::PubRec(id, _)) => {
                    let incoming = session.incoming.as_mut();
                    let found = incoming.and_then(|incoming| incoming.take(id));
                    waits = found.map_or(waits, |one| one.asked_by);
                    charge_incoming(session, &mut self.ledger, outbox);
                }
                What::Answer(_) => {}
                What::Send => session.awaits_commit = false,
            }
            if let Some(link) = session
                .link
                .as_ref()
                .filter(|_| session.connection == waits)
            {
                outbox.close(link, ReasonCode::ImplementationSpecificError);
                self.detach(now, key, true, outbox);
            }
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
