//! Rate limits and message size limits of a session, set by its role, its realm or its listener.
//!
//! An allowance of one second's messages and bytes refills with time. A message beyond it leaves a debt, and the
//! session is not read until the debt is paid. Nothing is lost, and the client notices the limit by its own send queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_front::allowance::{Allowance, PAUSE_MAX};
use crosstie_routing::{RoleLimits, SessionKey};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::elsewhere::Slot;

/// Why a joined session is not read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    No,
    /// A message waits for its verdict.
    Judged,
    /// The session exceeded its rate, or a receiver is too slow.
    Slowed,
}

/// The limits of a realm's sessions that have any; other sessions have no overhead.
#[derive(Default)]
pub(crate) struct Rates(Mutex<HashMap<SessionKey, Rate>>);

/// The limits of one session.
#[derive(Default)]
struct Rate {
    message_bytes_max: Option<usize>,
    messages: Option<Allowance>,
    bytes: Option<Allowance>,
    /// The slot that ends its pause.
    slot: Option<Arc<Slot>>,
    /// The task that waits for a slow receiver.
    waiting: Option<Waiting>,
}

/// A task that ends with its session.
pub(super) struct Waiting(pub(super) AbortHandle);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Rate {
    /// `None` for sessions without limits.
    fn of(limits: RoleLimits, now: Instant) -> Option<Self> {
        let messages = limits.messages_per_second_max;
        let bytes = limits.bytes_per_second_max;
        let message_bytes_max = limits.message_bytes_max;
        if messages.or(bytes).is_none() && message_bytes_max.is_none() {
            return None;
        }
        let allowance = |per_second: u32| Allowance::new(per_second, now);
        Some(Self {
            message_bytes_max,
            messages: messages.map(allowance),
            bytes: bytes.map(allowance),
            slot: None,
            waiting: None,
        })
    }

    /// Charges one message. Returns the pause before the next read.
    fn take(&mut self, now: Instant, bytes: usize) -> Duration {
        let messages = self.messages.as_mut().map(|of| of.take(now, 1.0));
        let bytes = self.bytes.as_mut().map(|of| of.take(now, bytes as f64));
        let pause = messages.max(bytes).unwrap_or_default();
        pause.min(PAUSE_MAX)
    }
}

impl Rates {
    /// Stores the limits of a session that has joined, if any. Returns whether it has some.
    pub(super) fn begin(&self, session: SessionKey, limits: RoleLimits) -> bool {
        let rate = Rate::of(limits, Instant::now());
        let has_rate = rate.is_some();
        if let Some(rate) = rate {
            self.0.lock().insert(session, rate);
        }
        has_rate
    }

    pub(super) fn forget(&self, session: SessionKey) {
        self.0.lock().remove(&session);
    }

    /// Maximum bytes of a message from that session.
    pub(crate) fn message_bytes_max(&self, session: SessionKey) -> Option<usize> {
        self.0.lock().get(&session)?.message_bytes_max
    }

    /// Charges one message. Returns the pause before the next read.
    pub(super) fn take(&self, session: SessionKey, now: Instant, bytes: usize) -> Duration {
        let mut rates = self.0.lock();
        let rate = rates.get_mut(&session);
        rate.map_or(Duration::ZERO, |rate| rate.take(now, bytes))
    }

    /// Stores the slot that ends a session's pause.
    pub(super) fn pause(&self, session: SessionKey, slot: Arc<Slot>) {
        self.0.lock().entry(session).or_default().slot = Some(slot);
    }

    /// Stores the slot that ends a session's pause, and the waiting task.
    pub(super) fn hold_back(&self, session: SessionKey, slot: Arc<Slot>, waiting: Waiting) {
        let mut rates = self.0.lock();
        let rate = rates.entry(session).or_default();
        (rate.slot, rate.waiting) = (Some(slot), Some(waiting));
    }

    /// Takes the slot of the pause, if any.
    pub(super) fn slot(&self, session: SessionKey) -> Option<Arc<Slot>> {
        self.0.lock().get_mut(&session)?.slot.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses() {
        let start = Instant::now();
        // Time of the message, its length, and the pause that follows; in milliseconds and bytes.
        for (messages, bytes, rows) in [
            (
                Some(2),
                None,
                &[
                    (0, 9, 0),
                    (0, 9, 0),
                    (0, 9, 500),
                    (500, 9, 500),
                    (5_000, 9, 0),
                ][..],
            ),
            (
                None,
                Some(1_000),
                &[
                    (0, 1_000, 0),
                    (0, 500, 500),
                    (500, 100, 100),
                    (9_999, 900, 0),
                ],
            ),
            // The longer of both pauses; an hour is cut to ten seconds.
            (
                Some(1),
                Some(10),
                &[(0, 5, 0), (0, 5, 1_000), (1_000, 36_000, 10_000)],
            ),
            (Some(1_000), None, &[(0, 1 << 30, 0)]),
        ] {
            let limits = |limits: &mut RoleLimits| {
                limits.messages_per_second_max = messages;
                limits.bytes_per_second_max = bytes;
            };
            let mut of_role = RoleLimits::default();
            limits(&mut of_role);
            let mut rate = Rate::of(of_role, start).expect("has a rate");
            for &(at_ms, bytes, pause_ms) in rows {
                let pause = rate.take(start + Duration::from_millis(at_ms), bytes);
                let off = pause.abs_diff(Duration::from_millis(pause_ms));
                assert!(off < Duration::from_millis(1), "{at_ms}: {pause:?}");
            }
        }
        assert!(Rate::of(RoleLimits::default(), start).is_none());
    }
}
