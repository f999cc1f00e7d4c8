//! The configuration of a realm.

use crosstie_wamp::MatchPolicy;
use crosstie_wamp::uri::UriCheck;

use crate::{Limits, Role, RoleLimits};

/// The configuration of one realm.
#[derive(Clone, Debug)]
pub struct RealmConfig {
    /// The realm's URI, as in HELLO.
    pub name: String,
    /// Strictness of the URI check for topics and procedures.
    pub uri_check: UriCheck,
    /// Strictness of the request id check.
    pub request_id_check: RequestIdCheck,
    /// How `disclose_me` is treated.
    pub disclose_me: DiscloseMe,
    /// The unit of a CALL's `timeout`.
    pub call_timeout_unit: CallTimeoutUnit,
    /// The receivers of a publication with an empty whitelist.
    pub empty_eligible: EmptyEligible,
    /// Which CANCELs are answered.
    pub cancel_answers: CancelAnswers,
    /// The arguments of the meta event for a session that has left.
    pub on_leave: OnLeave,
    /// Whether the realm has the meta procedures and events.
    pub meta_api: bool,
    /// The initial roles; a session of another role cannot join.
    pub roles: Vec<Role>,
    pub limits: Limits,
    /// Bounds of each session, whatever its role. The number of sessions in the realm is bounded by `limits`.
    pub session_limits: RoleLimits,
    /// The topics and patterns whose publications are recorded, each once.
    pub history: Vec<Recording>,
    /// Whether recordings are kept in a store of the owner's ([`crate::Outbox::record`]), and not in the realm's
    /// memory.
    pub is_stored: bool,
    /// Whether that store also keeps retained events, beside the realm's memory ([`crate::Outbox::retain`]).
    pub stores_retained: bool,
    /// Expiry of retained events, each topic or pattern once. Of several that match the shortest counts.
    pub retention: Vec<Retention>,
    /// The registrations whose calls are queued if no callee is free, each procedure or pattern once.
    pub call_queues: Vec<CallQueue>,
    /// If set, sessions outlive their connections for a while.
    pub resumption: Option<Resumption>,
}

/// Bounds of session resumption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// Time that a session waits for its client, in milliseconds.
    pub window_ms: u64,
    /// Maximum number of waiting sessions. At one more the session that has waited longest is ended.
    pub sessions_max: usize,
}

/// Calls of matching registrations wait until a callee with a `concurrency` is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQueue {
    /// Compared with the URI or pattern of a registration; the best match counts.
    pub uri: String,
    pub match_policy: MatchPolicy,
    /// Maximum number of queued calls per registration. Another fails as it would without a queue.
    pub calls_max: usize,
}

/// Topics whose retained events expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub uri: String,
    pub match_policy: MatchPolicy,
    pub age_ms_max: u64,
}

/// A topic or pattern whose publications are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub uri: String,
    pub match_policy: MatchPolicy,
    /// Maximum number of events; the latest are kept.
    pub events_max: usize,
    /// Maximum age, in milliseconds; 0 means any age.
    pub age_ms_max: u64,
}

impl RealmConfig {
    /// A realm in which the role `anonymous` may do everything.
    pub fn open(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uri_check: UriCheck::default(),
            request_id_check: RequestIdCheck::default(),
            disclose_me: DiscloseMe::default(),
            call_timeout_unit: CallTimeoutUnit::default(),
            empty_eligible: EmptyEligible::default(),
            cancel_answers: CancelAnswers::default(),
            on_leave: OnLeave::default(),
            meta_api: true,
            roles: vec![Role::everything("anonymous")],
            limits: Limits::default(),
            session_limits: RoleLimits::default(),
            history: Vec::new(),
            is_stored: false,
            stores_retained: false,
            retention: Vec::new(),
            call_queues: Vec::new(),
            resumption: None,
        }
    }
}

/// The check of request ids (WAMP basic profile, "IDs": session scope, counted up from 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestIdCheck {
    /// Any id that is not the id of an open call of the same session. Clients with random ids, such as early ones, keep
    /// working.
    #[default]
    Loose,
    /// Each id follows the last, as the specification requires.
    Strict,
}

/// How `disclose_me: true` in PUBLISH and CALL is treated.
///
/// It is the sender's request about its own identity, so that it is granted by default. A permission's `disclose`
/// discloses the sender without a request, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscloseMe {
    /// The sender is disclosed.
    #[default]
    Allow,
    /// Answers `wamp.error.option_disallowed.disclose_me`, unless a permission discloses the sender anyway.
    Refuse,
}

/// The unit of the number in a CALL's `timeout`.
///
/// A timeout that the callee applies itself is forwarded unchanged: clients of a router that counts seconds expect
/// seconds on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTimeoutUnit {
    /// As in the specification.
    #[default]
    Milliseconds,
    /// As in Crossbar.io.
    Seconds,
}

impl CallTimeoutUnit {
    /// Converts to milliseconds; saturates.
    pub(crate) fn milliseconds(self, timeout: u64) -> u64 {
        match self {
            Self::Milliseconds => timeout,
            Self::Seconds => timeout.saturating_mul(1_000),
        }
    }
}

/// The meaning of `eligible: []` in a PUBLISH (likewise `eligible_authid` and `eligible_authrole`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyEligible {
    /// An empty list: no session receives the event.
    #[default]
    Nobody,
    /// Counts as absent, as in Crossbar.io: every subscriber receives the event.
    Everybody,
}

/// Whether a caller that cancels a call gets its ERROR. With the mode `kill` it always does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CancelAnswers {
    /// Answers unless the client forgets the call with its CANCEL, as Autobahn|JS does.
    #[default]
    ByClient,
    /// Answers always, as the specification requires.
    Always,
    /// Answers only in the mode `kill`.
    KillOnly,
}

/// The arguments of `wamp.session.on_leave` (WAMP advanced profile, "Session Meta Events").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeave {
    /// The session's id, its authid and its authrole.
    #[default]
    Specified,
    /// The session's id alone, as in Crossbar.io: a Python handler with one parameter fails with three arguments.
    Crossbar,
}
