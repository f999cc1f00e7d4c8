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

pub use serde_json::Value as Json;

pub use crate::catalogue::amqp::{AmqpIdentity, AmqpLimits, AmqpPermission, AmqpTransport};
pub use crate::catalogue::cookie::Cookie;
pub use crate::catalogue::endpoint::Tls;
pub use crate::catalogue::http_bridge::{HttpBridgeOptions, Webhook};
pub use crate::catalogue::joint::{
    ExchangeToTopic, ProcedureToTarget, TargetToProcedure, TopicToExchange,
};
pub use crate::catalogue::node::{AuditLog, Limits};
pub use crate::catalogue::options::{Deflate, WebSocketOptions};
pub use crate::catalogue::other_options::WebSocketTestee;
pub use crate::catalogue::realm::Realm;
pub use crate::catalogue::rlink::RLink;
pub use crate::catalogue::store::EventStore;
pub use crate::catalogue::web::WebOptions;
pub use crate::catalogue::web_files::{Cgi, WebArchive, WebFiles, WebJson};
pub use crate::catalogue::web_other::ReverseProxy;
pub use crate::catalogue::worker::guest::GuestWatch;
pub use crate::catalogue::worker::small::HostMonitorWorker;
pub use amqp::{
    Amqp, AmqpMechanism, AmqpUser, AmqpVhost, DefinedArguments, DefinedBinding, DefinedExchange,
    DefinedQueue, Definitions, Skipped,
};
pub use crosstie_routing::{
    Allow, CancelAnswers, Disclose, DiscloseMe, EmptyEligible, OnLeave, Permission, RequestIdCheck,
    Role, RoleMatch,
};
pub use crosstie_wamp::uri::UriCheck;
pub use crosstie_wamp::{MatchPolicy, Serializer};
pub use fabric::{Fabric, NatsUrl};
pub use joint::{Joint, JointExchange, JointKind, JointTarget};
pub use outgoing::{Forwarding, OutgoingBridge, OutgoingKind};
pub use replicated::{Elsewhere, Replicated};
pub use rlink::{RLinkAuth, RLinkEndpoint, RLinkRequest, RLinkTls, RLinkTransport};
pub use transport::{
    Admits, Allowed, CookieStore, Endpoint, ListenerLimits, Page, Ping, RawSocket, TcpEndpoint,
    Testee, TesteeKind, Transport, TransportKind, WebSocket,
};
pub use web::{
    FileSource, HttpBridge, LongPoll, RequestKey, Web, WebPaths, WebProgram, WebPython, WebService,
    WebSocketReverseProxy,
};
pub use worker::{
    ChildEnvironment, Component, ComponentKind, ContainerShutdown, ContainerWorker, GuestInput,
    GuestOutput, GuestWorker, Inherit, NativeOptions, Restart, RouterWorker, TesteeWorker, Worker,
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
