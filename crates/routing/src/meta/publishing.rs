//! The meta events that wait are published, in turns.

use crate::{Outbox, Realm, Time};

/// What goes between two looks at the meta events that come of it, which may have many receivers each.
const STEPS_BETWEEN_EVENTS_MAX: u32 = 64;

/// An input brings about no more, unless it takes a registration from many.
const EVENTS_AT_ONCE_MIN: usize = 4;

/// More do not wait.
const EVENTS_PENDING_MAX: usize = 64;

impl<H> Realm<H> {
    /// Publishes what an input has brought about beside its answer.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if !self.events.is_empty() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Publishes the meta events that wait, for so many steps or a few more: what an input adds to a
    /// line that has grown long is published at once.
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

    /// How many of so many steps are done before the meta events that come of them are looked at.
    pub(crate) fn steps_between_events(&self, steps: u32) -> u32 {
        match self.events.is_watched() {
            true => steps.min(STEPS_BETWEEN_EVENTS_MAX),
            false => steps,
        }
    }
}
