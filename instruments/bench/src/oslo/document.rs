//! The figures of the source document: oslo.messaging's RPC over RabbitMQ on virtual machines, messages per second by
//! its own clock, the minimum of five runs of 100.

use std::time::Duration;

use super::case::Operation;
use super::topology::Topology;

/// The hardware of the document's figures.
pub(super) const HARDWARE: &str = "virtual machines of 1 core / of 8 cores, RabbitMQ";

/// Its two figures: with one core, with eight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) one_core: f64,
    pub(super) eight_cores: f64,
}

/// Its figure for an operation; `None` if it has none. Its machines are 0.2 to 0.3 ms apart without any delay.
pub(super) fn figure(topology: Topology, operation: Operation, delay: Duration) -> Option<Figure> {
    use Operation::{Call, Cast};
    use Topology::{RemoteClient, RemoteServer, Together};
    let (one_core, eight_cores) = match (topology, operation, delay.as_millis()) {
        (Together, Call, 0) => (96.0, 224.0),
        (Together, Cast, 0) => (594.0, 1_120.0),
        (RemoteClient, Call, 0) => (109.0, 219.0),
        (RemoteClient, Cast, 0) => (512.0, 1_063.0),
        (RemoteClient, Call, 10) => (48.0, 62.0),
        (RemoteClient, Cast, 10) => (76.0, 85.0),
        (RemoteClient, Call, 50) => (15.0, 16.0),
        (RemoteClient, Cast, 50) => (18.0, 18.0),
        (RemoteServer, Call, 0) => (89.0, 216.0),
        (RemoteServer, Cast, 0) => (684.0, 1_130.0),
        (RemoteServer, Call, 10) => (37.0, 37.0),
        (RemoteServer, Cast, 10) => (689.0, 689.0),
        (RemoteServer, Call, 50) => (14.0, 15.0),
        (RemoteServer, Cast, 50) => (1_168.0, 1_171.0),
        (RemoteServer, Call, 100) => (8.5, 8.7),
        (RemoteServer, Cast, 100) => (1_093.0, 1_205.0),
        _ => return None,
    };
    Some(Figure {
        one_core,
        eight_cores,
    })
}
