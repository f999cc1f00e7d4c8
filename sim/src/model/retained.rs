//! Retained events, naively.

use std::collections::BTreeSet;

use crosstie_routing::EmptyEligible;
use crosstie_wamp::{MatchPolicy, PublishOptions, Receivers};

use super::Model;
use super::broker::admits;
use super::patterns::matches;
use crate::sent::trustlevel;
use crate::{Name, Sent};

/// Events with lists that a topic keeps.
const LISTED_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct RetainedEvent {
    topic: String,
    /// Unknown until it was sent to a session.
    publication: Option<u64>,
    publisher: Option<u64>,
    receivers: Option<Receivers>,
    payload: u64,
    trustlevel: Option<u64>,
    /// Not sent from then on.
    end_ms: Option<u64>,
}

impl Model {
    pub(super) fn retain(
        &mut self,
        publication: Option<u64>,
        publisher: Option<u64>,
        options: &PublishOptions,
        topic: &str,
        payload: u64,
    ) {
        let empty = self.config.empty_eligible;
        let lists = options.receivers.as_deref();
        let receivers = lists.and_then(|lists| effective(lists, empty));
        self.retained.retain(|event| {
            let is_obsolete = receivers.is_none() || event.receivers == receivers;
            event.topic != topic || !is_obsolete
        });
        let listed = |event: &&RetainedEvent| event.topic == topic && event.receivers.is_some();
        if self.retained.iter().filter(listed).count() >= LISTED_MAX {
            let oldest = self.retained.iter().position(|event| listed(&event));
            oldest.map(|place| self.retained.remove(place));
        }
        self.retained.push(RetainedEvent {
            topic: topic.to_owned(),
            publication,
            publisher,
            receivers,
            payload,
            trustlevel: trustlevel(options.passthru.as_deref()),
            end_ms: self.end_of_retained(options, topic),
        });
        self.end_retained();
        if self.retained.len() > self.config.limits.retained_events_max {
            self.retained.remove(0);
        }
    }

    /// As its publisher says, or the realm, whichever is earlier.
    fn end_of_retained(&self, options: &PublishOptions, topic: &str) -> Option<u64> {
        let retention = self.config.retention.iter();
        let matching = retention.filter(|of| matches(of.match_policy, &of.uri, topic));
        let ages = matching.map(|of| of.age_ms_max).chain(options.retain_ms);
        ages.min().map(|age| self.now_ms + age)
    }

    /// Forgets expired events.
    pub(super) fn end_retained(&mut self) {
        let now_ms = self.now_ms;
        let is_there = |event: &RetainedEvent| event.end_ms.is_none_or(|end| end > now_ms);
        self.retained.retain(is_there);
    }

    /// When the next one ends.
    pub(super) fn next_end_ms(&self) -> Option<u64> {
        self.retained.iter().filter_map(|event| event.end_ms).min()
    }

    pub(super) fn send_retained(
        &mut self,
        to: Name,
        subscription: u64,
        policy: MatchPolicy,
        pattern: &str,
    ) {
        let topics: BTreeSet<String> = self.retained.iter().map(|e| e.topic.clone()).collect();
        let mut left = self.config.limits.retained_sent_max;
        for topic in topics {
            let empty = self.config.empty_eligible;
            let member = self.member(to);
            let newest = self.retained.iter().rposition(|event| {
                let lists = event.receivers.as_ref();
                event.topic == topic && lists.is_none_or(|lists| admits(lists, empty, member))
            });
            let Some(place) = newest.filter(|_| matches(policy, pattern, &topic) && left > 0)
            else {
                continue;
            };
            left -= 1;
            let payload = self.retained[place].payload;
            let publication = match self.retained[place].publication {
                Some(publication) => publication,
                None => self.learn_publication(place),
            };
            let event = Sent::Event {
                subscription,
                publication,
                topic: (policy != MatchPolicy::Exact).then_some(topic),
                publisher: self.retained[place].publisher,
                retained: true,
                trustlevel: self.retained[place].trustlevel,
                payload,
            };
            let _ = self.deliver(to, event);
        }
    }

    /// The id of a publication that was not sent to any session when it was made.
    fn learn_publication(&mut self, place: usize) -> u64 {
        let told = self.told_publication(self.retained[place].payload);
        self.retained[place].publication = told;
        if let Some(id) = told {
            self.use_publication(id);
        }
        told.unwrap_or(0)
    }
}

/// The lists that exclude some session.
fn effective(lists: &Receivers, empty: EmptyEligible) -> Option<Receivers> {
    fn without_empty<T>(list: &mut Option<Vec<T>>) {
        list.take_if(|list| list.is_empty());
    }
    let mut lists = lists.clone();
    without_empty(&mut lists.exclude);
    without_empty(&mut lists.exclude_authid);
    without_empty(&mut lists.exclude_authrole);
    if empty == EmptyEligible::Everybody {
        without_empty(&mut lists.eligible);
        without_empty(&mut lists.eligible_authid);
        without_empty(&mut lists.eligible_authrole);
    }
    (lists != Receivers::default()).then_some(lists)
}
