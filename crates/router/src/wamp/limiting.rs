//! What a session may send, and what may wait for it, where its role, its realm or its listener says so.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crosstie_routing::{RoleLimits, SessionKey, SlowConsumer, error};
use crosstie_transport::{Bounds, Connection, Overflow};

use crate::counters::{Counter, counters};
use crate::wamp::elsewhere::{Outcome, Slot};
use crate::wamp::rate::{Halt, Waiting};
use crate::wamp::realm::SharedRealm;
use crate::wamp::session::{Session, State};

impl Session {
    /// Has the bounds of a session that has joined be kept.
    pub(super) fn begin_limits(&mut self, realm: &SharedRealm, key: SessionKey) {
        let limits = realm.limit(key, self.listening.session_limits);
        // Also where there are none: the session before may have had some.
        self.peer.connection.bound(bounds(limits));
        self.is_limited = realm.rates.begin(key, limits);
    }

    /// Bytes of the longest message that it may send, where something says so beside its endpoint.
    pub(super) fn message_bytes_max(&self) -> Option<usize> {
        match &self.state {
            State::Joined { realm, key } if self.is_limited => realm.rates.message_bytes_max(*key),
            _ => None,
        }
    }

    /// Ends the session for a message that is longer than it may be.
    #[cold]
    pub(super) fn abort_too_long(&mut self, bytes: usize, max: usize) -> ControlFlow<()> {
        let text = format!("a message of {bytes} bytes; message_bytes_max is {max}");
        self.abort(error::PAYLOAD_SIZE_EXCEEDED, &text)
    }

    /// Has a publisher not be read before a receiver has taken most of what waits for it.
    #[cold]
    pub(super) fn hold_back(&mut self, slow: Arc<Connection>) {
        let State::Joined { realm, key } = &self.state else {
            return;
        };
        if self.waits() {
            return;
        }
        counters().count(Counter::PublishersHeldBack);
        let slot = Slot::new(&self.peer.connection);
        let filled = Arc::clone(&slot);
        let waiting = tokio::spawn(async move {
            slow.eased().await;
            filled.fill(Outcome::Elapsed);
        });
        let waiting = Waiting(waiting.abort_handle());
        realm.rates.hold_back(*key, slot, waiting);
        self.halt = Halt::Slowed;
        // So that its pause is forgotten with it.
        self.is_limited = true;
    }

    /// Charges the session with a message; where it is too fast, it is not read for a while.
    #[cold]
    pub(super) fn charge(&mut self, now: Instant, bytes: usize) {
        let State::Joined { realm, key } = &self.state else {
            return;
        };
        let pause = realm.rates.take(*key, now, bytes);
        // Whoever waits already is not read anyway, and has its debt with the next message.
        if pause.is_zero() || self.waits() {
            return;
        }
        counters().count(Counter::SessionsSlowed);
        let slot = Slot::new(&self.peer.connection);
        let door = &self.listening.router.door;
        door.fill_after(pause, &slot, Outcome::Elapsed);
        realm.rates.pause(*key, slot);
        self.halt = Halt::Slowed;
    }

    /// The pause is over, if it is; otherwise its peer has gone.
    pub(super) fn end_pause(&mut self) -> ControlFlow<()> {
        self.halt = Halt::No;
        let State::Joined { realm, key } = &self.state else {
            return ControlFlow::Continue(());
        };
        let slot = realm.rates.slot(*key);
        let is_over = slot.is_some_and(|slot| slot.take().is_some());
        match is_over || !realm.has(*key) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

impl SharedRealm {
    /// Says what a session may have because of its listener; what it may have, all in all.
    fn limit(&self, session: SessionKey, own: RoleLimits) -> RoleLimits {
        self.realm.lock().limit(session, own)
    }
}

/// What a session's connection is to be bound by beside what bounds any.
fn bounds(limits: RoleLimits) -> Option<Bounds> {
    let slow_consumer = limits.slow_consumer.unwrap_or_default();
    if limits.queue_bytes_max.is_none() && slow_consumer == SlowConsumer::DropNew {
        return None;
    }
    Some(Bounds {
        queue_bytes_max: limits.queue_bytes_max.unwrap_or(usize::MAX),
        overflow: match slow_consumer {
            SlowConsumer::DropNew => Overflow::DropNew,
            SlowConsumer::DropOldest => Overflow::DropOldest,
            SlowConsumer::Disconnect => Overflow::Disconnect,
            SlowConsumer::BackPressure => Overflow::HoldBack,
        },
        count_dropped: |count| counters().add(Counter::EventsDroppedOldest, count as u64),
    })
}
