//! A link's questions to a realm's meta API, and its subscriptions there.

use std::fmt;

use crate::sides::Kind;

/// An event of the meta API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetaTopic {
    pub(crate) kind: Kind,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Created,
    Entered,
    Exited,
    Deleted,
}

/// A call of the meta API.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    List(Kind),
    Get(Kind, u64),
    Members(Kind, u64),
}

impl MetaTopic {
    pub(crate) fn uri(self) -> &'static str {
        match (self.kind, self.what) {
            (Kind::Subscription, What::Created) => "wamp.subscription.on_create",
            (Kind::Subscription, What::Entered) => "wamp.subscription.on_subscribe",
            (Kind::Subscription, What::Exited) => "wamp.subscription.on_unsubscribe",
            (Kind::Subscription, What::Deleted) => "wamp.subscription.on_delete",
            (Kind::Registration, What::Created) => "wamp.registration.on_create",
            (Kind::Registration, What::Entered) => "wamp.registration.on_register",
            (Kind::Registration, What::Exited) => "wamp.registration.on_unregister",
            (Kind::Registration, What::Deleted) => "wamp.registration.on_delete",
        }
    }
}

impl Question {
    pub(crate) fn procedure(self) -> &'static str {
        match self {
            Self::List(Kind::Subscription) => "wamp.subscription.list",
            Self::Get(Kind::Subscription, _) => "wamp.subscription.get",
            Self::Members(Kind::Subscription, _) => "wamp.subscription.list_subscribers",
            Self::List(Kind::Registration) => "wamp.registration.list",
            Self::Get(Kind::Registration, _) => "wamp.registration.get",
            Self::Members(Kind::Registration, _) => "wamp.registration.list_callees",
        }
    }
}

impl fmt::Display for MetaTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.uri())
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.procedure())
    }
}
