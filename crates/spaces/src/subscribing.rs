//! SUBSCRIBE and UNSUBSCRIBE: a few filters at a time, so that a large packet holds up no other client.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crosstie_mqtt::{Options, ReasonCode, Subscribe, Subscription, Unsubscribe, topic};
use crosstie_topics::{Reply, Wanted};

use crate::conversation::End;
use crate::ground::Ground;
use crate::names;
use crate::open::{Handled, Open, Pending};
use crate::replay::{FILTERS_AT_ONCE, REPLAYS_MAX};
use crate::space::SharedSpace;
use crate::talk::Said;

/// A SUBSCRIBE that is handled in part.
#[derive(Default)]
pub(crate) struct Subscribing {
    /// The outcomes of the parts that are done.
    codes: Vec<ReasonCode>,
    /// The verdicts on the first filters of the present part.
    refusals: Vec<Option<ReasonCode>>,
    /// The realm decides on the next filter.
    is_asked: bool,
    /// The filters that are sent the realm's retained events.
    replayed: Vec<Replayed>,
}

/// A filter that is sent the realm's retained events.
#[derive(Clone, Copy)]
struct Replayed {
    /// Its place in the packet.
    at: usize,
    /// The number of the realm's newest retained event at the end of the filter's part. The subscription delivers later
    /// ones.
    number_max: u64,
}

impl Subscribing {
    /// The filters that are sent the realm's retained events, with the newest event for each: none that the space has refused.
    fn replayed<'f>(&self, subscribe: &Subscribe<'f>) -> Vec<(&'f str, u64)> {
        if self.replayed.is_empty() {
            return Vec::new();
        }
        let all: Vec<_> = subscribe
            .subscriptions
            .iter()
            .map(|one| one.filter)
            .collect();
        let refused = all.iter().zip(&self.codes);
        let refused = refused.filter(|(_, code)| code.is_error());
        let refused: HashSet<_> = refused.map(|(filter, _)| *filter).collect();
        let replayed = self
            .replayed
            .iter()
            .map(|one| (all[one.at], one.number_max));
        replayed
            .filter(|(filter, _)| !refused.contains(filter))
            .collect()
    }
}

/// Number of filters of a packet that are handled at a time. Those of a large packet are more, since each part decodes
/// the packet again.
const PART_MIN: usize = 64;
const PARTS_MAX: usize = 64;

/// Filters of one part for which the space is locked at once.
const LOCKED_MAX: usize = 256;

/// Retained messages that are looked at with a SUBSCRIBE; the others follow in turns.
const RETAINED_STEPS: usize = 1_000;

/// Number of filters, of so many, that are handled at a time.
pub fn filters_at_once(filters: usize) -> usize {
    PART_MIN.max(filters / PARTS_MAX)
}

impl Open {
    /// Handles SUBSCRIBE, or a part of it.
    pub(crate) fn subscribe(
        &mut self,
        subscribe: &Subscribe<'_>,
        ground: &Ground,
        now: Instant,
    ) -> Result<Handled, End> {
        let mut said = None;
        let mut subscribing = match self.pending.take().map(|pending| *pending) {
            Some(Pending::Subscribe(subscribing)) => match self.talk.go_on() {
                Said::Waits => return Ok(self.wait_with(subscribing)),
                Said::Over => return Err(End::Silent),
                answer => {
                    said = subscribing.is_asked.then_some(answer);
                    subscribing
                }
            },
            _ => Subscribing::default(),
        };
        subscribing.is_asked = false;
        let filters = subscribe.subscriptions.iter().count();
        let done = subscribing.codes.len();
        let left = subscribe.subscriptions.iter().skip(done);
        let part: Vec<_> = left.take(filters_at_once(filters)).collect();
        for subscription in &part[subscribing.refusals.len()..] {
            let filter = subscription.filter;
            if names::is_own_filter(filter) {
                subscribing.refusals.push(Some(ReasonCode::NotAuthorized));
                continue;
            }
            if self.client().replays.len() >= REPLAYS_MAX {
                subscribing.refusals.push(Some(ReasonCode::QuotaExceeded));
                continue;
            }
            if said.is_none() && self.talk.waits() {
                // The pause after the filters before.
                return Ok(self.wait_with(subscribing));
            }
            let at = (now, filter.len());
            let asked = || self.talk.may_subscribe(at, &names::asked(filter));
            match said.take().unwrap_or_else(asked) {
                Said::Allowed => subscribing.refusals.push(None),
                Said::Refused(reason) => subscribing.refusals.push(Some(of_filter(reason))),
                Said::Waits => {
                    subscribing.is_asked = true;
                    return Ok(self.wait_with(subscribing));
                }
                Said::Over => return Err(End::Silent),
            }
        }
        let is_last = done + part.len() == filters;
        let steps = self.take_in(subscribe, &part, &mut subscribing, (&ground.space, is_last))?;
        if !is_last {
            self.pending = Some(Box::new(Pending::Subscribe(subscribing)));
            return Ok(Handled::Part(steps));
        }
        let granted = subscribing.replayed(subscribe).into_iter();
        let replayed = ground.space.replay(self.client(), self.key, granted);
        Ok(Handled::Done(steps.saturating_add(replayed)))
    }

