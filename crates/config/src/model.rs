//! What a checked configuration says, as plain values with every default filled in.
//!
//! Nothing here can be wrong in itself: [`crate::parse`] is the only way from a file to these
//! types, and refuses what they cannot hold. Paths are as written; relative ones are relative
//! to the node's directory. A time that may be switched off is an `Option`.

use std::net::IpAddr;
use std::time::Duration;

pub use serde_json::Value as Json;

pub use crosstie_routing::{Allow, Disclose, DiscloseMe, Permission, RequestIdCheck, Role};
pub use crosstie_wamp::uri::UriCheck;
pub use crosstie_wamp::{MatchPolicy, Serializer};

/// A node: its controller, its workers, and the bounds they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub controller: Controller,
    /// The workers to start, in order; those marked `disabled` are left out.
    pub workers: Vec<Worker>,
    pub limits: Limits,
    pub admin: Option<Admin>,
}

/// The node's own name and when it ends by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// The host's name takes its place where there is none.
    pub id: Option<String>,
    pub title: Option<String>,
    pub shutdown: Vec<ShutdownTrigger>,
}

/// What ends the node, beside a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownTrigger {
    ShutdownRequested,
    WorkerExit,
    WorkerExitWithError,
    LastWorkerExit,
}

/// One worker of the node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Worker {
    Router(RouterWorker),
    Container(ContainerWorker),
    Guest(GuestWorker),
    WebSocketTestee(TesteeWorker),
    HostMonitor(HostMonitorWorker),
}

/// An isolated router: realms, and the transports that lead to them.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterWorker {
    pub id: String,
    /// One per core where not said.
    pub threads: Option<usize>,
    /// One thread spins on its sockets instead of sleeping.
    pub busy_poll: bool,
    /// The router's threads run on these cores only; on any where empty.
    pub cpu_affinity: Vec<usize>,
    pub realms: Vec<Realm>,
    pub transports: Vec<Transport>,
    /// Hosted beside the router, in one child process for all of them.
    pub components: Vec<Component>,
    /// How that process runs.
    pub process: NativeOptions,
}

/// A child process that hosts Autobahn|Python components.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerWorker {
    pub id: String,
    pub components: Vec<Component>,
    pub process: NativeOptions,
    pub shutdown: ContainerShutdown,
    pub restart: Restart,
}

/// How a child process of the project's own kind runs.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeOptions {
    /// The name that process lists show.
    pub title: Option<String>,
    /// The interpreter; one that is found beside the node's own program, or on PATH, where not said.
    pub python: Option<String>,
    /// Put before the interpreter's own places; relative to the node's directory.
    pub pythonpath: Vec<String>,
    pub cpu_affinity: Vec<usize>,
    pub environment: ChildEnvironment,
    /// Given to components that ask their worker for it; null where not said.
    pub extra: Json,
}

/// The environment variables of a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildEnvironment {
    pub inherit: Inherit,
    /// Set, or set anew.
    pub variables: Vec<(String, String)>,
}

/// Which of the node's own variables a child sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    All,
    None,
    Only(Vec<String>),
}

/// When a container ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerShutdown {
    Manual,
    LastComponentStopped,
    AnyComponentStopped,
    AnyComponentFailed,
}

/// Whether a worker's process that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    Never,
    OnFailed,
    Always,
}

/// One Autobahn|Python component.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub id: String,
    pub kind: ComponentKind,
    pub realm: String,
    /// In a router worker: the role it has there.
    pub role: Option<String>,
    /// The checked object as it was written, variables replaced: what the host of components is
    /// given.
    pub definition: Json,
}

/// What a component is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentKind {
    Class { classname: String },
    Function,
}

