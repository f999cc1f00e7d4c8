//! Workers of every kind, and how their processes run.

use super::{Amqp, GuestWatch, HostMonitorWorker, Joint, Json, Realm, Transport};

/// One worker of the node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Worker {
    Router(Box<RouterWorker>),
    Container(ContainerWorker),
    Guest(GuestWorker),
    WebSocketTestee(Box<TesteeWorker>),
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
    /// Where a transport or a key asks for it.
    pub amqp: Option<Amqp>,
    /// Between the realms and the vhosts.
    pub joints: Vec<Joint>,
    /// Hosted beside the router, in one child process for all of them.
    pub components: Vec<Component>,
    /// Components that the router is itself.
    pub bridges: Vec<super::OutgoingBridge>,
    /// Stops send GOODBYE, instead of closing connections so that clients come back.
    pub says_goodbye: bool,
    /// One of `components` that does not start with the node ends the node.
    pub needs_components: bool,
    /// How that process runs.
    pub process: NativeOptions,
}

/// A child process that hosts Autobahn|Python components.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerWorker {
    pub id: String,
    pub components: Vec<Component>,
    pub process: NativeOptions,
    /// One of `components` that does not start with the node ends the node.
    pub needs_components: bool,
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
    /// Whether components have a dictionary between them.
    pub exposes_shared: bool,
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
    /// All but those that the configuration takes secrets from.
    AllButSecrets,
    /// Those that programs need to run at all; none that may hold a secret.
    Usual,
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

/// The code of a component.
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
    /// A name to be looked for on PATH, or a path, relative to `workdir`.
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

/// The standard input of a guest.
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

/// A WebSocket echo as a worker of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct TesteeWorker {
    pub id: String,
    pub cpu_affinity: Vec<usize>,
    pub transport: Transport,
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
