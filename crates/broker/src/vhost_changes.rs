//! Creations and deletions of vhosts on their way to the store, and what a new vhost needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crosstie_config as model;
use crosstie_queues::Position;
use crosstie_transport::Workers;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::clock::Clock;
use super::operator_error::OperatorError;

/// The vhosts of a router that change.
#[derive(Default)]
pub(crate) struct Changes {
    /// Creations and deletions that the store has not confirmed.
    pub(super) pending: BTreeMap<Arc<str>, Pending>,
    /// Vhosts of the configuration.
    pub(super) configured: BTreeSet<Arc<str>>,
    /// Vhosts that operators have created.
    pub(super) created: BTreeSet<Arc<str>>,
    /// Vhosts that the store had at the start, and that nothing opens.
    pub(super) unopened: BTreeSet<Arc<str>>,
    /// The store takes no more changes.
    pub(super) is_stopped: bool,
}

/// Receives the outcome of a creation or a deletion.
pub(super) type OnDone = Box<dyn FnOnce(Result<bool, OperatorError>) + Send>;

pub(super) struct Pending {
    pub(super) change: Change,
    /// The record's position in the vhost's journal; `None` before it is submitted.
    pub(super) position: Option<Position>,
    /// `None` once it was called.
    pub(super) on_done: Option<OnDone>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Delete,
    /// The store has nothing of it, and the files of its streams are left.
    RemoveStreams,
}

/// What a new vhost needs.
pub(crate) struct Making {
    pub(super) clock: Clock,
    /// The thread of timers.
    pub(super) keeper: Handle,
    /// Threads that process the backlogs of vhosts, in turn.
    pub(super) serving: Vec<Handle>,
    pub(super) next: AtomicUsize,
    pub(super) limits: Mutex<model::AmqpLimits>,
    /// The path of the store, unless another node has it.
    pub(super) store: Option<PathBuf>,
    /// No journal begins before it: reports about a deleted vhost are not about a later one of its name.
    pub(super) position_first: AtomicU64,
}

impl Making {
    /// `store` is the path of the store, unless another node has it.
    pub(super) fn new(
        limits: &model::AmqpLimits,
        clock: Clock,
        workers: &Workers,
        store: Option<PathBuf>,
    ) -> Self {
        Self {
            clock,
            keeper: workers.keeper_handle(),
            serving: workers.serving_handles(),
            next: AtomicUsize::new(0),
            limits: Mutex::new(limits.clone()),
            store,
            // Reports have later positions.
            position_first: AtomicU64::new(1),
        }
    }

    /// The thread of the next vhost's backlog.
    pub(super) fn next_thread(&self) -> Handle {
        let nth = self.next.fetch_add(1, Ordering::Relaxed) % self.serving.len().max(1);
        self.serving.get(nth).unwrap_or(&self.keeper).clone()
    }

    pub(super) fn position_first(&self) -> Position {
        Position(self.position_first.load(Ordering::SeqCst))
    }
}

impl Changes {
    pub(super) fn check_idle(&self, name: &Arc<str>) -> Result<(), OperatorError> {
        self.check_running(name)?;
        let Some(pending) = self.pending.get(name) else {
            return Ok(());
        };
        let change = match pending.change {
            Change::Create => "created",
            Change::Delete | Change::RemoveStreams => "deleted",
        };
        let why = format!("vhost '{name}' is being {change}");
        Err(OperatorError::NotStored { why })
    }

    pub(super) fn check_running(&self, name: &str) -> Result<(), OperatorError> {
        if self.is_stopped {
            let why = format!("vhost '{name}': the router is being stopped");
            return Err(OperatorError::NotStored { why });
        }
        Ok(())
    }

    pub(super) fn reserve(&mut self, name: &Arc<str>, change: Change) {
        let pending = Pending {
            change,
            position: None,
            on_done: None,
        };
        self.pending.insert(Arc::clone(name), pending);
    }
}
