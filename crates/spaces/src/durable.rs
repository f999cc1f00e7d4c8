//! The store of a space: its records on the disk, and the reports of the store's thread.
//!
//! Records are submitted under the space's lock, in the order of the journal. A commit comes back by
//! [`Committed::handle_commit`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crosstie_store::{
    DiskLow, FoundRecords, RecordCommitter, RecordStore, RecordStoreConfig, StoreError,
};
use crosstie_topics::{Position, Record};
use crosstie_transport::{Account, Kept};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::client::Client;
use crate::places::{Owned, Places};

/// A store that was opened for a space.
pub struct SpaceStore {
    store: RecordStore,
    places: Places,
    records: Vec<Owned>,
}

/// The store of a running space.
pub(crate) struct Durable {
    realm: String,
    attached: Mutex<Option<Attached>>,
    kept: Kept,
    /// Why nothing can be written.
    failure: Mutex<Option<String>>,
    is_failing: AtomicBool,
    /// So much waits for the disk that publishers wait, too.
    is_crowded: AtomicBool,
    crowd: Mutex<Vec<Weak<Client>>>,
}

struct Attached {
    committer: RecordCommitter,
    places: Places,
}

/// The space, as seen by the store's thread.
pub(crate) trait Committed: Send + Sync {
    /// The records up to a position are on the disk, or are not yet.
    fn handle_commit(&self, position: u64, is_committed: bool);

    fn durable(&self) -> Option<&Durable>;
}

/// The state of a store, for the metrics.
#[derive(Clone, Debug, Default)]
pub struct SpaceStoreStatus {
    pub waiting_bytes: usize,
    /// Why nothing can be written.
    pub failure: Option<String>,
}

/// Publishers wait while more bytes wait for the disk, until a half is left.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// Free bytes on the disk below which the log has a warning.
const DISK_FREE_BYTES_MIN: u64 = 64 << 20;

impl SpaceStore {
    /// Opens or makes the store of a realm's space. An error names the directory and its fault.
    pub fn open(path: PathBuf, realm: &str, accepts_loss: bool) -> Result<Self, String> {
        let shown = path.display().to_string();
        let config = RecordStoreConfig {
            path,
            kind: "mqtt",
            owner: realm.into(),
            accepts_loss,
            disk_free_bytes_min: DISK_FREE_BYTES_MIN,
        };
        let (store, found) = RecordStore::open(config).map_err(|e| e.to_string())?;
        let FoundRecords {
            groups,
            records,
            lost,
        } = found;
        for lost in lost {
            tracing::error!("realm {realm}: MQTT continues without confirmed data: {lost}");
        }
        let mut places = Places::new(groups, store.now_ms());
        let mut restored = Vec::with_capacity(records.len());
        for (group, place, content) in records {
            match Owned::decode(content.body()) {
                Some(owned) => {
                    places.note(&owned.record, place);
                    restored.push(owned);
                }
                None if accepts_loss => {
                    tracing::error!("{shown}: the record {place} of {group} is none of MQTT");
                }
                None => {
                    return Err(format!(
                        "{shown} has a record that is none of MQTT ({group}, {place}): it may be of a later version"
                    ));
                }
            }
        }
        Ok(Self {
            store,
            places,
            records: restored,
        })
    }

    /// The time in milliseconds since 1970, which is not before that of the last commit.
    pub(crate) fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    pub(crate) fn take_records(&mut self) -> Vec<Owned> {
        std::mem::take(&mut self.records)
    }
}

impl Durable {
    pub(crate) fn new(realm: &str, account: &Arc<Account>) -> Self {
        Self {
            realm: realm.to_owned(),
            attached: Mutex::default(),
            kept: Kept::new(account),
            failure: Mutex::default(),
            is_failing: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            crowd: Mutex::default(),
        }
    }