/// Any executable, as a child process.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestWorker {
    pub id: String,
    /// A name to be looked for on PATH, or a path, relative to the node's directory.
    pub executable: String,
    pub arguments: Vec<String>,
    /// Relative to the node's directory, which it is where not said.
    pub workdir: Option<String>,
    pub environment: ChildEnvironment,
    pub cpu_affinity: Vec<usize>,
    pub stdin: GuestInput,
    pub stdout: GuestOutput,
    pub stderr: GuestOutput,
    pub watch: Option<GuestWatch>,
    pub restart: Restart,
}

/// What a guest finds at its standard input.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GuestInput {
    /// Nothing.
    Close,
    /// One value in JSON; then the end, unless it is to stay open.
    Json { value: Json, close: bool },
}

/// Where what a guest writes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuestOutput {
    /// It has nothing to write to.
    Close,
    /// The node's log.
    Log,
    /// Read and thrown away.
    Drop,
}

/// Directories whose changes restart a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestWatch {
    pub directories: Vec<String>,
}

/// A WebSocket echo as a worker of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct TesteeWorker {
    pub id: String,
    pub cpu_affinity: Vec<usize>,
    pub transport: Transport,
}

/// Reads what the machine is doing, and publishes it in the management realm.
#[derive(Clone, Debug, PartialEq)]
pub struct HostMonitorWorker {
    pub id: String,
    pub interval: Duration,
}

/// One realm and who may do what in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Realm {
    pub name: String,
    pub uri_check: UriCheck,
    pub request_id_check: RequestIdCheck,
    pub disclose_me: DiscloseMe,
    pub call_timeout_unit: CallTimeoutUnit,
    pub roles: Vec<Role>,
}

/// What the number in a call's `timeout` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTimeoutUnit {
    /// As the specification has it.
    #[default]
    Milliseconds,
    /// As Crossbar.io has it.
    Seconds,
}

impl Worker {
    pub fn id(&self) -> &str {
        match self {
            Self::Router(worker) => &worker.id,
            Self::Container(worker) => &worker.id,
            Self::Guest(worker) => &worker.id,
            Self::WebSocketTestee(worker) => &worker.id,
            Self::HostMonitor(worker) => &worker.id,
        }
    }

    /// The word for it in a configuration.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Router(_) => "router",
            Self::Container(_) => "container",
            Self::Guest(_) => "guest",
            Self::WebSocketTestee(_) => "websocket-testee",
            Self::HostMonitor(_) => "hostmonitor",
        }
    }
}

/// One listener and what it speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    pub id: String,
    pub endpoint: Endpoint,
    pub kind: TransportKind,
    /// Only `limits.sessions_max` bounds it where not said.
    pub connections_max: Option<usize>,
    /// What plain HTTP requests can see.
    pub pages: Vec<Page>,
}

/// What a listener speaks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TransportKind {
    RawSocket(RawSocket),
    /// WebSocket at any path.
    WebSocket(WebSocket),
    /// What a connection speaks is told from its first octets.
    Universal {
        rawsocket: Option<RawSocket>,
        /// By path, with its leading slash.
        websocket: Vec<(String, WebSocket)>,
    },
    /// An echo, for tests and measurements; it leads to no realm.
    Testee(Testee),
}

/// An echo.
#[derive(Clone, Debug, PartialEq)]
pub struct Testee {
    pub kind: TesteeKind,
    /// The log names each connection.
    pub debug: bool,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TesteeKind {
    /// Every octet.
    Stream,
    /// Every WebSocket message.
    WebSocket(WebSocketTestee),
}

/// How a testee speaks WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocketTestee {
    /// The address that people are told; the listener's own where not said.
    pub url: Option<String>,
    pub message_bytes_max: usize,
    /// Only `message_bytes_max` bounds a frame where not said.
    pub frame_bytes_max: Option<usize>,
    pub compression: Option<Deflate>,
    pub tcp_nodelay: bool,
    pub show_server_version: bool,
    pub echo_close_codereason: bool,
    pub fail_by_drop: bool,
}

