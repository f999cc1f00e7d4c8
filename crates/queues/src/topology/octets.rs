//! How many octets the names, keys and arguments of definitions come to. Numbers of queues,
//! exchanges and bindings are bounded, but each may bring a frame full of arguments.

use super::{Caller, Topology};
use crate::Fault;

#[derive(Debug)]
pub(super) struct DefinitionOctets {
    pub(super) held: usize,
    pub(super) max: usize,
}

impl Topology {
    pub(crate) fn definition_bytes(&self) -> usize {
        self.octets.held
    }

    /// That a definition of so many octets may come; `what` would be done with it.
    pub(crate) fn check_room(
        &self,
        caller: &Caller<'_>,
        bytes: usize,
        what: impl FnOnce() -> String,
    ) -> Result<(), Fault> {
        if bytes <= self.octets.max.saturating_sub(self.octets.held) {
            return Ok(());
        }
        Err(caller.precondition_failed(format!(
            "cannot {}: limit of the octets of all definitions in vhost '{}' ({}) is reached",
            what(),
            self.vhost,
            self.octets.max
        )))
    }
}
