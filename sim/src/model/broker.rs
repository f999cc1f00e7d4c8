//! Subscriptions and publications, naively.

use crosstie_routing::{Action, EmptyEligible, error};
use crosstie_wamp::{
    Dict, InvocationPolicy, MatchPolicy, PublishOptions, Receivers, SessionId, SubscribeOptions,
    Value,
};

use super::patterns::matches;
use super::{Entry, Member, Model};
use crate::sent::trustlevel;
use crate::{Kind, Name, Sent};

impl Model {
    pub(super) fn subscribe(
        &mut self,
        from: Name,
        request: u64,
        options: &SubscribeOptions,
        topic: &str,
    ) {
        let policy = options.match_policy;
        let permitted = Self::check_uri(topic, policy).and_then(|()| {
            self.authorize(from, Action::Subscribe, topic, policy)
                .map(|_| ())
        });
        if let Err(uri) = permitted {
            return self.refuse(from, "SUBSCRIBE", request, uri);
        }
        let same = |entry: &&Entry| entry.policy == policy && entry.uri == topic;
        let known = self.subscribers.iter().find(same).map(|entry| entry.id);
        let held = self.subscribers.iter();
        let held = held.filter(|entry| entry.member == from).count();
        let mine = self
            .subscribers
            .iter()
            .filter(same)
            .any(|entry| entry.member == from);
        let subscriptions_max = self.bound(from, |limits| limits.subscriptions_max);
        if !mine && held >= subscriptions_max.unwrap_or(self.config.limits.subscriptions_max) {
            return self.refuse(from, "SUBSCRIBE", request, error::SUBSCRIPTIONS_MAX);
        }
        let told = self.actual.iter().find_map(|(to, sent)| match sent {
            Sent::Subscribed {
                request: answered,
                subscription,
            } if *to == from && *answered == request => Some(*subscription),
            _ => None,
        });
        let told = told.or_else(|| self.told_id(Kind::Subscriptions, from));
        let id = self.learn_id("subscription", known, told);
        let first = self.subscribers.iter().find(|entry| entry.id == id);
        let (is_first, created_ms) = (first.is_none(), first.map_or(self.now_ms, |e| e.created_ms));
        self.note_shard(from, id, options);
        if !mine {
            self.order_last += 1;
            self.subscribers.push(Entry {
                member: from,
                policy,
                uri: topic.to_owned(),
                id,
                order: self.order_last,
                invoke: InvocationPolicy::default(),
                nkey: options.nkey.as_deref().map(Box::from),
                forward_timeout: false,
                disclosed: false,
                concurrency: 0,
                born: 0,
                created_ms,
            });
        }
        let subscribed = Sent::Subscribed {
            request,
            subscription: id,
        };
        if self.reply(from, subscribed).is_ok() && options.get_retained {
            self.send_retained(from, id, policy, topic);
        }
        if !mine && let Some(entry) = self.subscribers.last().cloned() {
            self.tell_entered(Kind::Subscriptions, &entry, is_first);
        }
    }

    pub(super) fn unsubscribe(&mut self, from: Name, request: u64, subscription: u64) {
        if !self.take_entry(Kind::Subscriptions, subscription, from) {
            return self.refuse(from, "UNSUBSCRIBE", request, error::NO_SUCH_SUBSCRIPTION);
        }
        let unsubscribed = Sent::Unsubscribed {
            request,
            revoked: None,
        };
        let _ = self.reply(from, unsubscribed);
    }

    pub(super) fn publish(
        &mut self,
        from: Name,
        request: u64,
        options: &PublishOptions,
        topic: &str,
        payload: u64,
    ) {
        let (disclosed, trustlevel) = match self.may_publish(from, options, topic) {
            Ok(permitted) => permitted,
            Err(_) if !options.acknowledge => return,
            Err(uri) => return self.refuse(from, "PUBLISH", request, uri),
        };
        let told = self.actual.iter().find_map(|(to, sent)| match sent {
            Sent::Published {
                request: answered,
                publication,
            } if *to == from && *answered == request => Some(*publication),
            _ => None,
        });
        let told = told.or_else(|| self.told_publication(payload));
        if let Some(id) = told {
            self.use_publication(id);
        }
        if options.acknowledge {
            let published = Sent::Published {
                request,
                publication: told.unwrap_or(0),
            };
            let _ = self.reply(from, published);
        }
        let options = PublishOptions {
            passthru: of_trustlevel(trustlevel),
            ..options.clone()
        };
        self.send_events(from, told, disclosed, &options, topic, payload);
    }

