//! One WAMP realm: sessions, broker and dealer, as a state machine without IO, clock or threads.
//!
//! # How to drive it
//!
//! 1. [`Realm::join`] a session that has been authenticated, with a handle that means something to the caller (a
//!    connection; a letter in a test). [`Realm::keep_authextra`] if its authentication has further details, and
//!    [`Realm::welcomed`] once it has been sent WELCOME, which publishes its `on_join`.
//! 2. [`Realm::handle`] each message that the session sends, in order. A [`Violation`] means: ABORT that session and
//!    leave. [`Realm::decline`] it instead if its owner knows that it must not be routed. If the realm has called
//!    [`Outbox::ask`], the message is not handled yet: [`Realm::handle_judged`] the same message with the answer,
//!    before any other of that session.
//! 3. [`Realm::leave`] when it is gone, for whatever reason.
//! 4. [`Realm::handle_timeout`] when [`Realm::next_timeout`] has come.
//! 5. [`Realm::work`] while [`Realm::has_backlog`], in turns between which other sessions have theirs: the remains of
//!    sessions may be more work than one input should do.
//! 6. [`Realm::start_role`], [`Realm::stop_role`] and [`Realm::end`] when the operator requests it; after the last two
//!    [`Realm::take_out`] until it is done, in turns as well. It returns the handles of sessions that are out of the
//!    realm, for their owner to close. A stop that waits first takes [`Realm::open_calls`], then calls
//!    [`Realm::forget_answered`] until none is left or the time is over, and [`Realm::end_open`] for the rest.
//!
//! 7. If the realm exists on other nodes, too, [`Realm::join_fabric`] first. Then [`Realm::handle_publication`] for
//!    each event that comes from them, and [`Realm::handle_in_force`] when they know an interest of
//!    [`Outbox::interest`], or [`Realm::handle_denied`] if the node may not receive it; [`Realm::give_up_neighbour`]
//!    when a node is silent, and [`Realm::handle_death`] when it must have died.
//!
//! 8. With [`RealmConfig::is_stored`], [`Realm::handle_stored`] and [`Realm::handle_recalled`] answer
//!    [`Outbox::acknowledge`] and [`Outbox::recall`]. With [`RealmConfig::stores_retained`],
//!    [`Realm::restore_retained`] before any session joins.
//!
//! Each of them writes the messages for other sessions to an [`Outbox`] before it returns. An outbox may refuse; the
//! realm then keeps WAMP's guarantees (an event is dropped, a call fails at once, a caller that cannot take its result
//! is closed).
//!
//! HELLO, AUTHENTICATE, GOODBYE and ABORT are conversations between a session's owner and its peer; the realm only
//! learns that a session joined or left.
//!
//! # Outside its knowledge
//!
//! Sockets, serializers, the time of day and chance: the time is an argument, and everything random follows from the
//! seed given to [`Realm::new`]. The same inputs give the same outputs, byte for byte.

mod across;
mod administration;
mod authz;
mod broker;
mod call_table;
mod companions;
mod config;
mod context;
mod counts;
mod custody;
mod dealer;
mod decline;
mod deliveries;
mod detached;
mod dispatch;
mod entry_view;
mod events;
mod fault;
mod features;
mod forgetful;
mod forward_for;
mod handover;
mod identity;
mod join_error;
mod keys;
mod lent;
mod limits;
mod listener_limits;
mod meta;
mod neighbours;
mod nodes;
mod open_calls;
mod outbox;
mod overlap;
mod party;
mod passed_on;
mod pattern;
mod random;
mod rare_set;
mod realm;
mod recall;
mod receivers;
mod recorded;
mod reflection;
mod rendezvous;
mod resumption;
mod revocation;
mod room;
mod session;
mod session_set;
mod testaments;
mod time;
mod trustlevels;
mod weight;
mod wildcard;

pub use across::{
    Called, Crossing, EndTold, Journey, LISTED_MAX, Listed, Locality, NeighbourKey, Offer, Pattern,
    Position, Publication, Resource, RetainedAs, Stretch, Uncrossed,
};
pub use administration::SessionRemoval;
pub use authz::{
    Action, Allow, Authorizer, CacheOptions, CacheScope, Decision, Decisions, Disclose, Permission,
    Question, RefusalCause, Role, RoleLimit, RoleLimits, RoleMatch, SlowConsumer, Verdict,
};
pub use broker::asking;
pub use config::{
    CallQueue, CallTimeoutUnit, CancelAnswers, DiscloseMe, EmptyEligible, OnLeave, RealmConfig,
    Recording, RequestIdCheck, Resumption, Retention,
};
pub use counts::RealmCounts;
pub use dealer::{Lease, OpenCalls};
pub use entry_view::EntryView;
pub use fault::{Violation, error};
pub use features::{ClientFeature, ClientFeatures, RealmFeatures, RolesMissing, router_roles};
pub use identity::{Identity, Login, SessionKey};
pub use join_error::JoinError;
pub use limits::Limits;
pub use meta::meta_procedures;
pub use outbox::{
    Acknowledgement, CloseReason, Denial, LoggedOut, Note, Outbox, Refused, Unrecorded,
};
pub use passed_on::{PassedOn, RetainedPage, RetainedQuery};
pub use realm::{Realm, SessionView};
pub use recall::{Recall, Recalled};
pub use recorded::{Recorded, RetainedEvent};
pub use revocation::Revocation;
pub use time::Time;
pub use wildcard::WILDCARD_COMPONENTS_MAX;
