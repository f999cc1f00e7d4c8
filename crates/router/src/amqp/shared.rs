//! The state that all vhosts of a router share: the store's thread, and the bounds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crosstie_queues::{Position, Record};
use crosstie_store::{Backup, Batch, Committer, CommitterConfig, DiskLow, Store, StoreError};
use parking_lot::{Mutex, RwLock};

use super::flow::FlowControl;
use super::incomplete::Incomplete;
use super::status::Alarm;

/// How a backup went.
pub(crate) type BackedUp = Result<Backup, StoreError>;

/// The store's thread, the flow control, and what is in no queue yet.
pub(crate) struct Shared {
    pub(crate) flow: FlowControl,
    pub(crate) incomplete: Incomplete,
    /// None before it is started and after it was stopped; looked at only for what is to survive.
    committer: RwLock<Option<Committer>>,
    /// Why the store could not write when it failed last.
    failure: Mutex<String>,
    /// As the disk was when it became low, or was so no more.
    disk: Mutex<Option<DiskLow>>,
}

impl Shared {
    pub(crate) fn new(flow: FlowControl, incomplete: Incomplete) -> Self {
        Self {
            flow,
            incomplete,
            committer: RwLock::new(None),
            failure: Mutex::default(),
            disk: Mutex::default(),
        }
    }

    /// The store could not write. Before the flow control is told, so that the reason is there when
    /// it is asked for.
    pub(crate) fn note_failure(&self, error: &StoreError) {
        *self.failure.lock() = error.to_string();
    }

    /// The alarms that stand at the moment.
    pub(crate) fn alarms(&self) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        if self.flow.is_store_failing() {
            let why = self.failure.lock().clone();
            alarms.push(Alarm::StoreFailing { why });
        }
        if let Some(disk) = self.disk.lock().filter(|disk| disk.is_low) {
            let bytes_min = disk.free_bytes_min;
            alarms.push(Alarm::DiskLow { bytes_min });
        }
        if self.flow.is_memory_full() {
            let bytes_max = self.flow.memory_bytes_max();
            alarms.push(Alarm::MemoryFull { bytes_max });
        }
        alarms
    }

    /// The disk has become low, or is so no more.
    pub(crate) fn disk_changed(&self, disk: DiskLow) {
        let DiskLow {
            is_low,
            free_bytes,
            free_bytes_min,
        } = disk;
        *self.disk.lock() = Some(disk);
        self.flow.disk_changed(is_low);
        match is_low {
            true => tracing::warn!(
                "{free_bytes} bytes are free for the store, there should be {free_bytes_min}: \
                 publishers of persistent messages are blocked"
            ),
            false => tracing::info!(
                "{free_bytes} bytes are free for the store: publishers are unblocked"
            ),
        }
    }

    /// Starts the store's thread, which tells of each commit, and of a disk that is low.
    pub(crate) fn start_committer(
        &self,
        store: Store,
        config: CommitterConfig,
        on_committed: impl Fn(&str, Position, Result<(), &StoreError>) + Send + 'static,
        on_disk_low: impl Fn(DiskLow) + Send + 'static,
    ) -> io::Result<()> {
        let committer = Committer::start_with(store, config, on_committed, on_disk_low)?;
        *self.committer.write() = Some(committer);
        Ok(())
    }

    /// Hands a vhost's records over; returns how many bytes wait.
    pub(crate) fn submit(
        &self,
        vhost: &Arc<str>,
        records: Vec<Record>,
        position: Position,
    ) -> usize {
        let committer = self.committer.read();
        let committer = committer.as_ref();
        committer.map_or(0, |committer| committer.submit(vhost, records, position))
    }

    /// Has the store copied to a file that must not be there, which has the records of `last` too; false
    /// where the router is ending.
    pub(crate) fn back_up(
        &self,
        path: PathBuf,
        last: impl FnOnce() -> Batch + Send + 'static,
        on_done: impl FnOnce(BackedUp) + Send + 'static,
    ) -> bool {
        let committer = self.committer.read();
        let committer = committer.as_ref();
        committer
            .map(|committer| committer.back_up(path, last, on_done))
            .is_some()
    }

    /// Bytes that wait to be written.
    pub(crate) fn store_waiting_bytes(&self) -> usize {
        let committer = self.committer.read();
        committer.as_ref().map_or(0, Committer::waiting_bytes)
    }

    /// Writes what waits, and ends the store's thread; whether all could be written. Not from that
    /// thread.
    pub(crate) fn stop_committer(&self) -> bool {
        let committer = self.committer.write().take();
        match committer.map(Committer::stop) {
            Some(Err(e)) => {
                tracing::error!("not all that should survive could be stored: {e}");
                false
            }
            Some(Ok(())) | None => true,
        }
    }
}