    /// Begins to write.
    pub(crate) fn attach<S: Committed + 'static>(
        &self,
        opened: SpaceStore,
        space: &Arc<S>,
        context: Handle,
    ) -> std::io::Result<()> {
        let space = Arc::downgrade(space);
        let realm = self.realm.clone();
        let on_committed = move |position, outcome: Result<(), &StoreError>| {
            if let Some(space) = space.upgrade() {
                // Output that a socket does not take is sent by a task.
                let _context = context.enter();
                if let Some(durable) = space.durable() {
                    durable.note(outcome);
                }
                space.handle_commit(position, outcome.is_ok());
                if let Some(durable) = space.durable() {
                    durable.disperse();
                }
                crosstie_transport::uncork_all();
            }
        };
        let on_disk_low = move |low: DiskLow| {
            let DiskLow {
                is_low, free_bytes, ..
            } = low;
            match is_low {
                true => tracing::warn!(
                    "realm {realm}: the disk of the MQTT store has {free_bytes} bytes left"
                ),
                false => tracing::info!("realm {realm}: the disk of the MQTT store has room again"),
            }
        };
        let SpaceStore { store, places, .. } = opened;
        let committer = store.start(on_committed, on_disk_low)?;
        *self.attached.lock() = Some(Attached { committer, places });
        Ok(())
    }

    /// Submits the records of an input. The caller has the space's lock.
    pub(crate) fn submit<'a>(
        &self,
        records: Vec<Record>,
        position: Position,
        owner: impl Fn(&Record) -> Option<&'a str>,
    ) {
        if records.is_empty() {
            return;
        }
        let mut attached = self.attached.lock();
        let Some(attached) = &mut *attached else {
            return;
        };
        let mut changes = Vec::with_capacity(records.len());
        for record in records {
            let owner = owner(&record).unwrap_or_default().to_owned();
            attached
                .places
                .change(Owned { owner, record }, &mut changes);
        }
        let waiting = attached.committer.submit(changes, position.0);
        self.kept.set(waiting + attached.places.bytes());
        if waiting > WAITING_BYTES_MAX {
            self.is_crowded.store(true, Ordering::SeqCst);
        }
    }

    /// Whether messages that have to be stored are refused.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Lets a publisher wait while too much waits for the disk.
    pub(crate) fn hold_back(&self, client: &Arc<Client>) {
        if !self.is_crowded.load(Ordering::Relaxed) {
            return;
        }
        let mut crowd = self.crowd.lock();
        // Under this lock it does not end meanwhile.
        if self.is_crowded.load(Ordering::SeqCst) && client.set_crowded() {
            crowd.push(Arc::downgrade(client));
        }
    }

    pub(crate) fn status(&self) -> SpaceStoreStatus {
        let attached = self.attached.lock();
        let waiting = attached.as_ref().map(|one| one.committer.waiting_bytes());
        SpaceStoreStatus {
            waiting_bytes: waiting.unwrap_or_default(),
            failure: self.failure.lock().clone(),
        }
    }

    /// Writes what was submitted, and closes the store. Later records are dropped. Returns whether all is written.
    pub(crate) fn close(&self) -> bool {
        // The thread that is awaited reports to the space, which submits.
        let Some(attached) = self.attached.lock().take() else {
            return true;
        };
        let stopped = attached.committer.stop();
        if let Err(error) = &stopped {
            let realm = &self.realm;
            tracing::error!("realm {realm}: the last records of MQTT are not stored: {error}");
        }
        stopped.is_ok()
    }

    fn note(&self, outcome: Result<(), &StoreError>) {
        let realm = &self.realm;
        match outcome {
            Ok(()) => {
                if self.is_failing.swap(false, Ordering::SeqCst) {
                    *self.failure.lock() = None;
                    tracing::info!("realm {realm}: the MQTT store can write again");
                }
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::SeqCst) {
                    tracing::error!(
                        "realm {realm}: cannot write to the MQTT store, retrying: {error}"
                    );
                }
                *self.failure.lock() = Some(error.to_string());
            }
        }
    }

    /// Lets publishers go on once the disk has caught up.
    fn disperse(&self) {
        let waiting = match &*self.attached.lock() {
            Some(attached) => {
                let waiting = attached.committer.waiting_bytes();
                self.kept.set(waiting + attached.places.bytes());
                waiting
            }
            None => 0,
        };
        let is_crowded = self.is_crowded.load(Ordering::Relaxed);
        if !is_crowded || waiting > WAITING_BYTES_MAX / 2 {
            return;
        }
        let crowd = {
            let mut crowd = self.crowd.lock();
            self.is_crowded.store(false, Ordering::SeqCst);
            std::mem::take(&mut *crowd)
        };
        for client in crowd.iter().filter_map(Weak::upgrade) {
            client.go_on();
        }
    }
}
