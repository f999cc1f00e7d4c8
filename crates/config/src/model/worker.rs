//! Workers of every kind, and their processes.

use super::{ContainerWorker, GuestWorker, HostMonitorWorker, RouterWorker, Transport};

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

    /// The worker's `type`.
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
