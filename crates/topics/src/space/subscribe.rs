//! SUBSCRIBE.

use std::sync::Arc;

use crosstie_mqtt::{PacketType, ReasonCode, RetainHandling, topic};

use super::Space;
use super::entries::{charge, subscription_bytes};
use crate::keys::SessionKey;
use crate::retained::Scan;
use crate::session::{Subscribed, SubscribedKey};
use crate::subscribers::{PackedOptions, Subscriber};
use crate::{ConnectionKey, Outbox, Record, Time, Violation, Wanted};

/// A subscription that was made or replaced.
pub(super) struct Made {
    pub(super) node: u32,
    pub(super) is_new: bool,
    pub(super) is_shared: bool,
}

impl<H> Space<H> {
    /// Appends a code for each filter. `identifier` is the subscription identifier; 0 if there is none.
    pub fn subscribe(
        &mut self,
        _now: Time,
        key: ConnectionKey,
        identifier: u32,
        wanted: &[Wanted<'_>],
        codes: &mut Vec<ReasonCode>,
        outbox: &mut impl Outbox<H>,
    ) -> Result<(), Violation> {
        let is_shared = |one: &Wanted<'_>| matches!(topic::split_share(one.filter), Ok(Some(_)));
        if wanted
            .iter()
            .any(|one| one.options.no_local && is_shared(one))
        {
            let text = "a shared subscription may not have the option no local";
            return Err(Violation::new(ReasonCode::ProtocolError, text));
        }
        if self.connected(key).is_none() {
            codes.extend(wanted.iter().map(|_| ReasonCode::UnspecifiedError));
            return Ok(());
        }
        for one in wanted {
            let code = match one.refusal {
                Some(refusal) if refusal.is_allowed_in(PacketType::SubAck) => refusal,
                Some(_) => ReasonCode::UnspecifiedError,
                None => self.subscribe_one(key.session, identifier, one, outbox),
            };
            codes.push(code);
        }
        self.wake_scans(key.session);
        self.pause_or_not(key.session, outbox);
        Ok(())
    }

    fn subscribe_one(
        &mut self,
        key: SessionKey,
        identifier: u32,
        wanted: &Wanted<'_>,
        outbox: &mut impl Outbox<H>,
    ) -> ReasonCode {
        let options = PackedOptions::of(wanted.options);
        let made = self.check_bounds(key, wanted.filter);
        let made = made
            .and_then(|()| self.add_subscription(key, wanted.filter, identifier, options, outbox));
        let made = match made {
            Ok(made) => made,
            Err(reason) => {
                self.ledger.counts.refused_subscriptions += 1;
                return reason;
            }
        };
        let wants_retained = match wanted.options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::New => made.is_new,
            RetainHandling::Never => false,
        };
        let is_scanned = wants_retained && !made.is_shared && self.retained.len() > 0;
        let session = self.clients.find_mut(key);
        if let Some(session) = session.filter(|session| session.is_recorded()) {
            self.ledger.record(Record::Subscribed {
                session: session.number,
                filter: wanted.filter.into(),
                options: wanted.options,
                identifier,
                is_scanned,
            });
        }
        if is_scanned {
            self.begin_scan(key, made.node, (wanted.filter, identifier, options), outbox);
        }
        ReasonCode::granted(wanted.options.qos)
    }

    /// Lets retained messages be sent to a subscription.
    pub(super) fn begin_scan(
        &mut self,
        key: SessionKey,
        node: u32,
        (filter, identifier, options): (&str, u32, PackedOptions),
        outbox: &mut impl Outbox<H>,
    ) {
        let scan = Scan::new(filter, identifier, options, self.published);
        if let Some(session) = self.clients.find_mut(key) {
            let bytes = scan.bytes() as isize;
            if session.rare_mut().scans.insert(node, scan).is_none() {
                charge(session, bytes, &mut self.ledger, outbox);
            }
        }
    }

    /// Whether a session may have a subscription, or one more.
    fn check_bounds(&mut self, session_key: SessionKey, filter: &str) -> Result<(), ReasonCode> {
        let (path, name) = split(filter)?;
        let limits = &self.config.limits;
        let levels = topic::levels(path).count();
        if filter.len() > limits.topic_bytes_max || levels > limits.levels_max {
            self.ledger.counts.refused_topics += 1;
            return Err(ReasonCode::TopicFilterInvalid);
        }
        let Some(session) = self.clients.find(session_key) else {
            return Err(ReasonCode::UnspecifiedError);
        };
        let known = self.find_filter(path, name);
        if known.is_some_and(|key| session.find_subscribed(key).is_ok()) {
            return Ok(());
        }
        let own_max = session.subscriptions_max(limits.session_subscriptions_max);
        let is_full = session.subscriptions.len() >= own_max
            || self.ledger.counts.subscriptions >= limits.subscriptions_max
            || self.trie.len() + levels > limits.filter_levels_max;
        match is_full {
            true => Err(ReasonCode::QuotaExceeded),
            false => Ok(()),
        }
    }

