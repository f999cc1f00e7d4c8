//! The bound on bytes of names, keys and arguments of definitions. The numbers of queues, exchanges and bindings are
//! bounded, but each may bring a frame full of arguments.

use super::{Caller, Topology};
use crate::Fault;

#[derive(Debug)]
pub(super) struct DefinitionBytes {
    pub(super) held: usize,
    pub(super) max: usize,
}

impl Topology {
    pub(crate) fn definition_bytes(&self) -> usize {
        self.bytes.held
    }

    /// Checks that there is room for a definition of that size; `what` names the action.
    pub(crate) fn check_room(
        &self,
        caller: &Caller<'_>,
        bytes: usize,
        what: impl FnOnce() -> String,
    ) -> Result<(), Fault> {
        if bytes <= self.bytes.max.saturating_sub(self.bytes.held) {
            return Ok(());
        }
        Err(caller.precondition_failed(format!(
            "cannot {}: limit of the bytes of all definitions in vhost '{}' ({}) is reached",
            what(),
            self.vhost,
            self.bytes.max
        )))
    }
}
