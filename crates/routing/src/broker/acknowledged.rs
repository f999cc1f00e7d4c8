//! Events that subscribers acknowledge: each stays in the session's line until it is acknowledged.

use std::sync::Arc;

use crosstie_wamp::{EventDetails, Message, PublicationId, SubscribeOptions, SubscriptionId};

use super::history::LogIndex;
use super::receivers::Filter;
use super::retained::Publication;
use super::{Broker, Reach, Subscription, SubscriptionKey};
use crate::context::Context;
use crate::deliveries::{Acknowledged, Delivered, Deliveries};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::session_set::SessionSet;
use crate::{CloseReason, Refused, Violation};

/// Acknowledgements that are searched per step.
const PLACES_PER_STEP: usize = 16;

/// The acknowledging sessions of a subscription.
#[derive(Debug)]
pub(super) struct Acknowledging {
    /// The subscription's reach without them.
    reach: Reach,
    /// The sessions that acknowledge; never empty.
    sessions: SessionSet,
}

impl Subscription {
    /// The log of its publications, if they are recorded.
    pub(super) fn log(&self) -> Option<LogIndex> {
        let wrapped = self.acknowledging().map(|of| of.reach);
        match wrapped.unwrap_or(self.reach) {
            Reach::Recorded(log) => Some(log),
            _ => None,
        }
    }

    /// Holds this session's events until it acknowledges them.
    fn acknowledge(&mut self, session: SessionIndex) {
        let before = std::mem::replace(&mut self.reach, Reach::Acknowledging);
        self.change_parts(|parts| {
            let of = parts.acknowledging.get_or_insert_with(|| Acknowledging {
                reach: before,
                sessions: SessionSet::default(),
            });
            of.sessions.insert(session);
        });
    }

    /// Removes a session that is no subscriber any more; returns whether it acknowledged.
    pub(super) fn leave_acknowledging(&mut self, session: SessionIndex) -> bool {
        if self.acknowledging().is_none() {
            return false;
        }
        let (was_in, ended) = self.change_parts(|parts| {
            let Some(of) = &mut parts.acknowledging else {
                return (false, None);
            };
            let was_in = of.sessions.swap_remove(&session);
            let ended = parts.acknowledging.take_if(|of| of.sessions.is_empty());
            (was_in, ended)
        });
        if let Some(ended) = ended {
            self.reach = ended.reach;
        }
        was_in
    }

    /// Asserts that the reach matches the sessions.
    pub(super) fn check_acknowledging(&self) {
        let is_said = self.reach == Reach::Acknowledging;
        assert_eq!(is_said, self.acknowledging().is_some());
        if let Some(of) = self.acknowledging() {
            assert!(!of.sessions.is_empty() && of.reach != Reach::Acknowledging);
            let is_subscribed = |session| self.subscribers.contains(session);
            assert!(of.sessions.iter().all(is_subscribed));
        }
    }
}

impl Broker {
    /// Whether the realm supports acknowledged events: a session's held events are on one node, but it may reconnect to
    /// any.
    pub(super) fn check_acknowledging(&self, options: &SubscribeOptions) -> Result<(), Fault> {
        if !options.acknowledged_delivery || self.across.is_none() {
            return Ok(());
        }
        let text =
            "events are not acknowledged (x_acknowledged_delivery) in a realm of several nodes";
        Err(Fault::new(error::OPTION_NOT_ALLOWED, text))
    }

    /// Holds a subscriber's events until it acknowledges them.
    pub(super) fn acknowledge(&mut self, subscriber: SessionIndex, id: SubscriptionId) {
        if let Some(SubscriptionKey(key)) = self.key_of(id) {
            self.subscriptions[key as usize].acknowledge(subscriber);
        }
    }

    /// Sends the EVENT of a publication under a subscription with acknowledging sessions.
    #[cold]
    #[inline(never)]
    pub(super) fn send_acknowledged<H>(
        &self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        key: SubscriptionKey,
        publication: &Publication<'_>,
        filter: Option<&Filter<'_>>,
    ) {
        let subscription = &self.subscriptions[key.0 as usize];
        let Some(of) = subscription.acknowledging() else {
            return;
        };
        let is_pattern = match of.reach {
            Reach::Recorded(log) => self.keep(context, from, (log, subscription), publication),
            reach => reach == Reach::Pattern,
        };
        let (options, payload) = (publication.options, publication.payload);
        let sessions = &*context.sessions;
        let subscribers = &subscription.subscribers;
        *context.steps = context.steps.saturating_add(1 + subscribers.len() as u32);
        let resource = filter.and_then(|filter| filter.resource);
        let shard = subscription.shard_for(resource, sessions);
        let is_reached = |index: &SessionIndex| {
            let session = &sessions[*index];
            let left_out = session.closing || (options.exclude_me && *index == from);
            let is_meant = !left_out && subscription.is_in(shard, *index);
            is_meant && filter.is_none_or(|filter| filter.admits(*index, session))
        };
        let reached: Vec<_> = match filter {
            None => subscribers.iter().copied().filter(is_reached).collect(),
            Some(filter) => {
                let candidates = filter.candidates(subscribers);
                candidates.filter(is_reached).collect()
            }
        };
        let (acknowledging, others): (Vec<_>, Vec<_>) = reached
            .into_iter()
            .partition(|index| of.sessions.contains(index));
        let publisher = publication.publisher.map(|index| &sessions[index]);
        let event = Message::Event {
            subscription: subscription.id,
            publication: publication.id,
            details: EventDetails {
                topic: is_pattern.then(|| publication.topic.into()),
                publisher: publisher.map(|who| who.disclosed()),
                passthru: options.passthru.clone(),
                ..EventDetails::default()
            },
            payload,
        };
        let mut handles = others.iter().map(|index| &sessions[*index].handle);
        context.out.publish(&event, &mut handles);
        if acknowledging.is_empty() {
            return;
        }
        let delivered = Arc::new(Delivered {
            subscription: subscription.id,
            publication: publication.id,
            topic: is_pattern.then(|| publication.topic.into()),
            publisher: publisher.map(|who| (who.id, who.identity.clone())),
            passthru: options.passthru.clone(),
            serializer: payload.serializer,
            payload: [payload.args, payload.kwargs].concat().into(),
            args_bytes: payload.args.len(),
        });
        for index in acknowledging {
            deliver(context, index, &delivered);
        }
    }