    /// Makes a subscription, or replaces the one with the same filter. One that a store has kept may exceed the bounds.
    pub(super) fn add_subscription(
        &mut self,
        session_key: SessionKey,
        filter: &str,
        identifier: u32,
        options: PackedOptions,
        outbox: &mut impl Outbox<H>,
    ) -> Result<Made, ReasonCode> {
        let (path, name) = split(filter)?;
        let Some(session) = self.clients.find(session_key) else {
            return Err(ReasonCode::UnspecifiedError);
        };
        if let Some(key) = self.find_filter(path, name)
            && let Ok(at) = session.find_subscribed(key)
        {
            let place = session.subscriptions.as_slice()[at].place;
            self.replace(key, place, identifier, options);
            return Ok(Made {
                node: key.node,
                is_new: false,
                is_shared: name.is_some(),
            });
        }
        let subscriber = Subscriber {
            session: session_key.index(),
            identifier,
            options,
        };
        let key = self.insert(path, name, subscriber, outbox);
        self.ledger.counts.subscriptions += 1;
        if let Some(session) = self.clients.find_mut(session_key) {
            charge(
                session,
                subscription_bytes(filter),
                &mut self.ledger,
                outbox,
            );
            let is_member = key.group != SubscribedKey::ALONE && session.link.is_some();
            if let Ok(at) = session.find_subscribed(key)
                && is_member
            {
                let place = session.subscriptions.as_slice()[at].place;
                let moves = self.shares.set_connected(key.group, place, true);
                self.note_moves(key, moves);
            }
        }
        Ok(Made {
            node: key.node,
            is_new: true,
            is_shared: name.is_some(),
        })
    }

    fn replace(&mut self, key: SubscribedKey, place: u32, identifier: u32, options: PackedOptions) {
        let found = match key.group {
            SubscribedKey::ALONE => {
                let node = self.trie.at_mut(key.node);
                node.and_then(|node| node.subscribers.as_mut_slice().get_mut(place as usize))
            }
            group => self.shares.find_member_mut(group, place),
        };
        if let Some(found) = found {
            (found.options, found.identifier) = (options, identifier);
        }
    }

    /// The place of a filter that a session has, and of the group if the subscription is shared.
    pub(super) fn find_filter(&self, path: &str, name: Option<&str>) -> Option<SubscribedKey> {
        let node = self.trie.find(path)?;
        let group = match name {
            None => SubscribedKey::ALONE,
            Some(name) => self.shares.find(node, name)?,
        };
        Some(SubscribedKey { node, group })
    }

    /// Adds a subscriber to a filter, and the filter to its session.
    fn insert(
        &mut self,
        path: &str,
        name: Option<&str>,
        subscriber: Subscriber,
        outbox: &mut impl Outbox<H>,
    ) -> SubscribedKey {
        let node = self.trie.open(path);
        let found = self.trie.at(node);
        if found.is_some_and(|node| !node.has_subscriptions()) {
            outbox.interest(path, true);
        }
        let (group, place) = match name {
            None => {
                let node = self.trie.at_mut(node);
                let place = node.map_or(0, |node| node.subscribers.push(subscriber) as u32);
                (SubscribedKey::ALONE, place)
            }
            Some(name) => {
                let group = self.shares.find(node, name);
                let group = group.unwrap_or_else(|| {
                    if let Some(node) = self.trie.at_mut(node) {
                        node.groups += 1;
                    }
                    self.shares.open(node, name)
                });
                (group, self.shares.add(group, subscriber))
            }
        };
        let key = SubscribedKey { node, group };
        if let Some(session) = self.clients.at_mut(subscriber.session)
            && let Err(at) = session.find_subscribed(key)
        {
            session.subscriptions.insert(at, Subscribed { key, place });
        }
        key
    }

    /// The text of a session's filter.
    pub(super) fn filter_of(&self, key: SubscribedKey) -> Arc<str> {
        let filter = self.trie.filter(key.node);
        match self
            .shares
            .at(key.group)
            .filter(|_| key.group != SubscribedKey::ALONE)
        {
            Some(group) => format!("$share/{}/{filter}", group.name).into(),
            None => filter.into(),
        }
    }
}

/// The path of a filter, and the name of its group if it is a shared one.
fn split(filter: &str) -> Result<(&str, Option<&str>), ReasonCode> {
    let share = topic::split_share(filter).map_err(|_| ReasonCode::TopicFilterInvalid)?;
    let path = share.as_ref().map_or(filter, |share| share.filter);
    Ok((path, share.map(|share| share.name)))
}
