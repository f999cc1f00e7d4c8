//! Publishes queued meta events, in turns.

use crate::{Outbox, Realm, Time};

/// Steps between two checks of the queued meta events, each of which may have many receivers.
const STEPS_BETWEEN_EVENTS_MAX: u32 = 64;

/// Most inputs cause no more events than this; revoking a registration from many callees does.
const EVENTS_AT_ONCE_MIN: usize = 4;

/// Maximum number of queued events.
const EVENTS_PENDING_MAX: usize = 64;

impl<H> Realm<H> {
    /// Publishes the meta events of an input after its answer.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if !self.events.is_empty() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Publishes queued meta events, for about that many steps. If the queue is long, an input's events are published
    /// at once.
    pub(crate) fn publish_events(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        let mut published = 0;
        while self.steps < steps_max
            || published < EVENTS_AT_ONCE_MIN
            || self.events.len() > EVENTS_PENDING_MAX
        {
            let Some(event) = self.events.next() else {
                return;
            };
            let (broker, _, mut context) = self.split(now, out);
            broker.publish_meta(&mut context, &event);
            published += 1;
        }
    }

    /// How many of these steps are done before the resulting meta events are checked.
    pub(crate) fn steps_between_events(&self, steps: u32) -> u32 {
        match self.events.is_watched() {
            true => steps.min(STEPS_BETWEEN_EVENTS_MAX),
            false => steps,
        }
    }
}