    /// Sends a resumed session its unacknowledged events, except those of subscriptions that it has ended.
    pub(crate) fn deliver_again<H>(&self, context: &mut Context<'_, H>, to: SessionIndex) {
        let session = &mut context.sessions[to];
        let (subscriptions, rare) = (&session.subscriptions, &mut session.rare);
        let line = rare.as_mut().and_then(|rare| rare.deliveries.as_mut());
        let key = |id| self.key_of(id);
        let forgotten = line.map_or(0, |line| {
            line.forget(|id| key(id).is_none_or(|key| !subscriptions.contains(&key)))
        });
        context.hold(to, -(forgotten as isize));
        send_on(context, to);
    }

    /// EVENT_RECEIVED.
    pub(crate) fn handle_received<H>(
        context: &mut Context<'_, H>,
        from: SessionIndex,
        publication: PublicationId,
    ) -> Result<(), Violation> {
        let deliveries = deliveries(context, from);
        let outcome = deliveries.map(|deliveries| deliveries.acknowledge(publication));
        match outcome.unwrap_or(Acknowledged::Unknown) {
            Acknowledged::Taken { bytes, place } => {
                context.spend(1 + (place / PLACES_PER_STEP) as u32);
                context.hold(from, -(bytes as isize));
                send_on(context, from);
                Ok(())
            }
            Acknowledged::Again => Ok(()),
            Acknowledged::Unknown => Err(Violation::new(format!(
                "received EVENT_RECEIVED for publication {publication}, which waits for no acknowledgement of \
                 this session"
            ))),
        }
    }
}

fn deliveries<'c, H>(
    context: &'c mut Context<'_, H>,
    of: SessionIndex,
) -> Option<&'c mut Deliveries> {
    let rare = context.sessions[of].rare.as_mut()?;
    rare.deliveries.as_deref_mut()
}

/// Removes unsent events of an ended subscription from a session's line.
#[cold]
pub(super) fn forget<H>(context: &mut Context<'_, H>, of: SessionIndex, ended: SubscriptionId) {
    let forgotten = deliveries(context, of).map_or(0, |line| line.forget(|id| id == ended));
    context.hold(of, -(forgotten as isize));
}

/// Appends an event to a session's line, and sends it if it is next. Closes a session that exceeds its bound of
/// unacknowledged events: delivery to it can no longer be guaranteed.
fn deliver<H>(context: &mut Context<'_, H>, to: SessionIndex, event: &Arc<Delivered>) {
    let limits = &context.config.limits;
    let (events_max, bytes_max) = (
        limits.unacknowledged_events_max,
        limits.unacknowledged_bytes_max,
    );
    let bytes = event.bytes();
    let rare = context.sessions[to].rare.get_or_insert_default();
    let deliveries = rare.deliveries.get_or_insert_default();
    if deliveries.len() >= events_max || deliveries.bytes() + bytes > bytes_max {
        return give_up(context, to);
    }
    deliveries.push(Arc::clone(event));
    context.hold(to, bytes as isize);
    send_on(context, to);
}

fn give_up<H>(context: &mut Context<'_, H>, session: SessionIndex) {
    if context.sessions.doom(session) {
        let handle = &context.sessions[session].handle;
        context.out.close(handle, CloseReason::Unacknowledged);
    }
}

/// Sends events from a session's line, as far as its queue has room.
fn send_on<H>(context: &mut Context<'_, H>, to: SessionIndex) {
    while let Some(event) = deliveries(context, to).and_then(|line| line.next_unsent()) {
        let sent = context.send(to, &event.message());
        context.spend(1);
        let Some(line) = deliveries(context, to) else {
            return;
        };
        match sent {
            Ok(()) => line.note_sent(),
            Err(Refused::Full) if line.none_sent() => return give_up(context, to),
            Err(Refused::Full | Refused::Gone) => return,
            Err(Refused::TooLong | Refused::Unrepresentable(_)) => {
                let bytes = line.drop_unsent();
                context.hold(to, -(bytes as isize));
            }
        }
    }
}
