//! A checked configuration as plain values, with every default filled in.
//!
//! [`crate::parse`] is the only way from a file to these types, and rejects invalid values. Paths are as written;
//! relative ones start at the node's directory. A time that may be disabled is an `Option`. `tables!` defines the
//! structs whose fields are plain keys ([`crate::catalogue`]).

mod amqp;
mod fabric;
mod joint;
mod mqtt;
mod outgoing;
mod process;
mod proxy_protocol;
mod replicated;
mod rlink;
mod transport;
mod values;
mod web;
mod worker;

use std::collections::BTreeSet;

pub use serde_json::Value as Json;

pub use crate::catalogue::amqp::{
    Amqp, AmqpIdentity, AmqpLimits, AmqpManagement, AmqpMechanism, AmqpPermission, AmqpTransport,
    AmqpUser, AmqpVhost, Cors,
};
pub use crate::catalogue::auth_backends::{AmqpAuthBackend, AmqpHttpBackend, AmqpOAuth2Backend};
pub use crate::catalogue::cookie::Cookie;
pub use crate::catalogue::endpoint::{NamedCertificate, SystemdEndpoint, TcpEndpoint, Tls};
pub use crate::catalogue::http_bridge::{HttpBridge, HttpBridgeOptions, Webhook};
pub use crate::catalogue::joint::{
    ExchangeToTopic, ProcedureToTarget, TargetToProcedure, TopicToExchange,
};
pub use crate::catalogue::mqtt::{MqttOptions, PayloadMapping};
pub use crate::catalogue::node::{AuditLog, Limits, ShutdownTrigger};
pub use crate::catalogue::options::{Deflate, WebSocketOptions};
pub use crate::catalogue::other_options::WebSocketTestee;
pub use crate::catalogue::otlp::Otlp;
pub use crate::catalogue::realm::{CallTimeoutUnit, LoneSurrogates, Realm, UnreadableValues};
pub use crate::catalogue::replicated::NodesTls;
pub use crate::catalogue::rlink::RLink;
pub use crate::catalogue::store::EventStore;
pub use crate::catalogue::transport::Page;
pub use crate::catalogue::web::WebOptions;
pub use crate::catalogue::web_files::{Cgi, WebArchive, WebFiles, WebJson};
pub use crate::catalogue::web_other::ReverseProxy;
pub use crate::catalogue::worker::Restart;
pub use crate::catalogue::worker::container::{ContainerShutdown, ContainerWorker};
pub use crate::catalogue::worker::guest::{GuestOutput, GuestWatch, GuestWorker};
pub use crate::catalogue::worker::router::RouterWorker;
pub use crate::catalogue::worker::small::HostMonitorWorker;
pub use amqp::{
    DefinedArguments, DefinedBinding, DefinedExchange, DefinedQueue, DefinedSetting, Definitions,
    Present, SettingKind, Skipped,
};
pub use crosstie_routing::{
    Allow, CancelAnswers, Disclose, DiscloseMe, EmptyEligible, OnLeave, Permission, RequestIdCheck,
    Role, RoleMatch,
};
pub use crosstie_wamp::uri::UriCheck;
pub use crosstie_wamp::{MatchPolicy, Serializer};
pub use fabric::{Fabric, NatsUrl};
pub use joint::{Joint, JointExchange, JointKind, JointTarget};
pub use mqtt::Mqtt;
pub use outgoing::{Forwarding, OutgoingBridge, OutgoingKind};
pub use process::{ChildEnvironment, Component, ComponentKind, GuestInput, Inherit, NativeOptions};
pub use proxy_protocol::ProxyProtocol;
pub use replicated::{Elsewhere, Replicated};
pub use rlink::{RLinkAuth, RLinkEndpoint, RLinkRequest, RLinkTls, RLinkTransport};
pub use transport::{
    Admits, Endpoint, ListenerLimits, RawSocket, Testee, TesteeKind, Transport, TransportKind,
    WebSocket,
};
pub use values::{Allowed, CookieStore, FileSource, Ping, RealmLimits, RequestKey};
pub use web::{LongPoll, Web, WebPaths, WebProgram, WebPython, WebService, WebSocketReverseProxy};
pub use worker::{TesteeWorker, Worker};

/// A node: its controller, its workers and their common limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub controller: Controller,
    /// The workers to start, in order, without disabled ones.
    pub workers: Vec<Worker>,
    pub limits: Limits,
    pub audit_log: Option<AuditLog>,
    pub admin: Option<Admin>,
    pub otlp: Option<Otlp>,
    /// The listener of the console, which leads to the management realm.
    pub console: Option<Transport>,
    /// The environment variables that supply secrets.
    pub secret_variables: BTreeSet<String>,
}

/// The node's name and the events that end it.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Without an id, the host's name.
    pub id: Option<String>,
    pub title: Option<String>,
    pub shutdown: Vec<ShutdownTrigger>,
}

/// A listener for operators: plain HTTP, no WAMP.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    pub endpoint: Endpoint,
    pub pages: Vec<Page>,
    pub allowed_hosts: Allowed,
}
