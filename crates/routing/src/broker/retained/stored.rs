//! Keeps retained events in a store, and restores them when the realm begins.

use super::{Event, Retained};
use crate::context::Context;
use crate::recorded::{Recorded, RetainedEvent};
use crate::{Outbox, Realm, Time};

impl Retained {
    /// Has the store keep the last retained event.
    pub(super) fn store<H>(&self, context: &mut Context<'_, H>, topic: &str, event: &Event) {
        if !context.config.stores_retained {
            return;
        }
        let epoch_us = context.events.epoch_us();
        context.out.retain(RetainedEvent {
            number: event.number,
            ends_us: event.end.map(|Time(end)| epoch_us.saturating_add(end)),
            event: Recorded {
                publication: event.publication,
                unix_us: context.unix_us(),
                publisher: event.publisher.clone(),
                topic: topic.into(),
                receivers: event.receivers.clone(),
                passthru: event.passthru.clone(),
                serializer: event.serializer,
                payload: event.payload.clone(),
                args_bytes: event.args_bytes,
            },
        });
    }

    /// Has the store forget the removed events.
    pub(crate) fn forget_stored<H>(&mut self, context: &mut Context<'_, H>) {
        for number in self.forgotten.drain(..) {
            if context.config.stores_retained {
                context.out.forget_retained(number);
            }
        }
    }

    /// Restores one event from the store, after those with smaller numbers.
    fn restore<H>(&mut self, context: &Context<'_, H>, restored: RetainedEvent) {
        let RetainedEvent {
            number,
            ends_us,
            event,
        } = restored;
        self.number_last = self.number_last.max(number);
        let epoch_us = context.events.epoch_us();
        if ends_us.is_some_and(|end| end <= context.unix_us()) {
            self.forgotten.push(number);
            return;
        }
        let bytes = event.bytes();
        let topic = event.topic;
        let event = Event {
            number,
            publication: event.publication,
            publisher: event.publisher,
            end: ends_us.map(|end| Time(end.saturating_sub(epoch_us))),
            receivers: event.receivers,
            passthru: event.passthru,
            serializer: event.serializer,
            payload: event.payload,
            args_bytes: event.args_bytes,
            bytes,
            is_shared: self.node_bits.is_some() && !context.out.is_local(&topic),
            is_from_elsewhere: false,
        };
        self.insert(&topic, event);
    }
}

impl<H> Realm<H> {
    /// Restores the retained events of a store, in the order of their numbers, before any session joins. Expired events
    /// and those beyond the bounds are forgotten.
    pub fn restore_retained(
        &mut self,
        now: Time,
        events: Vec<RetainedEvent>,
        out: &mut dyn Outbox<H>,
    ) {
        let (broker, _, mut context) = self.split(now, out);
        let retained = &mut broker.retained;
        for event in events {
            retained.restore(&context, event);
        }
        let limits = &context.config.limits;
        retained.make_room(limits.retained_events_max, limits.retained_bytes_max);
        retained.forget_stored(&mut context);
    }
}