/// An HTTP page that the router answers with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Page {
    /// `/health`
    Health,
    /// `/metrics`, in Prometheus form.
    Metrics,
    /// `/`, for people.
    Status,
}

/// Where a listener listens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Endpoint {
    Tcp(TcpEndpoint),
    Unix { path: String, backlog: u32 },
}

/// A TCP listener.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpEndpoint {
    pub interface: IpAddr,
    /// 0 takes any free port.
    pub port: u16,
    pub backlog: u32,
    /// `SO_REUSEPORT`: several processes listen on the port.
    pub shared: bool,
    /// `TCP_USER_TIMEOUT`: how long sent octets may stay unacknowledged.
    pub user_timeout: Option<Duration>,
    pub tls: Option<Tls>,
}

/// PEM files of a TLS listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    pub key: String,
    pub certificate: String,
    pub chain_certificates: Vec<String>,
}

/// How sessions on a transport prove who they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Auth {
    pub anonymous: Option<Anonymous>,
}

/// What a session that proves nothing becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Anonymous {
    pub role: String,
    /// The only realm such sessions may join; any where not said.
    pub realm: Option<String>,
    /// A fresh one per session where not said.
    pub authid: Option<String>,
}

/// WAMP over RawSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSocket {
    pub serializers: Vec<Serializer>,
    pub auth: Auth,
    pub message_bytes_max: usize,
    pub ping: Ping,
}

/// WAMP over WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocket {
    /// The address that clients are told; the listener's own where not said.
    pub url: Option<String>,
    pub serializers: Vec<Serializer>,
    pub auth: Auth,
    pub options: WebSocketOptions,
}

/// How the router speaks WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocketOptions {
    /// Patterns with `*`; no list lets every origin in.
    pub allowed_origins: Vec<String>,
    pub allow_null_origin: bool,
    pub message_bytes_max: usize,
    /// Only `message_bytes_max` bounds a frame where not said.
    pub frame_bytes_max: Option<usize>,
    /// `limits.handshake_timeout_ms` counts where not said.
    pub open_handshake_timeout: Option<Duration>,
    pub close_handshake_timeout: Duration,
    pub ping: Ping,
    pub compression: Option<Deflate>,
    pub tcp_nodelay: bool,
    pub require_websocket_subprotocol: bool,
    pub show_server_version: bool,
    pub echo_close_codereason: bool,
    pub fail_by_drop: bool,
}

/// How a silent peer is found to be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// How long a connection may be silent before it is pinged; no pings where not said.
    pub interval: Option<Duration>,
    /// How long the answer may take; a missing answer ends nothing where not said.
    pub timeout: Option<Duration>,
    pub payload_bytes: usize,
    /// Whether anything the peer sends counts as an answer.
    pub restart_on_any_traffic: bool,
}

/// permessage-deflate (RFC 7692), offered to clients that ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// The client is asked to compress each message for itself.
    pub request_no_context_takeover: bool,
    /// The client is asked for a window of at most 2^n octets.
    pub request_max_window_bits: Option<u8>,
    /// The router compresses each message for itself.
    pub no_context_takeover: bool,
    /// The router's window is at most 2^n octets.
    pub max_window_bits: Option<u8>,
    pub memory_level: Option<u8>,
}

/// A listener for operators: plain HTTP, no WAMP.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    pub endpoint: Endpoint,
    pub pages: Vec<Page>,
}

/// The node's bounds. What happens at each of them is said in the configuration reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub queue_bytes_max: usize,
    pub queue_bytes_total_max: usize,
    pub queue_stall_timeout: Duration,
    pub depth_max: usize,
    pub handshake_timeout: Duration,
    pub sessions_max: usize,
    pub calls_pending_max: usize,
    pub subscriptions_max: usize,
    pub registrations_max: usize,
    pub uri_bytes_max: usize,
    /// No such bound where not said.
    pub call_timeout_max: Option<Duration>,
    pub shutdown_timeout: Duration,
}
