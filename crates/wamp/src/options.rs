//! `Options` and `Details` of the hot messages, read into fields.
//!
//! Attributes that a router must pass on without understanding them (payload passthru mode's
//! `ppt_*`, the older `enc_*`, a link's `forward_for`, a `trustlevel`, and custom ones that begin with an underscore) are kept in
//! `passthru`; every other unknown attribute is skipped, as the specification asks.

use std::borrow::Cow;

use crate::{Dict, Seldom, SessionId};

/// How a registered or subscribed URI is compared (WAMP advanced profile, "Pattern-based …").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchPolicy {
    /// The whole URI, byte for byte.
    #[default]
    Exact,
    /// The URI begins with the pattern.
    Prefix,
    /// Component by component; an empty component of the pattern matches any one component.
    Wildcard,
}

impl MatchPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Exact, Self::Prefix, Self::Wildcard];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Wildcard => "wildcard",
        }
    }
}

/// Which callee of a shared registration is invoked (WAMP advanced profile, "Shared Registration").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InvocationPolicy {
    /// Only one callee may register.
    #[default]
    Single,
    /// The callee that registered first.
    First,
    /// The callee that registered last.
    Last,
    /// Each callee in turn.
    RoundRobin,
    /// Any callee, at random.
    Random,
    /// The callee that serves the fewest calls. The specification has no word for it.
    LeastBusy,
    /// The callee that the caller was given before. Nor for this.
    Sticky,
}

impl InvocationPolicy {
    /// All policies.
    pub const ALL: [Self; 7] = [
        Self::Single,
        Self::First,
        Self::Last,
        Self::RoundRobin,
        Self::Random,
        Self::LeastBusy,
        Self::Sticky,
    ];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::First => "first",
            Self::Last => "last",
            Self::RoundRobin => "roundrobin",
            Self::Random => "random",
            Self::LeastBusy => "x_least_busy",
            Self::Sticky => "x_sticky",
        }
    }
}

/// The treatment of a call that is cancelled (WAMP advanced profile, "Call Canceling").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CancelMode {
    /// The caller gets its error at once; the callee is not told.
    Skip,
    /// The callee is interrupted, and its answer is the caller's.
    Kill,
    /// The caller gets its error at once, and the callee is interrupted.
    #[default]
    KillNoWait,
}

/// The sender of a message, if it is disclosed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosed<'a> {
    /// `caller`, `callee` or `publisher`.
    pub session: SessionId,
    /// `caller_authid` and so on.
    pub authid: Cow<'a, str>,
    /// `caller_authrole` and so on.
    pub authrole: Cow<'a, str>,
}

/// The subscribers that a publication may reach (WAMP advanced profile, "Subscriber Black- and Whitelisting"). `None`
/// means that the list was not given; an empty whitelist admits none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    /// Sessions that do not receive the event.
    pub exclude: Option<Vec<SessionId>>,
    /// Users whose sessions do not receive it.
    pub exclude_authid: Option<Vec<String>>,
    /// Roles whose sessions do not receive it.
    pub exclude_authrole: Option<Vec<String>>,
    /// The only sessions that receive it.
    pub eligible: Option<Vec<SessionId>>,
    /// The only users whose sessions receive it.
    pub eligible_authid: Option<Vec<String>>,
    /// The only roles whose sessions receive it.
    pub eligible_authrole: Option<Vec<String>>,
}

/// `PUBLISH.Options`.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishOptions {
    /// Whether the router answers with PUBLISHED or ERROR.
    pub acknowledge: bool,
    /// Whether the publisher itself is left out; the default is yes.
    pub exclude_me: bool,
    /// Whether subscribers may learn the publisher's identity; the router decides.
    pub disclose_me: Option<bool>,
    /// The event is retained for later subscribers of its topic.
    pub retain: bool,
    /// Time for which it is retained, in milliseconds. Not an option of the specification.
    pub retain_ms: Option<u64>,
    /// Present only when one of the six lists was given.
    pub receivers: Option<Box<Receivers>>,
    /// Further attributes that the router forwards: payload passthru mode's, and custom ones that begin with an underscore.
    pub passthru: Option<Box<Dict>>,
    /// The shard of a sharded subscription.
    pub sharding: Seldom<Sharding>,
}

impl PublishOptions {
    /// The publication is answered; all else is the default.
    pub fn acknowledged() -> Self {
        Self {
            acknowledge: true,
            ..Self::default()
        }
    }

    /// Whether the publication is neither answered nor kept, and has no lists, shard or further attributes. Most are.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        let is_sent_on = !(self.acknowledge | self.retain);
        is_sent_on & self.receivers.is_none() & self.passthru.is_none() & self.sharding.is_none()
    }
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self {
            acknowledge: false,
            exclude_me: true,
            disclose_me: None,
            retain: false,
            retain_ms: None,
            receivers: None,
            passthru: None,
            sharding: Seldom::NONE,
        }
    }
}

/// The trust level of a publication or call, in EVENT and INVOCATION (WAMP advanced profile, "Publication Trust
/// Levels", "Call Trust Levels"). It is passed on as an attribute, so that PUBLISH and CALL have it between nodes of
/// one realm; in those of a client it is refused.
pub const TRUSTLEVEL: &str = "trustlevel";

/// The option and the detail with which a link names the origin of a forwarded message.
pub const FORWARD_FOR: &str = "forward_for";

/// In SUBSCRIBE that each event is to be acknowledged, and in EVENT that this one is.
pub(crate) const ACKNOWLEDGED_DELIVERY: &str = "x_acknowledged_delivery";

