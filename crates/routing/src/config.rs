//! How a realm is set up.

use crosstie_wamp::MatchPolicy;
use crosstie_wamp::uri::UriCheck;

use crate::{Limits, Role, RoleLimits};

/// Everything that distinguishes one realm from another.
#[derive(Clone, Debug)]
pub struct RealmConfig {
    /// The realm's URI, as in HELLO.
    pub name: String,
    /// How much of the URI grammar is demanded of topics and procedures.
    pub uri_check: UriCheck,
    /// How much of the request id rules is demanded.
    pub request_id_check: RequestIdCheck,
    /// What is done with `disclose_me`.
    pub disclose_me: DiscloseMe,
    /// What the number in a CALL's `timeout` counts.
    pub call_timeout_unit: CallTimeoutUnit,
    /// Whom an empty whitelist of a publication reaches.
    pub empty_eligible: EmptyEligible,
    /// Which CANCELs are answered.
    pub cancel_answers: CancelAnswers,
    /// What is told of a session that has left.
    pub on_leave: OnLeave,
    /// Whether the realm has the meta procedures and events.
    pub meta_api: bool,
    /// The roles that sessions can have at first; a session of another role cannot join.
    pub roles: Vec<Role>,
    pub limits: Limits,
    /// What holds for each session, whatever its role, beside those. Sessions of the realm are counted by `limits`.
    pub session_limits: RoleLimits,
    /// What is recorded of what is published, each topic or pattern once.
    pub history: Vec<Recording>,
    /// That is for a store of the owner's ([`crate::Outbox::record`]), and not for the realm's memory.
    pub is_stored: bool,
    /// That store has retained events, too, beside the realm's memory ([`crate::Outbox::retain`]).
    pub stores_retained: bool,
    /// For how long retained events are kept, each topic or pattern once; of several that match the shortest counts.
    pub retention: Vec<Retention>,
    /// For which registrations calls wait that find no callee free, each procedure or pattern once.
    pub call_queues: Vec<CallQueue>,
    /// For how long sessions outlive their connections, if they do.
    pub resumption: Option<Resumption>,
}

/// Sessions may be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// For so long a session waits for its client.
    pub window_ms: u64,
    /// Sessions that wait at a time; at one more the one that has waited longest is given up.
    pub sessions_max: usize,
}

/// Calls of what is registered under a URI or pattern wait until a callee with a `concurrency` is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQueue {
    /// What the URI or pattern of a registration is compared with; the best match counts.
    pub uri: String,
    pub match_policy: MatchPolicy,
    /// At each registration; one more is the error that it would be without a queue.
    pub calls_max: usize,
}

/// Topics whose retained events end by themselves.
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
    /// The last ones.
    pub events_max: usize,
    /// Not older than this, in milliseconds; 0 is any age.
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

/// How request ids are judged (WAMP basic profile, "IDs": session scope, counted up from 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestIdCheck {
    /// Any id that is not the id of an open call of the same session. Clients that draw their
    /// ids at random, as early ones did, keep working.
    #[default]
    Loose,
    /// Each id is the one after the last, as the specification says.
    Strict,
}

/// What happens to `disclose_me: true` in PUBLISH and CALL.
///
/// It is the sender's own wish about its own identity, so that it is granted unless the realm
/// says otherwise. A permission's `disclose` discloses whether the sender wished it or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscloseMe {
    /// The sender is disclosed.
    #[default]
    Allow,
    /// `wamp.error.option_disallowed.disclose_me`, unless a permission discloses the sender anyway.
    Refuse,
}

/// What the number in a CALL's `timeout` counts.
///
/// A timeout that the callee is left to keep is forwarded as the caller wrote it: clients of a
/// router that counts seconds expect seconds on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTimeoutUnit {
    /// As the specification has it.
    #[default]
    Milliseconds,
    /// As Crossbar.io has it.
    Seconds,
}

impl CallTimeoutUnit {
    /// That many of the unit in milliseconds; a time too long to be counted is the longest.
    pub(crate) fn milliseconds(self, timeout: u64) -> u64 {
        match self {
            Self::Milliseconds => timeout,
            Self::Seconds => timeout.saturating_mul(1_000),
        }
    }
}

/// What `eligible: []` means in a PUBLISH (likewise `eligible_authid` and `eligible_authrole`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyEligible {
    /// A list on which nobody is: the event reaches nobody.
    #[default]
    Nobody,
    /// As good as no list, as Crossbar.io takes it: the event reaches everybody.
    Everybody,
}

/// Whether a caller that cancels a call gets its ERROR. With the mode `kill` it always does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CancelAnswers {
    /// Unless the client is one that forgets the call with its CANCEL, as Autobahn|JS does.
    #[default]
    ByClient,
    /// As the specification says.
    Always,
    /// No client gets one in another mode.
    KillOnly,
}

/// What `wamp.session.on_leave` says (WAMP advanced profile, "Session Meta Events").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeave {
    /// The session's id, its authid and its authrole.
    #[default]
    Specified,
    /// The session's id alone, as on Crossbar.io: a handler in Python that takes one argument fails with three.
    Crossbar,
}
