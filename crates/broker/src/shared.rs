//! The state shared by all vhosts of a router: the store's thread and the bounds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crosstie_queues::{Counts, Page, Position, Record, StreamChange, StreamWant, Want};
use crosstie_store::{
    Backup, Batch, Committer, CommitterConfig, DiskLow, FreeMin, NewSetting, NotCommitted, Store,
    StoreError,
};
use crosstie_streams::Keeper;
use parking_lot::{Mutex, RwLock};

use super::channels_max::ChannelsMax;
use super::client_patterns::ClientPatterns;
use super::flow::{FlowControl, Resource};
use super::incomplete::Incomplete;
use super::status::Alarm;

/// Maximum bytes of a page of a stream: each reader holds one or two.
const STREAM_PAGE_BYTES_MAX: usize = 256 << 10;

/// Maximum time for the store to begin with a change. A change that waits longer is withdrawn.
pub(crate) const STORE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The outcome of a backup.
pub(crate) type BackedUp = Result<Backup, StoreError>;

/// The store's thread, the flow control, and the memory that belongs to no queue yet.
pub struct Shared {
    pub flow: FlowControl,
    pub incomplete: Incomplete,
    pub(crate) channels_max: ChannelsMax,
    pub(crate) client_patterns: Arc<ClientPatterns>,
    /// `None` before the start and after the stop; read only for durable records.
    committer: RwLock<Option<Committer>>,
    /// The files of streams, in the same time.
    streams: RwLock<Option<Keeper>>,
    /// Why streams could not be written last.
    stream_failure: Mutex<Option<String>>,
    /// The last error of the store.
    failure: Mutex<String>,
    /// The disk's state when it last became low, or recovered.
    disk: Mutex<Option<DiskLow>>,
    /// The counters of vhosts that are gone.
    pub(super) gone: Mutex<Counts>,
}

impl Shared {
    pub(crate) fn new(flow: FlowControl, incomplete: Incomplete) -> Self {
        Self {
            flow,
            incomplete,
            channels_max: ChannelsMax::new(),
            client_patterns: Arc::default(),
            committer: RwLock::new(None),
            streams: RwLock::new(None),
            stream_failure: Mutex::default(),
            failure: Mutex::default(),
            disk: Mutex::default(),
            gone: Mutex::default(),
        }
    }

    /// Notes an error of the store. Called before the flow control learns of the failure, so that the reason is present
    /// when it is read.
    pub(crate) fn note_failure(&self, error: &StoreError) {
        *self.failure.lock() = error.to_string();
    }