    /// Whether the publisher is disclosed, and how far the publication is to be trusted; or why there is no publication.
    pub(super) fn may_publish(
        &mut self,
        from: Name,
        options: &PublishOptions,
        topic: &str,
    ) -> Result<(bool, Option<u16>), &'static str> {
        Self::check_uri(topic, MatchPolicy::Exact)?;
        Self::check_reserved(topic)?;
        let (disclose, trustlevel) =
            self.authorize(from, Action::Publish, topic, MatchPolicy::Exact)?;
        let disclosed = self.disclosed(disclose.publisher, options.disclose_me)?;
        Ok((disclosed, trustlevel))
    }

    /// The id that the realm gave the publication with that payload, if any receiver was sent it.
    pub(super) fn told_publication(&self, wanted: u64) -> Option<u64> {
        self.actual.iter().find_map(|(_, sent)| match sent {
            Sent::Event {
                publication,
                payload,
                ..
            } if *payload == wanted => Some(*publication),
            _ => None,
        })
    }

    pub(super) fn use_publication(&mut self, id: u64) {
        if self.publications_used.contains(&id) || !(1..=1 << 53).contains(&id) {
            self.complaint = Some(format!("publication id {id} is used again or too large"));
        }
        self.publications_used.push(id);
    }

    /// Retains a publication, if requested, and sends it to its receivers.
    pub(super) fn send_events(
        &mut self,
        from: Name,
        told: Option<u64>,
        disclosed: bool,
        options: &PublishOptions,
        topic: &str,
        payload: u64,
    ) {
        let publication = told.unwrap_or(0);
        let publisher = disclosed.then(|| self.member(from).id);
        if options.retain {
            self.retain(told, publisher, options, topic, payload);
        }
        let shards = self.shards_reached(options, topic, payload);
        for entry in self.subscribers.clone() {
            let listed = options.receivers.as_deref();
            let member = self.member(entry.member);
            let admitted =
                listed.is_none_or(|lists| admits(lists, self.config.empty_eligible, member));
            let itself = options.exclude_me && entry.member == from;
            let has = shards.iter().find(|(id, _)| *id == entry.id);
            let elsewhere = has.is_some_and(|(_, shard)| {
                entry.nkey.is_some() && entry.nkey.as_ref() != shard.as_ref()
            });
            if !matches(entry.policy, &entry.uri, topic) || itself || !admitted || elsewhere {
                continue;
            }
            let event = Sent::Event {
                subscription: entry.id,
                publication,
                topic: (entry.policy != MatchPolicy::Exact).then(|| topic.to_owned()),
                publisher,
                retained: false,
                trustlevel: trustlevel(options.passthru.as_deref()),
                payload,
            };
            let _ = self.deliver(entry.member, event);
        }
    }
}

/// The attributes with that trust level.
pub(super) fn of_trustlevel(trustlevel: Option<u16>) -> Option<Box<Dict>> {
    let level = u64::from(trustlevel?);
    Some(Box::new(vec![(
        "trustlevel".to_owned(),
        Value::from(level),
    )]))
}

/// Whether lists of receivers admit a session.
pub(super) fn admits(lists: &Receivers, empty: EmptyEligible, member: &Member) -> bool {
    fn on_list<T: PartialEq>(list: &Option<Vec<T>>, empty: EmptyEligible, item: &T) -> bool {
        let is_none = |list: &Vec<T>| list.is_empty() && empty == EmptyEligible::Everybody;
        list.as_ref()
            .is_none_or(|list| is_none(list) || list.contains(item))
    }
    let id = SessionId(member.id);
    let eligible = on_list(&lists.eligible, empty, &id)
        && on_list(&lists.eligible_authid, empty, &member.authid)
        && on_list(&lists.eligible_authrole, empty, &member.authrole);
    let excluded = lists
        .exclude
        .as_ref()
        .is_some_and(|list| list.contains(&id))
        || lists
            .exclude_authid
            .as_ref()
            .is_some_and(|list| list.contains(&member.authid))
        || lists
            .exclude_authrole
            .as_ref()
            .is_some_and(|list| list.contains(&member.authrole));
    eligible && !excluded
}
