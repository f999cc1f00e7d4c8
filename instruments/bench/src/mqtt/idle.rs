//! Clients that connect and then do nothing, and the broker's memory for each: the difference between two numbers of
//! them.

use serde::{Deserialize, Serialize};

use super::order::version;
use super::url::Broker;
use super::wire::{Dial, Session};
use crate::load::Found;
use crate::process::{Driver, WorkerError, descriptors, instruction, say};

/// So many are there before the rest, so that the allocations of the first ones are in neither number.
pub(super) const FIRST: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdleOrder {
    pub(super) broker: Broker,
    pub(super) is_v5: bool,
    pub(super) name: String,
}

/// Opens clients on command, and holds them until the end.
pub(super) fn work(order: &IdleOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let dial = Dial::new(&order.broker, version(order.is_v5))?;
    let mut clients = Vec::new();
    say(&Driver::<Found>::Ready);
    while let Some(count) = instruction::<usize>()? {
        while clients.len() < count {
            clients.push(dial.open(Session {
                client_id: &format!("{}-{}", order.name, clients.len()),
                clean_start: true,
                is_kept: false,
            })?);
        }
        say(&Driver::Found(Found {
            count: clients.len() as u64,
            ..Found::default()
        }));
    }
    Ok(())
}