    fn wait_with(&mut self, subscribing: Subscribing) -> Handled {
        self.pending = Some(Box::new(Pending::Subscribe(subscribing)));
        Handled::Waits
    }

    /// Takes a part of the filters into the space. SUBACK follows the last part.
    fn take_in(
        &self,
        subscribe: &Subscribe<'_>,
        part: &[Subscription<'_>],
        subscribing: &mut Subscribing,
        (space, is_last): (&Arc<SharedSpace>, bool),
    ) -> Result<u32, End> {
        let refusals = std::mem::take(&mut subscribing.refusals);
        let wanted = part.iter().zip(refusals);
        let wanted: Vec<_> = wanted
            .map(|(subscription, refusal)| Wanted {
                filter: subscription.filter,
                options: self.options(subscription.filter, subscription.options),
                refusal,
            })
            .collect();
        let granted = || wanted.iter().filter(|wanted| wanted.refusal.is_none());
        // The realm's subscriptions precede SUBACK.
        granted().for_each(|wanted| space.bridge.note_interest(wanted.filter, true));
        let (replayed, steps) = self.replayed(&wanted, subscribing, space);
        let entered = self.enter(subscribe, &wanted, subscribing, (space, is_last));
        granted().for_each(|wanted| space.bridge.note_interest(wanted.filter, false));
        if !replayed.is_empty() {
            let number_max = space.bridge.retained_number();
            let replayed = replayed.into_iter();
            let replayed = replayed.map(|at| Replayed { at, number_max });
            subscribing.replayed.extend(replayed);
        }
        Ok(steps.saturating_add(entered?))
    }

    /// The places of a part's filters that are sent the realm's retained events, and the steps to find them.
    fn replayed(
        &self,
        wanted: &[Wanted<'_>],
        subscribing: &Subscribing,
        space: &SharedSpace,
    ) -> (Vec<usize>, u32) {
        if space.bridge.retained_number() == 0 {
            return (Vec::new(), 0);
        }
        let new = wanted.iter().enumerate().filter(|(_, wanted)| {
            wanted.refusal.is_none() && space.wants_retained(self.key, wanted)
        });
        let (places, filters): (Vec<_>, Vec<_>) = new
            .map(|(at, wanted)| (subscribing.codes.len() + at, wanted.filter))
            .unzip();
        let steps = match subscribing.replayed.len() < FILTERS_AT_ONCE {
            true => space.make_current(&filters),
            false => 0,
        };
        (places, steps)
    }

    fn enter(
        &self,
        subscribe: &Subscribe<'_>,
        wanted: &[Wanted<'_>],
        subscribing: &mut Subscribing,
        (space, is_last): (&SharedSpace, bool),
    ) -> Result<u32, End> {
        let identifier = subscribe.properties.subscription_id().unwrap_or(0);
        let codes = &mut subscribing.codes;
        let last = match is_last {
            true => wanted.len().saturating_sub(1) / LOCKED_MAX * LOCKED_MAX,
            false => wanted.len(),
        };
        let (earlier, last) = wanted.split_at(last);
        let mut steps = 0_u32;
        for some in earlier.chunks(LOCKED_MAX) {
            let (subscribed, sent) = space.enter(|space, now, outbox| {
                space.subscribe(now, self.key, identifier, some, codes, outbox)
            });
            subscribed.map_err(|violation| self.violation(&violation))?;
            steps = steps.saturating_add(sent);
        }
        if !is_last {
            return Ok(steps.saturating_add(wanted.len() as u32));
        }
        let (subscribed, sent) = space.enter(|space, now, outbox| {
            space.subscribe(now, self.key, identifier, last, codes, outbox)?;
            // Before the retained messages.
            let reply = Reply::SubAck(subscribe.packet_id, codes.as_slice().into());
            space.reply(now, self.key, reply, outbox);
            // Before what others publish, if it is not much.
            space.work(now, RETAINED_STEPS, outbox);
            Ok(())
        });
        subscribed.map_err(|violation| self.violation(&violation))?;
        Ok(steps.saturating_add(sent))
    }

    /// The options of a subscription. A shared one may not leave out local publications.
    fn options(&self, filter: &str, options: Options) -> Options {
        let is_shared = matches!(topic::split_share(filter), Ok(Some(_)));
        match self.is_bridge && !is_shared {
            true => Options {
                no_local: true,
                retain_as_published: true,
                ..options
            },
            false => options,
        }
    }

    /// Handles UNSUBSCRIBE, or a part of it.
    pub(crate) fn unsubscribe(
        &mut self,
        unsubscribe: &Unsubscribe<'_>,
        space: &SharedSpace,
    ) -> Handled {
        let mut codes = match self.pending.take().map(|pending| *pending) {
            Some(Pending::Unsubscribe(codes)) => codes,
            _ => Vec::new(),
        };
        let filters = unsubscribe.filters.iter().count();
        let left = unsubscribe.filters.iter().skip(codes.len());
        let part: Vec<_> = left.take(filters_at_once(filters)).collect();
        let mut steps = part.len() as u32;
        for some in part.chunks(LOCKED_MAX) {
            let (_, sent) = space.enter(|space, _, outbox| {
                let some = some.iter().copied();
                space.unsubscribe(self.key, some, &mut codes, outbox);
            });
            steps = steps.saturating_add(sent);
        }
        if codes.len() < filters {
            self.pending = Some(Box::new(Pending::Unsubscribe(codes)));
            return Handled::Part(steps);
        }
        let reply = Reply::UnsubAck(unsubscribe.packet_id, codes.into());
        space.enter(|space, now, outbox| space.reply(now, self.key, reply, outbox));
        Handled::Done(steps)
    }
}

/// A reason of SUBACK.
fn of_filter(reason: ReasonCode) -> ReasonCode {
    match reason {
        ReasonCode::TopicNameInvalid => ReasonCode::TopicFilterInvalid,
        ReasonCode::NotAuthorized | ReasonCode::QuotaExceeded => reason,
        ReasonCode::ImplementationSpecificError => reason,
        _ => ReasonCode::UnspecifiedError,
    }
}

#[cfg(test)]
mod tests {
    use crosstie_mqtt::{PacketId, Properties, QoS, SubscriptionsBuf};

    use super::*;

    #[test]
    fn a_filter_is_sent_the_events_before_its_own_part() {
        let mut filters = SubscriptionsBuf::new();
        for filter in ["a", "refused", "b"] {
            filters.push(filter, Options::new(QoS::AtMostOnce));
        }
        let subscribe = Subscribe {
            packet_id: PacketId::FIRST,
            properties: Properties::EMPTY,
            subscriptions: filters.as_subscriptions(),
        };
        let replayed = |at, number_max| Replayed { at, number_max };
        let subscribing = Subscribing {
            codes: vec![
                ReasonCode::Success,
                ReasonCode::QuotaExceeded,
                ReasonCode::Success,
            ],
            replayed: vec![replayed(0, 5), replayed(1, 5), replayed(2, 7)],
            ..Subscribing::default()
        };
        assert_eq!(subscribing.replayed(&subscribe), [("a", 5), ("b", 7)]);
    }
}
