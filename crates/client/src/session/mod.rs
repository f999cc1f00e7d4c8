//! One WAMP session from HELLO to GOODBYE, without IO, clock or tasks.
//!
//! Inputs are the operations of an application and the router's messages. Every operation appends its message to an
//! [`Outgoing`]; one that cannot be sent changes nothing. Every message has at most one [`Effect`], which the caller
//! carries out before it passes the next one:
//!
//! ```text
//! hello ─▶ ┐                            ┌─▶ Joined
//! call ──▶ │                            ├─▶ Answered, Progress   (the waiter: W)
//! yield ─▶ ├─ Session ─▶ Outgoing       ├─▶ Invoked, Continued, Interrupted   (the running handler: I)
//!  …       │     ▲                      ├─▶ Event
//!          ┘     └──── message ─▶ handle┴─▶ Aborted, Left
//! ```
//!
//! The session stores the waiter for an answer (`W`) and the running handler of an invocation (`I`) and returns them;
//! it never uses them.

mod effect;
mod handle;
mod invocations;
mod listener_key;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use crosstie_wamp::{
    Dict, MatchPolicy, Message, RegistrationId, RequestId, SessionId, SubscriptionId, Value,
};

pub(crate) use effect::{Answer, Effect, Violation};
pub(crate) use listener_key::ListenerKey;

use crate::error::Unsendable;
use crate::outgoing::Outgoing;

/// See the module.
#[derive(Debug)]
pub(crate) struct Session<W, I> {
    phase: Phase,
    id: SessionId,
    last_request: u64,
    pending: HashMap<RequestId, Pending<W>>,
    registrations: HashMap<RegistrationId, ListenerKey>,
    subscriptions: HashMap<SubscriptionId, Topic>,
    invocations: HashMap<RequestId, Invocation<I>>,
    /// Invocations answered before their last chunk arrived: further chunks of these are not new invocations.
    answered_early: VecDeque<RequestId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// HELLO was not sent yet.
    Before,
    /// HELLO was sent.
    Joining,
    Joined,
    /// GOODBYE was sent.
    Leaving,
    Over,
}

/// A request that the router has not answered.
#[derive(Debug)]
struct Pending<W> {
    kind: Request,
    /// `None`: a request of the session itself, or the waiter is gone.
    waiter: Option<W>,
}

#[derive(Debug)]
enum Request {
    Call {
        /// More chunks may be sent.
        open: bool,
    },
    Publish,
    Register {
        key: ListenerKey,
        /// Not wanted any more: to be unregistered as soon as it is registered.
        abandoned: bool,
    },
    Unregister(RegistrationId),
    Subscribe {
        key: ListenerKey,
        topic: String,
        match_policy: MatchPolicy,
        abandoned: bool,
    },
    Unsubscribe(SubscriptionId),
}

/// The listeners of a subscription id: all of a session's listeners to a topic share it.
#[derive(Debug)]
struct Topic {
    topic: String,
    match_policy: MatchPolicy,
    /// Empty while an UNSUBSCRIBE is in flight.
    listeners: Vec<ListenerKey>,
}

#[derive(Debug)]
struct Invocation<I> {
    running: Option<I>,
    /// The caller has announced more chunks.
    open: bool,
}

/// Maximum number of remembered early answers. Only a router that ignores answers could have more invocations of one
/// callee pending.
const ANSWERED_EARLY_MAX: usize = 64;

impl<W, I> Session<W, I> {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Before,
            id: SessionId(0),
            last_request: 0,
            pending: HashMap::new(),
            registrations: HashMap::new(),
            subscriptions: HashMap::new(),
            invocations: HashMap::new(),
            answered_early: VecDeque::new(),
        }
    }

    /// Requests to join. `details` concern authentication; roles and features are added.
    pub(crate) fn hello(
        &mut self,
        realm: &str,
        mut details: Dict,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        details.push(("roles".to_owned(), roles()));
        out.push(&Message::Hello {
            realm: realm.into(),
            details,
        })?;
        self.phase = Phase::Joining;
        Ok(())
    }

    /// Answers a CHALLENGE.
    pub(crate) fn authenticate(
        &self,
        signature: &str,
        extra: Dict,
        out: &mut Outgoing,
    ) -> Result<(), Unsendable> {
        out.push(&Message::Authenticate {
            signature: signature.into(),
            extra,
        })
    }

    /// Ends the session; it is over with the router's GOODBYE.
    pub(crate) fn goodbye(&mut self, reason: &str, out: &mut Outgoing) -> Result<(), Unsendable> {
        if self.phase == Phase::Joined {
            out.push(&Message::Goodbye {
                details: Dict::new(),
                reason: reason.into(),
            })?;
            self.phase = Phase::Leaving;
        }
        Ok(())
    }

    /// The waiters for answers that cannot arrive any more.
    pub(crate) fn into_waiters(self) -> impl Iterator<Item = W> {
        let pending = self.pending.into_values();
        pending.filter_map(|pending| pending.waiter)
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }
}

/// `HELLO.Details.roles`: all features of this client.
fn roles() -> Value {
    const ROLES: [(&str, &[&str]); 4] = [
        (
            "caller",
            &[
                "caller_identification",
                "call_canceling",
                "call_timeout",
                "progressive_call_results",
                "progressive_call_invocations",
                "payload_passthru_mode",
            ],
        ),
        (
            "callee",
            &[
                "caller_identification",
                "call_canceling",
                "call_timeout",
                "pattern_based_registration",
                "shared_registration",
                "registration_revocation",
                "progressive_call_results",
                "progressive_call_invocations",
                "payload_passthru_mode",
            ],
        ),
        (
            "publisher",
            &[
                "publisher_identification",
                "publisher_exclusion",
                "subscriber_blackwhite_listing",
                "payload_passthru_mode",
            ],
        ),
        (
            "subscriber",
            &[
                "publisher_identification",
                "pattern_based_subscription",
                "subscription_revocation",
                "payload_passthru_mode",
            ],
        ),
    ];
    let dict = |name: &str, value| (name.to_owned(), Value::Dict(value));
    let roles = ROLES.iter().map(|(role, features)| {
        let features = features
            .iter()
            .map(|feature| ((*feature).to_owned(), Value::Bool(true)));
        dict(role, vec![dict("features", features.collect())])
    });
    Value::Dict(roles.collect())
}
