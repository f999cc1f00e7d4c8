//! Limits of a session's input and output, set by its role, its realm or its listener.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::counters::{Counter, counters};
use crosstie_routing::{RoleLimits, SessionKey, SlowConsumer, error};
use crosstie_transport::{Bounds, Connection, Overflow};

use crate::elsewhere::{Outcome, Slot};
use crate::rate::{Halt, Waiting};
use crate::realm::SharedRealm;
use crate::session::{Kind, Session, State};

impl Session {
    /// Applies the limits of a session that has joined.
    pub(super) fn begin_limits(&mut self, realm: &SharedRealm, key: SessionKey) {
        let limits = realm.limit(key, self.entrance.session_limits);
        // Also without limits, as the connection's previous session may have had some.
        self.peer.connection.bound(bounds(limits));
        self.kind = match realm.rates.begin(key, limits) {
            true => Kind::Limited,
            false => Kind::Plain,
        };
    }

    /// The limits of a joined session, for an owner that enforces some of them itself.
    pub fn limits(&self) -> RoleLimits {
        match &self.state {
            State::Joined { realm, key } => realm.limit(*key, self.entrance.session_limits),
            State::Closed(_) => RoleLimits::default(),
        }
    }

    /// Maximum bytes of a message from this session, if limited beside its endpoint's maximum.
    pub fn message_bytes_max(&self) -> Option<usize> {
        match &self.state {
            State::Joined { realm, key } if self.is_limited() => {
                realm.rates.message_bytes_max(*key)
            }
            _ => None,
        }
    }

    /// Ends the session because of a message that is too long.
    #[cold]
    pub(super) fn abort_too_long(&mut self, bytes: usize, max: usize) -> ControlFlow<()> {
        let text = format!("a message of {bytes} bytes; message_bytes_max is {max}");
        self.abort(error::PAYLOAD_SIZE_EXCEEDED, &text)
    }

    /// Pauses reading from a publisher until a slow receiver has taken most of its queue.
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
        // Makes the end of the session drop the pause.
        self.kind = Kind::Limited;
    }

    /// Charges a message to the session's rate; pauses reading if the session is too fast.
    #[cold]
    pub(super) fn charge(&mut self, now: Instant, bytes: usize) {
        let State::Joined { realm, key } = &self.state else {
            return;
        };
        let pause = realm.rates.take(*key, now, bytes);
        // A session that waits already is not read; it keeps its debt.
        if pause.is_zero() || self.waits() {
            return;
        }
        counters().count(Counter::SessionsSlowed);
        let slot = Slot::new(&self.peer.connection);
        let door = &self.entrance.realms.door;
        door.fill_after(pause, &slot, Outcome::Elapsed);
        realm.rates.pause(*key, slot);
        self.halt = Halt::Slowed;
    }

    /// Ends the pause; if the pause is not over, the peer has gone.
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
    /// Sets the listener's limits of a session. Returns the effective limits.
    fn limit(&self, session: SessionKey, own: RoleLimits) -> RoleLimits {
        self.realm.lock().limit(session, own)
    }
}

/// The bounds of a session's connection beside the general ones.
pub fn bounds(limits: RoleLimits) -> Option<Bounds> {
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
