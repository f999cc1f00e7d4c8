//! Clients that connect and disconnect: TCP, TLS if the broker is reached by it, CONNECT to CONNACK, DISCONNECT until
//! the broker closes.

use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::order::version;
use super::url::Broker;
use super::wire::{Dial, Session};
use crate::load::{Latencies, in_windows, of_all};
use crate::process::WorkerError;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionsOrder {
    pub(super) broker: Broker,
    pub(super) is_v5: bool,
    /// The beginning of client ids.
    pub(super) name: String,
    /// How many connect at a time, one connection after the other.
    pub(super) outstanding: usize,
}

pub(super) fn work(order: &ConnectionsOrder) -> Result<(), WorkerError> {
    let dial = &Dial::new(&order.broker, version(order.is_v5))?;
    in_windows(|_, end| {
        thread::scope(|scope| {
            let clients = (0..order.outstanding)
                .map(|at| scope.spawn(move || connect(dial, &format!("{}-{at}", order.name), end)));
            let clients: Vec<_> = clients.collect();
            of_all(clients)
        })
    })
}

/// The time of a connection is until CONNACK.
fn connect(dial: &Dial, client_id: &str, end: Instant) -> Result<Latencies, WorkerError> {
    let mut times = Latencies::default();
    while Instant::now() < end {
        let begun = Instant::now();
        let wire = dial.open(Session {
            client_id,
            clean_start: true,
            is_kept: false,
        })?;
        times.record(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        wire.leave()?;
    }
    Ok(times)
}
