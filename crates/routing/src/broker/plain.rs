//! Publications that most are: to one exact topic, without an answer, and not kept.

use std::mem::ManuallyDrop;

use crosstie_wamp::{EventDetails, Message, Payload, PublicationId, PublishOptions};

use super::retained::Publication;
use super::{Broker, Reach, Subscription, SubscriptionKey, permit_publish};
use crate::context::Context;
use crate::identity::SessionIndex;

impl Broker {
    /// Publishes to one exact subscription at most, without an answer. Apart from other publications, as most conditions
    /// do not concern it.
    #[inline(always)]
    pub(super) fn publish_plain<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        options: &PublishOptions,
        (topic, exact): (&str, Option<SubscriptionKey>),
        payload: Payload<'_>,
    ) {
        let Ok(disclosed) = permit_publish(context, from, options, topic, exact.is_some()) else {
            return;
        };
        let id = context.random.publication_id();
        let Some(key) = exact else { return };
        let subscription = &self.subscriptions[key.0 as usize];
        let publisher = disclosed.then_some(from);
        if subscription.reach == Reach::Exact {
            let event = Plain {
                id,
                publisher,
                payload,
            };
            return send_plain(context, from, subscription, options.exclude_me, event);
        }
        self.send_alone(
            context,
            from,
            key,
            (id, publisher),
            (options, topic, payload),
        );
    }

    /// Sends the EVENT of a plain publication that is recorded or acknowledged.
    #[inline(never)]
    fn send_alone<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        key: SubscriptionKey,
        (id, publisher): (PublicationId, Option<SessionIndex>),
        (options, topic, payload): (&PublishOptions, &str, Payload<'_>),
    ) {
        let publication = Publication {
            id,
            publisher,
            options,
            topic,
            payload,
        };
        self.send_event(context, from, key, &publication, None);
    }
}

/// The EVENT of a plain publication to an exact subscription, which omits the topic.
struct Plain<'m> {
    id: PublicationId,
    publisher: Option<SessionIndex>,
    payload: Payload<'m>,
}

#[inline(always)]
fn send_plain<H>(
    context: &mut Context<'_, H>,
    from: SessionIndex,
    subscription: &Subscription,
    exclude_me: bool,
    event: Plain<'_>,
) {
    let sessions = &*context.sessions;
    let publisher = event.publisher.map(|index| sessions[index].disclosed());
    let event = ManuallyDrop::new(Message::Event {
        subscription: subscription.id,
        publication: event.id,
        details: EventDetails {
            topic: None,
            publisher,
            retained: false,
            acknowledged_delivery: false,
            passthru: None,
        },
        payload: event.payload,
    });
    let subscribers = subscription.subscribers.as_slice();
    *context.steps = context.steps.saturating_add(1 + subscribers.len() as u32);
    let handle = |index: SessionIndex| {
        let session = &sessions[index];
        let left_out = session.closing || (exclude_me && index == from);
        (!left_out).then_some(&session.handle)
    };
    // An iterator of one costs 30 instructions less.
    match subscribers {
        [only] => {
            let mut handles = handle(*only).into_iter();
            context.out.publish(&event, &mut handles);
        }
        all => {
            let mut handles = all.iter().copied().filter_map(handle);
            context.out.publish(&event, &mut handles);
        }
    }
}