    /// The active alarms.
    pub fn alarms(&self) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        if self.flow.is_store_failing() {
            let why = self.failure.lock().clone();
            alarms.push(Alarm::StoreFailing { why });
        }
        let of_streams = self.stream_failure.lock().clone();
        alarms.extend(of_streams.map(|why| Alarm::StoreFailing { why }));
        if let Some(disk) = self.disk.lock().filter(|disk| disk.is_low) {
            let bytes_min = disk.free_bytes_min;
            alarms.push(Alarm::DiskLow { bytes_min });
        }
        let resources = [Resource::Disk, Resource::Memory].into_iter();
        let raised = resources.filter(|resource| self.flow.is_raised(*resource));
        alarms.extend(raised.map(|resource| Alarm::Raised { resource }));
        if self.flow.is_memory_full() && !self.flow.is_raised(Resource::Memory) {
            let bytes_max = self.flow.memory_bytes_max();
            alarms.push(Alarm::MemoryFull { bytes_max });
        }
        alarms
    }

    /// The disk has become low, or has recovered.
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
            false if self.flow.is_raised(Resource::Disk) => tracing::info!(
                "{free_bytes} bytes are free for the store: an alarm raised by hand still blocks publishers"
            ),
            false => tracing::info!(
                "{free_bytes} bytes are free for the store: publishers are unblocked"
            ),
        }
    }

    /// Starts the store's thread, which reports each commit and a low disk.
    pub(crate) fn start_committer(
        &self,
        store: Store,
        config: CommitterConfig,
        on_committed: impl Fn(&str, Position, Result<(), NotCommitted<'_>>) + Send + 'static,
        on_disk_low: impl Fn(DiskLow) + Send + 'static,
    ) -> io::Result<()> {
        let committer = Committer::start_with(store, config, on_committed, on_disk_low)?;
        *self.committer.write() = Some(committer);
        Ok(())
    }

    /// Submits a vhost's records. Returns the number of bytes that wait.
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

    /// Creates vhosts and writes settings of the broker in one commit, and waits until it is on the disk. If it fails,
    /// nothing is.
    pub(crate) fn create_vhosts(
        &self,
        vhosts: Vec<Arc<str>>,
        settings: Vec<NewSetting>,
    ) -> Result<(), String> {
        let (tell, told) = mpsc::channel();
        let stopping = || "the router is being stopped".to_owned();
        let on_written = move |written: Result<(), StoreError>| {
            // The caller waits.
            let _ = tell.send(written.map_err(|error| error.to_string()));
        };
        let begun = {
            let committer = self.committer.read();
            let committer = committer.as_ref().ok_or_else(stopping)?;
            committer.create_vhosts(vhosts, settings, on_written)
        };
        match told.recv_timeout(STORE_WAIT_MAX) {
            Ok(written) => written,
            Err(RecvTimeoutError::Disconnected) => Err(stopping()),
            Err(RecvTimeoutError::Timeout) if begun.withdraw() => Err(format!(
                "the store is busy with earlier writes for more than {} s",
                STORE_WAIT_MAX.as_secs()
            )),
            // It is being written, and only the disk decides whether it counts.
            Err(RecvTimeoutError::Timeout) => told.recv().unwrap_or_else(|_| Err(stopping())),
        }
    }

    /// The same without waiting. `on_written` is called if they are written.
    pub(crate) fn put_settings_later(
        &self,
        settings: Vec<NewSetting>,
        on_written: impl FnOnce() + Send + 'static,
    ) {
        if let Some(committer) = &*self.committer.read() {
            committer.put_settings(settings, |written| match written {
                Ok(()) => on_written(),
                Err(error) => {
                    tracing::warn!("cannot delete settings that do not count any more: {error}");
                }
            });
        }
    }

    /// Changes the free space below which publishers are blocked. `on_looked` is called once the disk is judged by it, or is
    /// dropped with the store's thread.
    pub(crate) fn set_disk_free_min(
        &self,
        free_min: FreeMin,
        on_looked: impl FnOnce() + Send + 'static,
    ) {
        if let Some(committer) = &*self.committer.read() {
            committer.set_free_min(free_min, on_looked);
        }
    }

    pub(crate) fn set_streams(&self, keeper: Keeper) {
        *self.streams.write() = Some(keeper);
    }

    /// Submits changes of a vhost's streams, with the records that the store is to have after them. Returns the number of
    /// bytes that wait.
    pub(crate) fn submit_to_streams(
        &self,
        vhost: &Arc<str>,
        changes: Vec<StreamChange>,
        records: Vec<Record>,
        position: Position,
    ) -> usize {
        let keeper = self.streams.read();
        match keeper.as_ref() {
            Some(keeper) => keeper.submit(vhost, changes, records, position),
            // Stopped: what it had is with the store. As after a kill, a message that streams did not get is where it was.
            None if !changes.is_empty() => 0,
            None => self.submit(vhost, records, position),
        }
    }

    /// Has all streams of a vhost removed of which the store has nothing. Returns false if the router is stopping: the next
    /// start removes them.
    pub(crate) fn remove_streams(&self, vhost: &Arc<str>, position: Position) -> bool {
        let keeper = self.streams.read();
        let keeper = keeper.as_ref();
        keeper
            .map(|keeper| keeper.remove_vhost(vhost, position))
            .is_some()
    }

    /// Reads a page of a stream: the fuller the memory, the smaller a page. A stopping router reads no more.
    pub(crate) fn read_stream(&self, vhost: &Arc<str>, want: StreamWant) {
        if let Some(keeper) = &*self.streams.read() {
            let bytes_max = self.flow.page_bytes(0).min(STREAM_PAGE_BYTES_MAX);
            keeper.read(vhost, want, bytes_max);
        }
    }

    /// Notes whether streams could be written.
    pub(crate) fn note_stream_failure(&self, why: Option<&str>) {
        let mut failure = self.stream_failure.lock();
        if failure.as_deref() != why {
            *failure = why.map(str::to_owned);
        }
    }

    /// Reads a page of a deep queue: the fuller the memory, the smaller a page. Returns false if the router is stopping.
    pub(crate) fn read_page(
        &self,
        vhost: &Arc<str>,
        want: Want,
        on_read: impl FnOnce(Result<Page, StoreError>) + Send + 'static,
    ) -> bool {
        let committer = self.committer.read();
        let committer = committer.as_ref();
        let bytes_max = self.flow.page_bytes(0);
        committer
            .map(|committer| committer.read_page(vhost, want, bytes_max, on_read))
            .is_some()
    }

    /// Copies the store, with the records of `last`, to a file that must not exist yet. Returns false if the router is
    /// stopping.
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
        let streams = self.streams.read();
        let of_streams = streams.as_ref().map_or(0, Keeper::waiting_bytes);
        committer.as_ref().map_or(0, Committer::waiting_bytes) + of_streams
    }

    /// Writes the waiting records and joins the store's thread. Returns whether all could be written. Must not be
    /// called on that thread.
    pub(crate) fn stop_committer(&self) -> bool {
        // First: what it has belongs to the store, too.
        let keeper = self.streams.write().take();
        let are_streams_written = keeper.is_none_or(Keeper::stop);
        let committer = self.committer.write().take();
        match committer.map(Committer::stop) {
            Some(Err(e)) => {
                tracing::error!("could not store all durable messages: {e}");
                false
            }
            Some(Ok(())) | None => are_streams_written,
        }
    }
}
