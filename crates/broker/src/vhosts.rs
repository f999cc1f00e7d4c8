//! The vhosts of a router's own store, which operators create and delete.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_front::seed::seed;
use crosstie_queues::{Position, Record, Vhost};
use crosstie_store::NotCommitted;

use super::broker::Broker;
use super::limits::{paging, vhost_config};
use super::operator_error::OperatorError;
use super::peer::Peer;
use super::stream_files;
use super::vhost::{Keeper, SharedVhost};
use super::vhost_changes::{Change, OnDone, Pending};

/// Maximum number of vhosts of a router; an operator cannot create another. A store has numbers for 65,535.
const VHOSTS_MAX: usize = 16_384;

/// Maximum bytes of a vhost's name: what fits into a method.
const NAME_BYTES_MAX: usize = 255;

/// The vhosts of the router's own store. Each is open to clients, or closed: it is being deleted, or the configuration has
/// it no more.
impl Broker {
    /// All that are there, by name.
    pub(super) fn local_vhosts(&self) -> Vec<Arc<SharedVhost>> {
        self.vhosts.read().clone()
    }

    /// The names of the vhosts that are open here, and of the replicated ones.
    pub fn vhost_names(&self) -> Vec<Arc<str>> {
        let mut vhosts = self.local_vhosts();
        vhosts.retain(|vhost| vhost.is_open());
        let own = vhosts.iter().map(|vhost| Arc::clone(vhost.name()));
        let replicated = self
            .replicated()
            .iter()
            .map(|found| Arc::clone(&found.name));
        own.chain(replicated).collect()
    }

    /// The one of that name, open or not.
    pub(super) fn find_local(&self, name: &str) -> Option<Arc<SharedVhost>> {
        let vhosts = self.vhosts.read();
        let place = vhosts.binary_search_by(|vhost| (**vhost.name()).cmp(name));
        place.ok().map(|place| Arc::clone(&vhosts[place]))
    }

    pub(super) fn insert_vhost(&self, vhost: &Arc<SharedVhost>) {
        let mut vhosts = self.vhosts.write();
        let place = vhosts.partition_point(|other| other.name < vhost.name);
        vhosts.insert(place, Arc::clone(vhost));
    }

    fn remove_vhost(&self, name: &str) -> Option<Arc<SharedVhost>> {
        let mut vhosts = self.vhosts.write();
        let place = vhosts.iter().position(|vhost| *vhost.name == *name)?;
        Some(vhosts.remove(place))
    }

    /// Whether vhosts may have streams, whose files are beside the store.
    pub(crate) fn has_store(&self) -> bool {
        self.making.store.is_some()
    }

    fn make_vhost(&self, name: &Arc<str>) -> Arc<SharedVhost> {
        self.share_vhost(name, self.empty_vhost(name))
    }

    /// A new vhost.
    pub(super) fn empty_vhost(&self, name: &Arc<str>) -> Vhost<Arc<Peer>> {
        let limits = self.limits();
        let mut config = vhost_config(name, &limits);
        config.paging = paging(&limits);
        config.has_streams = self.making.store.is_some();
        let mut vhost = Vhost::new(config, seed());
        vhost.journal().position = self.making.position_first();
        vhost
    }

    pub(super) fn share_vhost(&self, name: &Arc<str>, vhost: Vhost<Arc<Peer>>) -> Arc<SharedVhost> {
        let thread = self.making.next_thread();
        let (name, shared) = (Arc::clone(name), Arc::clone(&self.shared));
        let (clock, keeper) = (self.making.clock, Keeper::Local);
        Arc::new(SharedVhost::new(name, vhost, clock, shared, thread, keeper))
    }
}

impl Broker {
    /// Creates a vhost, which its later starts open without the configuration. `on_done` is called once the store has
    /// it, with whether it is new, or with the reason why there is none.
    pub fn add_vhost(
        self: &Arc<Self>,
        name: &str,
        on_done: impl FnOnce(Result<bool, OperatorError>) + Send + 'static,
    ) {
        let name: Arc<str> = name.into();
        match self.begin_creation(&name) {
            Err(error) => on_done(Err(error)),
            Ok(false) => on_done(Ok(false)),
            Ok(true) => self.submit_change(&name, Change::Create, Box::new(on_done)),
        }
    }

    /// Deletes a vhost with all that it has, and closes its connections with 320. `on_done` is called once the store has
    /// nothing of it. If the store cannot write, `on_done` is called with the reason, and the deletion is tried again.
    pub fn delete_vhost(
        self: &Arc<Self>,
        name: &str,
        on_done: impl FnOnce(Result<bool, OperatorError>) + Send + 'static,
    ) {
        let name: Arc<str> = name.into();
        match self.begin_deletion(&name) {
            Err(error) => on_done(Err(error)),
            Ok(()) => self.submit_change(&name, Change::Delete, Box::new(on_done)),
        }
    }

