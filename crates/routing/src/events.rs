//! Meta events: what a realm publishes about itself (WAMP advanced profile, "Session Meta API",
//! "Registration Meta API", "Subscription Meta API").
//!
//! They wait in a line until the input that caused them has been answered, and are published in the
//! order in which they came about. Nothing is written where no subscription could be reached.

use std::collections::VecDeque;

use chrono::{DateTime, SecondsFormat};
use crosstie_wamp::{Dict, MatchPolicy, Serializer, SessionId, Value, codec};

use crate::overlap::matches;
use crate::time::Time;

/// What one event says.
#[derive(Debug)]
pub(crate) struct MetaEvent {
    pub(crate) topic: &'static str,
    /// One JSON list.
    pub(crate) arguments: Vec<u8>,
    /// Every node finds it out by itself, and tells its own sessions.
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

/// What ends with its node, where nobody there can tell of it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Session,
    Registration,
    Subscription,
}

impl Ending {
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::Registration, Self::Subscription];

    /// What is published when it begins, when it ends, and when it was the last one.
    pub(crate) fn topics(self) -> [&'static str; 3] {
        match self {
            Self::Session => [ON_JOIN, ON_LEAVE, ON_LEAVE],
            Self::Registration => REGISTRATION.of_members(),
            Self::Subscription => SUBSCRIPTION.of_members(),
        }
    }

    /// What a topic is about, and whether it says that something begins or ends; `None`: neither.
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

/// A subscription or a registration, as the meta API tells of it.
pub(crate) struct Entry<'e> {
    pub(crate) id: u64,
    pub(crate) uri: &'e str,
    pub(crate) match_policy: MatchPolicy,
    /// Of registrations.
    pub(crate) invoke: Option<&'static str>,
    pub(crate) created: Time,
}

/// The events that wait, and whether there is a use for them.
#[derive(Debug, Default)]
pub(crate) struct MetaEvents {
    /// Subscriptions to topics under `wamp.`, or to patterns that reach such topics.
    watching: usize,
    /// Of them, those that may be told of an end, in the order of [`Ending::ALL`].
    ending: [usize; 3],
    /// Whether there are any is not what it was.
    has_turned: bool,
    /// Other nodes may have some.
    has_nodes: bool,
    pending: VecDeque<MetaEvent>,
    /// What the realm's time 0 was, in microseconds since 1970.
    epoch_us: u64,
}

impl MetaEvents {
    pub(crate) fn set_epoch(&mut self, epoch_us: u64) {
        self.epoch_us = epoch_us;
    }

    /// What the realm's time 0 was, in microseconds since 1970.
    pub(crate) fn epoch_us(&self) -> u64 {
        self.epoch_us
    }

    /// There is one more subscription to that, or one less.
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

    /// Which ends are listened for, if that has changed.
    #[inline]
    pub(crate) fn take_turned(&mut self) -> Option<[bool; 3]> {
        let has_turned = std::mem::take(&mut self.has_turned);
        has_turned.then(|| self.ending.map(|watching| watching > 0))
    }

    /// Whether an event might reach somebody.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watching > 0 || self.has_nodes
    }

    /// From now on events are for other nodes, too, which are not asked whether somebody there wants them.
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

    /// The same of what other nodes find out by themselves.
    pub(crate) fn add_local(&mut self, topic: &'static str, arguments: Vec<Value>) {
        if self.watching > 0 {
            self.pending.push_back(MetaEvent {
                topic,
                arguments: json(arguments),
                is_local: true,
            });
        }
    }

    /// The last of those who had a part in what has that id has gone, on another node; none said that it was the last.
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

    /// A session has taken part in `entry`, which is new or was there.
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

    /// A session has no part any more in what has that id, which stays or is gone.
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

    /// What `get` answers, and `on_create` says.
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

/// Whether the meta API keeps silent about a URI: those of the router itself, under `wamp` and
/// `crossbar`, as Crossbar.io does.
pub(crate) fn is_protected(uri: &str) -> bool {
    is_under("wamp", uri) || is_under("crossbar", uri)
}

/// Whether a URI has that first component.
#[inline(always)]
pub(crate) fn is_under(first: &str, uri: &str) -> bool {
    let rest = uri.strip_prefix(first);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a realm publishes under that topic.
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

/// One JSON list of those values.
pub(crate) fn json(values: Vec<Value>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    // Only numbers that are none have no form in JSON, and here are none of them.
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
    fn who_may_be_reached() {
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
