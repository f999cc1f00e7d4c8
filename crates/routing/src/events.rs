//! Meta events: the realm's publications about itself (WAMP advanced profile, "Session Meta API", "Registration Meta
//! API", "Subscription Meta API").
//!
//! They are queued until the input that caused them has been answered, and are published in the order in which they
//! occurred. An event that no subscription could match is not encoded.

use std::collections::VecDeque;

use chrono::{DateTime, SecondsFormat};
use crosstie_wamp::{Dict, MatchPolicy, Serializer, SessionId, Value, codec};

use crate::overlap::matches;
use crate::time::Time;

/// One meta event.
#[derive(Debug)]
pub(crate) struct MetaEvent {
    pub(crate) topic: &'static str,
    /// The arguments, as one JSON list.
    pub(crate) arguments: Vec<u8>,
    /// Each node detects the event by itself, and publishes it to its own sessions only.
    pub(crate) is_local: bool,
}

/// The four events in the life of a subscription or a registration.
#[derive(Clone, Copy)]
pub(crate) struct Topics {
    on_create: &'static str,
    on_enter: &'static str,
    on_exit: &'static str,
    on_delete: &'static str,
}

pub(crate) const SUBSCRIPTION: Topics = Topics {
    on_create: "wamp.subscription.on_create",
    on_enter: "wamp.subscription.on_subscribe",
    on_exit: "wamp.subscription.on_unsubscribe",
    on_delete: "wamp.subscription.on_delete",
};

pub(crate) const REGISTRATION: Topics = Topics {
    on_create: "wamp.registration.on_create",
    on_enter: "wamp.registration.on_register",
    on_exit: "wamp.registration.on_unregister",
    on_delete: "wamp.registration.on_delete",
};

pub(crate) const ON_JOIN: &str = "wamp.session.on_join";
pub(crate) const ON_DEFINE: &str = "wamp.reflect.on_define";
pub(crate) const ON_UNDEFINE: &str = "wamp.reflect.on_undefine";
pub(crate) const ON_LEAVE: &str = "wamp.session.on_leave";

/// The ends that other nodes announce, if the node of the session, subscription or registration cannot do so any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Session,
    Registration,
    Subscription,
}

impl Ending {
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::Registration, Self::Subscription];

    /// The topics for its begin, for its end, and for the end of the last one.
    pub(crate) fn topics(self) -> [&'static str; 3] {
        match self {
            Self::Session => [ON_JOIN, ON_LEAVE, ON_LEAVE],
            Self::Registration => REGISTRATION.of_members(),
            Self::Subscription => SUBSCRIPTION.of_members(),
        }
    }

    /// The subject of a topic, and whether it announces a begin or an end; `None` if neither.
    pub(crate) fn of(topic: &str) -> Option<(Self, Option<bool>)> {
        Self::ALL.into_iter().find_map(|ending| {
            let place = ending.topics().iter().position(|known| *known == topic)?;
            let begins = match place {
                0 => Some(true),
                1 => Some(false),
                _ => None,
            };
            Some((ending, begins))
        })
    }
}

impl Topics {
    fn of_members(&self) -> [&'static str; 3] {
        [self.on_enter, self.on_exit, self.on_delete]
    }
}

/// A subscription or a registration, as the meta API describes it.
pub(crate) struct Entry<'e> {
    pub(crate) id: u64,
    pub(crate) uri: &'e str,
    pub(crate) match_policy: MatchPolicy,
    /// The invocation policy, of registrations.
    pub(crate) invoke: Option<&'static str>,
    pub(crate) created: Time,
}

/// The queue of meta events, and whether any subscription could match them.
#[derive(Debug, Default)]
pub(crate) struct MetaEvents {
    /// Number of subscriptions to topics under `wamp.`, or to patterns that match such topics.
    watching: usize,
    /// Number of those that match announcements of ends, in the order of [`Ending::ALL`].
    ending: [usize; 3],
    /// Whether one of the numbers in `ending` became zero or nonzero.
    has_turned: bool,
    /// Whether there are other nodes, which may have such subscriptions.
    has_nodes: bool,
    pending: VecDeque<MetaEvent>,
    /// The realm's time 0, in microseconds since 1970.
    epoch_us: u64,
}

impl MetaEvents {
    pub(crate) fn set_epoch(&mut self, epoch_us: u64) {
        self.epoch_us = epoch_us;
    }

    /// The realm's time 0, in microseconds since 1970.
    pub(crate) fn epoch_us(&self) -> u64 {
        self.epoch_us
    }

    /// Counts a subscription that begins or ends.
    pub(crate) fn watch(&mut self, policy: MatchPolicy, topic: &str, is_new: bool) {
        if !may_watch(policy, topic) {
            return;
        }
        let count = |watching: &mut usize| match is_new {
            true => *watching += 1,
            false => *watching -= 1,
        };
        count(&mut self.watching);
        for (ending, watching) in Ending::ALL.into_iter().zip(&mut self.ending) {
            let [_, on_exit, on_delete] = ending.topics();
            if matches(policy, topic, on_exit) || matches(policy, topic, on_delete) {
                count(watching);
                self.has_turned |= *watching <= 1 && self.has_nodes;
            }
        }
    }

    /// Which ends are subscribed to, if that has changed.
    #[inline]
    pub(crate) fn take_turned(&mut self) -> Option<[bool; 3]> {
        let has_turned = std::mem::take(&mut self.has_turned);
        has_turned.then(|| self.ending.map(|watching| watching > 0))
    }