/// `SUBSCRIBE.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubscribeOptions {
    pub match_policy: MatchPolicy,
    /// Requests the events that were retained before.
    pub get_retained: bool,
    /// The subscriber acknowledges each event. No option of the specification.
    pub acknowledged_delivery: bool,
    /// The shard that the subscriber is of (WAMP advanced profile, "Sharded Subscription").
    pub nkey: Seldom<str>,
    /// Whether there is a `forward_for`: a link of another router subscribes.
    pub is_forwarded: bool,
    pub unsupported: Option<Unsupported>,
}

impl SubscribeOptions {
    /// A subscription to a pattern; all else is the default.
    pub fn matching(match_policy: MatchPolicy) -> Self {
        Self {
            match_policy,
            ..Self::default()
        }
    }
}

/// `EVENT.Details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventDetails<'a> {
    /// Given to pattern-based subscriptions, which cannot know it.
    pub topic: Option<Cow<'a, str>>,
    pub publisher: Option<Disclosed<'a>>,
    /// The event was published before the subscription, and kept for it.
    pub retained: bool,
    /// The receiver is asked to acknowledge it (Autobahn's; not in the specification).
    pub acknowledged_delivery: bool,
    pub passthru: Option<Box<Dict>>,
}

/// `CALL.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOptions {
    /// Milliseconds; 0 means none.
    pub timeout_ms: u64,
    /// The caller understands progressive results.
    pub receive_progress: bool,
    /// More CALLs with the same request id follow (progressive call invocations).
    pub progress: bool,
    pub disclose_me: Option<bool>,
    pub passthru: Option<Box<Dict>>,
    pub sharding: Seldom<Sharding>,
}

/// The shard options of a request (WAMP advanced profile, "Sharded Registration", "Sharded Subscription").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharding {
    /// The resource that it is about, which has its shard.
    pub rkey: Option<Box<str>>,
    pub runmode: Option<Runmode>,
    pub unsupported: Option<Unsupported>,
}

impl Sharding {
    /// Approximate memory.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.rkey.as_deref().map_or(0, str::len)
    }
}

/// Which shards a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runmode {
    /// That of its resource.
    Partition,
    /// All of them. The specification has the word and no more.
    All,
}

impl Runmode {
    pub const ALL: [Self; 2] = [Self::Partition, Self::All];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::All => "all",
        }
    }
}

/// `CANCEL.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CancelOptions {
    pub mode: CancelMode,
}

/// `RESULT.Details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultDetails<'a> {
    pub progress: bool,
    /// The callee that answered, if it is disclosed (Crossbar.io's; not in the specification). Boxed, because it is
    /// rare and a RESULT is not.
    pub callee: Option<Box<Disclosed<'a>>>,
    pub passthru: Option<Box<Dict>>,
}

/// `REGISTER.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegisterOptions {
    pub match_policy: MatchPolicy,
    pub invoke: InvocationPolicy,
    /// The callee wants to keep the call's timeout itself.
    pub forward_timeout: bool,
    /// Invocations that the callee serves at a time; 0 means as many as come (Crossbar.io's; not
    /// in the specification).
    pub concurrency: u32,
    /// Callees that have registered the procedure before lose it (Crossbar.io's likewise).
    pub force_reregister: bool,
    /// The shard that the callee serves, by a name that it has again when it comes again. The specification has it in
    /// SUBSCRIBE, and does not say yet how callees name theirs.
    pub nkey: Seldom<str>,
    /// Whether there is a `forward_for`: a link of another router registers.
    pub is_forwarded: bool,
    pub unsupported: Option<Unsupported>,
}

/// The details of a registration or subscription that a router ended itself, in an unrequested UNREGISTERED or
/// UNSUBSCRIBED (WAMP advanced profile, "Registration Revocation", "Subscription Revocation").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked<'a, Id> {
    /// A [`crate::RegistrationId`] or [`crate::SubscriptionId`].
    pub id: Id,
    pub reason: Option<Cow<'a, str>>,
}

/// An option that other routers know and this one does not support: a request with it is refused, instead of being
/// served in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// Sharded subscriptions: the shard of a subscriber's node.
    Nkey,
    /// Sharded registrations and subscriptions: the shard that is meant.
    Rkey,
    /// Sharded registrations: whether one callee is called or one of each shard.
    Runmode,
}

impl Unsupported {
    const ALL: [Self; 3] = [Self::Nkey, Self::Rkey, Self::Runmode];

    /// The option of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|option| option.name() == name)
    }

    /// The key on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nkey => "nkey",
            Self::Rkey => "rkey",
            Self::Runmode => "runmode",
        }
    }
}

/// `INVOCATION.Details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvocationDetails<'a> {
    /// Given to pattern-based registrations, which cannot know it.
    pub procedure: Option<Cow<'a, str>>,
    pub caller: Option<Disclosed<'a>>,
    /// Milliseconds, given when the registration asked for `forward_timeout`; 0 means none.
    pub timeout_ms: u64,
    pub receive_progress: bool,
    pub progress: bool,
    pub passthru: Option<Box<Dict>>,
}

/// `INTERRUPT.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterruptOptions<'a> {
    pub mode: Option<CancelMode>,
    /// The error URI that the caller gets, for instance `wamp.error.canceled`.
    pub reason: Option<Cow<'a, str>>,
}

/// `YIELD.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YieldOptions {
    pub progress: bool,
    pub passthru: Option<Box<Dict>>,
}
