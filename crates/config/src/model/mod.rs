//! A checked configuration as plain values, with every default filled in.
//!
//! Nothing here can be wrong in itself: [`crate::parse`] is the only way from a file to these
//! types, and refuses what they cannot hold. Paths are as written; relative ones are relative
//! to the node's directory. A time that may be switched off is an `Option`.

mod amqp;
mod fabric;
mod joint;
mod outgoing;
mod replicated;
mod rlink;
mod transport;
mod web;
mod worker;

use std::collections::BTreeSet;
use std::time::Duration;

pub use serde_json::Value as Json;

pub use amqp::{
    Amqp, AmqpIdentity, AmqpLimits, AmqpMechanism, AmqpPermission, AmqpTransport, AmqpUser,
    AmqpVhost, DefinedArguments, DefinedBinding, DefinedExchange, DefinedQueue, Definitions,
    Skipped,
};
pub use crosstie_routing::{
    Allow, CancelAnswers, Disclose, DiscloseMe, EmptyEligible, OnLeave, Permission, RequestIdCheck,
    Role, RoleMatch,
};
pub use crosstie_wamp::uri::UriCheck;
pub use crosstie_wamp::{MatchPolicy, Serializer};
pub use fabric::{Fabric, NatsUrl};
pub use joint::{
    ExchangeToTopic, Joint, JointExchange, JointKind, JointTarget, ProcedureToTarget,
    TargetToProcedure, TopicToExchange,
};
pub use outgoing::{Forwarding, OutgoingBridge, OutgoingKind};
pub use replicated::{Elsewhere, Replicated};
pub use rlink::{RLink, RLinkAuth, RLinkEndpoint, RLinkRequest, RLinkTls, RLinkTransport};
pub use transport::{
    Admits, Allowed, Cookie, CookieStore, Deflate, Endpoint, ListenerLimits, Page, Ping, RawSocket,
    TcpEndpoint, Testee, TesteeKind, Tls, Transport, TransportKind, WebSocket, WebSocketOptions,
    WebSocketTestee,
};
pub use web::{
    Cgi, FileSource, HttpBridge, HttpBridgeOptions, LongPoll, RequestKey, ReverseProxy, Web,
    WebArchive, WebFiles, WebJson, WebOptions, WebPaths, WebProgram, WebPython, WebService,
    WebSocketReverseProxy, Webhook,
};
pub use worker::{
    ChildEnvironment, Component, ComponentKind, ContainerShutdown, ContainerWorker, GuestInput,
    GuestOutput, GuestWatch, GuestWorker, HostMonitorWorker, Inherit, NativeOptions, Restart,
    RouterWorker, TesteeWorker, Worker,
};

/// A node: its controller, its workers, and the bounds they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub controller: Controller,
    /// The workers to start, in order; those marked `disabled` are left out.
    pub workers: Vec<Worker>,
    pub limits: Limits,
    pub audit_log: Option<AuditLog>,
    pub admin: Option<Admin>,
    /// The environment variables that secrets of it come from.
    pub secret_variables: BTreeSet<String>,
}

/// A file of who was not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLog {
    /// Relative to the node's directory.
    pub file: String,
    pub file_bytes_max: usize,
}

/// The node's own name and when it ends by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// The host's name takes its place where there is none.
    pub id: Option<String>,
    pub title: Option<String>,
    pub shutdown: Vec<ShutdownTrigger>,
}

/// The events that end the node, beside a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownTrigger {
    ShutdownRequested,
    WorkerExit,
    WorkerExitWithError,
    LastWorkerExit,
}