    /// Whether an event might have subscribers.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watching > 0 || self.has_nodes
    }

    /// Publishes events to other nodes from now on, without knowing their subscriptions.
    pub(crate) fn join_fabric(&mut self) {
        self.has_nodes = true;
        self.has_turned = self.ending.iter().any(|watching| *watching > 0);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && !self.has_turned
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn next(&mut self) -> Option<MetaEvent> {
        self.pending.pop_front()
    }

    pub(crate) fn add(&mut self, topic: &'static str, arguments: Vec<Value>) {
        self.pending.push_back(MetaEvent {
            topic,
            arguments: json(arguments),
            is_local: false,
        });
    }

    /// The same for events that other nodes detect by themselves.
    pub(crate) fn add_local(&mut self, topic: &'static str, arguments: Vec<Value>) {
        if self.watching > 0 {
            self.pending.push_back(MetaEvent {
                topic,
                arguments: json(arguments),
                is_local: true,
            });
        }
    }

    /// The last participant of that id has gone on another node, and no node announced it as the last one.
    pub(crate) fn ended_elsewhere(
        &mut self,
        topics: &Topics,
        session: SessionId,
        (id, uri): (u64, &str),
    ) {
        if !is_protected(uri) {
            self.add_local(topics.on_delete, vec![session.0.into(), id.into()]);
        }
    }

    /// A session has joined `entry`, which is new or existed.
    pub(crate) fn entered(
        &mut self,
        topics: &Topics,
        session: SessionId,
        entry: &Entry<'_>,
        is_new: bool,
    ) {
        if !self.is_watched() || is_protected(entry.uri) {
            return;
        }
        if is_new {
            let details = Value::Dict(self.describe(entry));
            self.add(topics.on_create, vec![Value::from(session.0), details]);
        }
        self.add(
            topics.on_enter,
            vec![Value::from(session.0), entry.id.into()],
        );
    }

    /// A session has left the entry with that id, which remains or ends.
    pub(crate) fn exited(
        &mut self,
        topics: &Topics,
        session: SessionId,
        (id, uri): (u64, &str),
        is_gone: bool,
    ) {
        if !self.is_watched() || is_protected(uri) {
            return;
        }
        let arguments = || vec![Value::from(session.0), Value::from(id)];
        self.add(topics.on_exit, arguments());
        if is_gone {
            self.add(topics.on_delete, arguments());
        }
    }

    /// The details that `get` returns and `on_create` publishes.
    pub(crate) fn describe(&self, entry: &Entry<'_>) -> Dict {
        let unix_us = i64::try_from(self.epoch_us.saturating_add(entry.created.0));
        let created = DateTime::from_timestamp_micros(unix_us.unwrap_or(i64::MAX));
        let created = created
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true);
        let mut details = vec![
            ("id".to_owned(), Value::from(entry.id)),
            ("created".to_owned(), Value::String(created)),
            ("uri".to_owned(), Value::from(entry.uri)),
            ("match".to_owned(), Value::from(entry.match_policy.name())),
        ];
        if let Some(invoke) = entry.invoke {
            details.push(("invoke".to_owned(), Value::from(invoke)));
        }
        details
    }
}

/// Whether the meta API hides a URI: the router's own, under `wamp` and `crossbar`, as in Crossbar.io.
pub(crate) fn is_protected(uri: &str) -> bool {
    is_under("wamp", uri) || is_under("crossbar", uri)
}

/// Whether a URI has that first component.
#[inline(always)]
pub(crate) fn is_under(first: &str, uri: &str) -> bool {
    let rest = uri.strip_prefix(first);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a topic is one of the realm's meta events.
pub(crate) fn is_meta_topic(topic: &str) -> bool {
    let of = |topics: &Topics| {
        let Topics {
            on_create,
            on_enter,
            on_exit,
            on_delete,
        } = *topics;
        [on_create, on_enter, on_exit, on_delete].contains(&topic)
    };
    [ON_JOIN, ON_LEAVE].contains(&topic) || of(&SUBSCRIPTION) || of(&REGISTRATION)
}

/// The values as one JSON list.
pub(crate) fn json(values: Vec<Value>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    // Only NaN and infinities have no form in JSON, and here are none.
    let written = codec::encode_value(&Value::List(values), Serializer::Json, &mut bytes);
    debug_assert!(written.is_ok(), "a value has no form in JSON");
    bytes
}

/// Whether a subscription could match a topic under `wamp.`.
fn may_watch(policy: MatchPolicy, topic: &str) -> bool {
    match policy {
        MatchPolicy::Exact => topic.starts_with("wamp."),
        MatchPolicy::Prefix => topic.starts_with("wamp.") || "wamp.".starts_with(topic),
        MatchPolicy::Wildcard => {
            let first = topic.split('.').next().unwrap_or_default();
            first.is_empty() || first == "wamp"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_that_may_match() {
        use MatchPolicy::{Exact, Prefix, Wildcard};
        for (policy, topic, expected) in [
            (Exact, "wamp.session.on_join", true),
            (Exact, "com.wamp", false),
            (Exact, "wampum.x", false),
            (Prefix, "", true),
            (Prefix, "wa", true),
            (Prefix, "wamp.session.", true),
            (Prefix, "wampum", false),
            (Prefix, "com.", false),
            (Wildcard, "..on_join", true),
            (Wildcard, "wamp..on_join", true),
            (Wildcard, "com..x", false),
        ] {
            assert_eq!(may_watch(policy, topic), expected, "{policy:?} {topic}");
        }
    }

    #[test]
    fn the_routers_own_uris_are_protected() {
        for (uri, expected) in [
            ("wamp.session.on_join", true),
            ("wamp", true),
            ("crossbar.node", true),
            ("crossbars.x", false),
            ("com.wamp", false),
            ("", false),
        ] {
            assert_eq!(is_protected(uri), expected, "{uri}");
        }
    }
}
