//! `Options` and `Details` of the hot messages, read into fields.
//!
//! Attributes that a router must pass on without understanding them (payload passthru mode's
//! `ppt_*`, the older `enc_*`, and custom ones that begin with an underscore) are kept in
//! `passthru`; every other unknown attribute is skipped, as the specification asks.

use std::borrow::Cow;

use crate::{Dict, SessionId};

/// How a registered or subscribed URI is compared (WAMP advanced profile, "Pattern-based …").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchPolicy {
    /// The whole URI, octet for octet.
    #[default]
    Exact,
    /// The URI begins with the pattern.
    Prefix,
    /// Component by component; an empty component of the pattern matches any one component.
    Wildcard,
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
}

/// What happens to a call that is cancelled (WAMP advanced profile, "Call Canceling").
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

/// Who sent something, when it may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosed<'a> {
    /// `caller` or `publisher`.
    pub session: SessionId,
    /// `caller_authid` or `publisher_authid`.
    pub authid: Cow<'a, str>,
    /// `caller_authrole` or `publisher_authrole`.
    pub authrole: Cow<'a, str>,
}

/// Which subscribers a publication may reach (WAMP advanced profile, "Subscriber Black- and
/// Whitelisting"). `None` means that the list was not given; an empty whitelist reaches nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    pub exclude: Option<Vec<SessionId>>,
    pub exclude_authid: Option<Vec<String>>,
    pub exclude_authrole: Option<Vec<String>>,
    pub eligible: Option<Vec<SessionId>>,
    pub eligible_authid: Option<Vec<String>>,
    pub eligible_authrole: Option<Vec<String>>,
}

/// `PUBLISH.Options`.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishOptions {
    pub acknowledge: bool,
    /// Whether the publisher itself is left out; the default is yes.
    pub exclude_me: bool,
    pub disclose_me: Option<bool>,
    /// Present only when one of the six lists was given.
    pub receivers: Option<Box<Receivers>>,
    pub passthru: Option<Box<Dict>>,
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self {
            acknowledge: false,
            exclude_me: true,
            disclose_me: None,
            receivers: None,
            passthru: None,
        }
    }
}

/// `SUBSCRIBE.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubscribeOptions {
    pub match_policy: MatchPolicy,
}

/// `EVENT.Details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventDetails<'a> {
    /// Given to pattern-based subscriptions, which cannot know it.
    pub topic: Option<Cow<'a, str>>,
    pub publisher: Option<Disclosed<'a>>,
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
}

/// `CANCEL.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CancelOptions {
    pub mode: CancelMode,
}

/// `RESULT.Details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultDetails {
    pub progress: bool,
    pub passthru: Option<Box<Dict>>,
}

/// `REGISTER.Options`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegisterOptions {
    pub match_policy: MatchPolicy,
    pub invoke: InvocationPolicy,
    /// The callee wants to keep the call's timeout itself.
    pub forward_timeout: bool,
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
