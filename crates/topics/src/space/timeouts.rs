//! Wills, sessions and messages whose time has come.

use super::entries::release_entry;
use super::{Space, Timer};
use crate::clients::Clients;
use crate::keys::SessionKey;
use crate::{Outbox, Time};

/// Steps of one call: the owner calls again for the rest.
const STEPS_PER_CALL: usize = 1024;

/// The price of a will, which is a publication.
const WILL_STEPS: usize = 128;

/// So many entries are looked at for the price of one step.
const ENTRIES_PER_STEP: usize = 16;

/// The shortest time between two sweeps of a session's messages, in seconds. Expired ones are not sent in any case.
const SWEEP_S: u32 = 10;

impl<H> Space<H> {
    pub fn next_timeout(&self) -> Option<Time> {
        let timeouts = [self.timers.next(), self.retained.next_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// Publishes wills, ends sessions and drops messages whose time has come, up to some number of them.
    pub fn handle_timeout(&mut self, now: Time, outbox: &mut impl Outbox<H>) {
        let mut left = STEPS_PER_CALL;
        while left > 0
            && let Some((at, timer)) = self.timers.take_due(now)
        {
            let steps = match timer {
                _ if !is_live(&self.clients, at, timer) => 0,
                Timer::Will(key) => {
                    self.send_will(now, key, outbox);
                    WILL_STEPS
                }
                Timer::Session(key) => {
                    self.ledger.counts.expired_sessions += 1;
                    let session = self.clients.find(key);
                    let has_will = session.is_some_and(|session| session.will().is_some());
                    let steps = self.remove_session(now, key, outbox);
                    steps + usize::from(has_will) * WILL_STEPS
                }
                Timer::Messages(key) => self.sweep(now, key, outbox),
            };
            left = left.saturating_sub(1 + steps);
        }
        while left > 0
            && let Some(expired) = self.retained.take_expired(now)
        {
            left -= 1;
            self.ledger.counts.expired_messages += 1;
            self.ledger.release_retained(&expired);
            self.record_retained_gone(expired.topic());
        }
    }

    pub(super) fn set_timer(&mut self, at: Time, timer: Timer) {
        let clients = &self.clients;
        self.timers
            .set(at, timer, |at, timer| is_live(clients, at, *timer));
    }

    /// Drops the expired messages of a session that were not sent. Returns its steps.
    fn sweep(&mut self, now: Time, key: SessionKey, outbox: &mut impl Outbox<H>) -> usize {
        let Some(session) = self.clients.find_mut(key) else {
            return 0;
        };
        let Some(outgoing) = &mut session.outgoing else {
            return 0;
        };
        let entries = outgoing.len();
        let (expired, next) = outgoing.take_expired(now);
        let next = next.map(|next| next.max(now.after_s(SWEEP_S)));
        outgoing.sweeps_at = next;
        for entry in &expired {
            self.ledger.counts.expired_messages += 1;
            release_entry(session, entry, &mut self.ledger, outbox);
        }
        if let Some(next) = next {
            self.set_timer(next, Timer::Messages(key));
        }
        expired.len() + entries / ENTRIES_PER_STEP
    }
}

/// Whether there is still a reason for a timer.
fn is_live<H>(clients: &Clients<H>, at: Time, timer: Timer) -> bool {
    let (Timer::Will(key) | Timer::Session(key) | Timer::Messages(key)) = timer;
    let Some(session) = clients.find(key) else {
        return false;
    };
    match timer {
        Timer::Will(_) => session.will().is_some_and(|will| will.due_at == Some(at)),
        Timer::Session(_) => session.ends_at() == Some(at),
        Timer::Messages(_) => {
            let outgoing = session.outgoing.as_ref();
            outgoing.is_some_and(|outgoing| outgoing.sweeps_at == Some(at))
        }
    }
}