    /// Whether the vhost is to be created; reserves its name then.
    fn begin_creation(&self, name: &Arc<str>) -> Result<bool, OperatorError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            let why = format!("a vhost's name has 1 to {NAME_BYTES_MAX} bytes, and not {bytes}");
            return Err(OperatorError::Refused { why });
        }
        let mut changes = self.vhost_changes.lock();
        changes.check_idle(name)?;
        if changes.unopened.contains(name) {
            let why = format!(
                "the store has contents of vhost '{name}' from before the start: add it to the configuration and \
                 restart, or delete it first"
            );
            return Err(OperatorError::Refused { why });
        }
        let found = self.find_local(name);
        let is_open = found.as_ref().is_some_and(|vhost| vhost.is_open());
        if is_open || self.replicated_of(name).is_some() {
            return Ok(false);
        }
        if self.vhosts.read().len() + changes.pending.len() >= VHOSTS_MAX {
            let why = format!("there are {VHOSTS_MAX} vhosts, the maximum");
            return Err(OperatorError::Refused { why });
        }
        changes.reserve(name, Change::Create);
        Ok(true)
    }

    /// Reserves the names of vhosts that are to be created together. Returns those that are new.
    pub(crate) fn begin_creations(
        &self,
        names: &[Arc<str>],
    ) -> Result<Vec<Arc<str>>, OperatorError> {
        let mut begun = Vec::new();
        for name in names {
            let is_new = self.begin_creation(name);
            let prepared = is_new.and_then(|is_new| {
                if is_new {
                    begun.push(Arc::clone(name));
                    if self.find_local(name).is_none() {
                        self.set_left_streams_aside(name)?;
                    }
                }
                Ok(())
            });
            if let Err(error) = prepared {
                self.end_creations(&begun, false);
                return Err(error);
            }
        }
        Ok(begun)
    }

    /// Opens vhosts that are stored, or gives their names back.
    pub(crate) fn end_creations(&self, names: &[Arc<str>], are_stored: bool) {
        let mut changes = self.vhost_changes.lock();
        for name in names {
            // A router that is stopped has none.
            let is_pending = changes.pending.remove(name).is_some();
            if is_pending && are_stored {
                changes.unopened.remove(name);
                self.open_vhost(name);
                changes.created.insert(Arc::clone(name));
            }
        }
    }

    fn begin_deletion(&self, name: &Arc<str>) -> Result<(), OperatorError> {
        let mut changes = self.vhost_changes.lock();
        changes.check_idle(name)?;
        if changes.configured.contains(name) || self.replicated_of(name).is_some() {
            let why = format!(
                "vhost '{name}' is in the configuration: remove it there and reload, then delete what it has"
            );
            return Err(OperatorError::Refused { why });
        }
        if self.find_local(name).is_none() && !changes.unopened.contains(name) {
            let vhost = name.to_string();
            return Err(OperatorError::NoSuchVhost { vhost });
        }
        changes.reserve(name, Change::Delete);
        Ok(())
    }

    /// Submits the record of a change, whose outcome [`Self::settle_vhost`] reports.
    fn submit_change(self: &Arc<Self>, name: &Arc<str>, change: Change, on_done: OnDone) {
        let _context = self.making.keeper.enter();
        let found = self.find_local(name);
        if change == Change::Delete {
            if let Some(vhost) = &found {
                self.shut_vhost(vhost);
            }
            let store = self.making.store.as_ref();
            let marked = store.map(|store| stream_files::mark_deleted(store, name));
            if let Some(Err(error)) = marked {
                tracing::warn!(
                    "vhost '{name}': the directory of its streams cannot be marked: {error}"
                );
            }
        }
        // Held until the position is known: the store's thread waits with its report.
        let mut changes = self.vhost_changes.lock();
        if let Err(error) = changes.check_running(name) {
            drop(changes);
            return on_done(Err(error));
        }
        let record = match change {
            Change::Create => Record::VhostCreated,
            Change::Delete | Change::RemoveStreams => Record::VhostDeleted,
        };
        let position = match &found {
            Some(vhost) => vhost.submit_last(record, change == Change::Delete),
            None => {
                if change == Change::Create
                    && let Err(error) = self.set_left_streams_aside(name)
                {
                    changes.pending.remove(name);
                    drop(changes);
                    return on_done(Err(error));
                }
                let position = self.making.position_first();
                self.shared.submit(name, vec![record], position);
                position
            }
        };
        if let Some(pending) = changes.pending.get_mut(name) {
            pending.position = Some(position);
            pending.on_done = Some(on_done);
        }
    }

    /// The store has committed records of a vhost up to a position, or could not.
    pub(crate) fn settle_commit(
        self: &Arc<Self>,
        name: &str,
        position: Position,
        result: &Result<(), NotCommitted<'_>>,
    ) {
        let outcome = match result {
            Ok(()) => Ok(()),
            Err(NotCommitted { error, .. }) => Err(error.to_string()),
        };
        self.settle_vhost(name, position, outcome);
    }

    /// Concludes the creation or deletion of a vhost whose record the store has, or reports that it cannot write.
    fn settle_vhost(self: &Arc<Self>, name: &str, position: Position, result: Result<(), String>) {
        let mut changes = self.vhost_changes.lock();
        let Some(pending) = changes.pending.get_mut(name) else {
            return;
        };
        if pending
            .position
            .is_none_or(|of_record| of_record > position)
        {
            return;
        }
        let outcome = match (result, pending.change) {
            (Ok(()), Change::Delete) if self.remove_streams(name, pending) => return,
            (Ok(()), _) => Ok(true),
            (Err(error), change) => {
                let undone = match change {
                    Change::Create => "created once the store can write",
                    Change::Delete => "closed, and deleted once the store can write",
                    Change::RemoveStreams => "deleted once the files of its streams can be moved",
                };
                let why = format!("vhost '{name}' is {undone}: {error}");
                Err(OperatorError::NotStored { why })
            }
        };
        let on_done = pending.on_done.take();
        if outcome.is_ok()
            && let Some((name, pending)) = changes.pending.remove_entry(name)
        {
            changes.unopened.remove(&name);
            match pending.change {
                Change::Create => {
                    self.open_vhost(&name);
                    changes.created.insert(name);
                }
                Change::Delete | Change::RemoveStreams => {
                    changes.created.remove(&name);
                    self.forget_vhost(&name, position);
                }
            }
        }
        drop(changes);
        if let Some(on_done) = on_done {
            on_done(outcome);
        }
    }

    /// Has the files of a deleted vhost's streams removed, before another vhost can have its name. Returns whether that is
    /// reported.
    fn remove_streams(&self, name: &str, pending: &mut Pending) -> bool {
        let Some(Position(last)) = pending.position.filter(|_| self.making.store.is_some()) else {
            return false;
        };
        let position = Position(last + 1);
        if !self.shared.remove_streams(&name.into(), position) {
            return false;
        }
        (pending.change, pending.position) = (Change::RemoveStreams, Some(position));
        true
    }

    /// A vhost that the store has nothing of has no files: none of a vhost whose deletion was cut short, either.
    fn set_left_streams_aside(&self, name: &str) -> Result<(), OperatorError> {
        let Some(store) = &self.making.store else {
            return Ok(());
        };
        match stream_files::set_left_aside(store, name) {
            Ok(None) => {}
            Ok(Some(aside)) => tracing::warn!(
                "vhost '{name}': streams of a former vhost of that name are now in '{aside}'"
            ),
            Err(error) => {
                let why = format!(
                    "vhost '{name}': streams of a former vhost of that name cannot be moved: {error}"
                );
                return Err(OperatorError::Refused { why });
            }
        }
        Ok(())
    }

    /// Stops the store, and reports the changes that nothing completes any more. Returns whether all could be written.
    pub(crate) fn stop_changes(&self) -> bool {
        let is_all_written = self.shared.stop_committer();
        let mut changes = self.vhost_changes.lock();
        changes.is_stopped = true;
        let pending = mem::take(&mut changes.pending);
        let reports = pending.into_iter().filter_map(|(name, pending)| {
            let outcome = changes.check_running(&name);
            Some((pending.on_done?, outcome.map(|()| false)))
        });
        let reports: Vec<_> = reports.collect();
        drop(changes);
        for (on_done, outcome) in reports {
            on_done(outcome);
        }
        is_all_written
    }

    /// The streams' thread has handled what a deleted vhost had submitted up to a position, or could not.
    pub(crate) fn settle_streams(
        self: &Arc<Self>,
        name: &str,
        position: Position,
        result: Result<(), String>,
    ) {
        let pending = self
            .vhost_changes
            .lock()
            .pending
            .get(name)
            .map(|p| p.change);
        if pending == Some(Change::RemoveStreams) {
            self.settle_vhost(name, position, result);
        }
    }

    /// Opens a new vhost, or a closed one, that an operator has created.
    fn open_vhost(&self, name: &Arc<str>) {
        let vhost = self.find_local(name).unwrap_or_else(|| {
            let vhost = self.make_vhost(name);
            self.making.keeper.spawn(Arc::clone(&vhost).keep_time());
            self.insert_vhost(&vhost);
            vhost
        });
        vhost.open();
        tracing::info!("vhost '{name}' is created");
    }

    /// Forgets a vhost of which the store has nothing any more.
    fn forget_vhost(&self, name: &Arc<str>, position: Position) {
        let first = &self.making.position_first;
        first.fetch_max(position.0 + 1, Ordering::SeqCst);
        drop(self.remove_vhost(name));
        tracing::info!("vhost '{name}' is deleted");
    }

    /// Closes a vhost to clients, with RabbitMQ's text.
    pub(super) fn shut_vhost(&self, vhost: &Arc<SharedVhost>) {
        vhost.shut();
        self.close_clients_of(vhost);
        crosstie_transport::uncork();
    }
}