/// One realm and who may do what in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Realm {
    pub name: String,
    pub uri_check: UriCheck,
    pub request_id_check: RequestIdCheck,
    pub disclose_me: DiscloseMe,
    pub call_timeout_unit: CallTimeoutUnit,
    pub lone_surrogates: LoneSurrogates,
    pub unreadable_values: UnreadableValues,
    pub empty_eligible: EmptyEligible,
    pub cancel_answers: CancelAnswers,
    pub on_leave: OnLeave,
    /// WELCOME says which node, worker and process serve the session.
    pub discloses_router: bool,
    /// The realm has the meta procedures and events.
    pub meta_api: bool,
    /// The management realm has them too.
    pub is_meta_api_bridged: bool,
    /// Whether the file says so, or it is the default.
    pub is_call_timeout_unit_given: bool,
    pub roles: Vec<Role>,
    pub limits: RealmLimits,
    /// None where the realm is this node's alone.
    pub fabric: Option<Fabric>,
    /// What is recorded of what is published.
    pub history: Vec<crosstie_routing::Recording>,
    /// Where that is recorded; in memory without.
    pub event_store: Option<EventStore>,
    /// For how long retained events are kept.
    pub retention: Vec<crosstie_routing::Retention>,
    /// Which calls wait for a callee.
    pub call_queues: Vec<crosstie_routing::CallQueue>,
    /// For how long its sessions outlive their connections.
    pub resumption: Option<crosstie_routing::Resumption>,
    /// To realms of other routers.
    pub rlinks: Vec<RLink>,
}

/// A file of a realm's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStore {
    pub path: String,
    /// Of all events in it; the oldest go beyond.
    pub bytes_max: u64,
    /// Of events that wait to be written; one more is not recorded.
    pub buffer_bytes_max: usize,
    /// Whether a commit waits for the disk.
    pub is_synced: bool,
    /// Whether it has retained events, too.
    pub keeps_retained: bool,
}

/// What a realm may have, where that is less than what the node lets any have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmLimits {
    pub sessions_max: Option<usize>,
    /// Of all sessions together, as the next two.
    pub subscriptions_max: Option<usize>,
    pub registrations_max: Option<usize>,
    pub calls_pending_max: Option<usize>,
    /// Of each session.
    pub each: crosstie_routing::RoleLimits,
}

/// The unit of a call's `timeout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTimeoutUnit {
    /// As the specification has it.
    #[default]
    Milliseconds,
    /// As Crossbar.io has it.
    Seconds,
}

/// The treatment of a JSON message with half of a surrogate pair in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoneSurrogates {
    /// Each half is replaced by U+FFFD.
    #[default]
    Replace,
    /// That message is refused.
    Refuse,
}

/// The treatment of a message whose arguments common WAMP libraries cannot decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnreadableValues {
    /// The sender gets an error.
    #[default]
    Refuse,
    /// Receivers get what their serializer can hold.
    Convert,
    /// Receivers with the sender's serializer get the arguments unread.
    Pass,
}

/// A listener for operators: plain HTTP, no WAMP.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    pub endpoint: Endpoint,
    pub pages: Vec<Page>,
    pub allowed_hosts: Allowed,
}

/// The node's bounds. What happens at each of them is said in the configuration reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub queue_bytes_max: usize,
    pub queue_bytes_total_max: usize,
    pub queue_stall_timeout: Duration,
    pub message_timeout: Duration,
    pub bytes_per_second_min: usize,
    pub depth_max: usize,
    pub handshake_timeout: Duration,
    pub request_head_bytes_max: usize,
    pub challenge_timeout: Duration,
    pub handshakes_pending_max: usize,
    /// Of the answer to wrong credentials; zero where none waits.
    pub login_delay_max: Duration,
    pub sessions_max: usize,
    /// Of one address; made from `sessions_max` and the process's descriptors where not said.
    pub address_connections_max: Option<usize>,
    /// Of each listener.
    pub page_connections_max: usize,
    pub calls_pending_max: usize,
    pub realm_subscriptions_max: usize,
    pub realm_registrations_max: usize,
    pub realm_calls_pending_max: usize,
    pub call_options_bytes_max: usize,
    pub kept_call_bytes_max: usize,
    pub kept_calls_bytes_max: usize,
    pub subscriptions_max: usize,
    pub registrations_max: usize,
    pub wildcard_shapes_max: usize,
    pub uri_bytes_max: usize,
    /// No such bound where not said.
    pub call_timeout_max: Option<Duration>,
    pub retained_events_max: usize,
    pub retained_bytes_max: usize,
    pub retained_event_bytes_max: usize,
    pub retained_sent_max: usize,
    pub history_bytes_max: usize,
    pub history_answer_bytes_max: usize,
    pub testaments_max: usize,
    pub testaments_bytes_max: usize,
    pub definitions_max: usize,
    pub definitions_bytes_max: usize,
    pub realm_definitions_max: usize,
    pub unacknowledged_events_max: usize,
    pub unacknowledged_bytes_max: usize,
    pub shutdown_timeout: Duration,
}
