//! The store of a realm's events, and its thread's reports to the realm.

use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crosstie_config as model;
use crosstie_front::counters::{Counter, counters};
use crosstie_routing::{Acknowledgement, RealmCounts, Recalled, RetainedEvent};
use crosstie_store::{EventKeeper, EventOwner, EventStore, EventStoreConfig, StoreError};
use crosstie_transport::{Account, Kept};
use parking_lot::Mutex;
use tokio::runtime::Handle;

/// A realm's store, with its own thread.
pub struct RealmStore {
    pub keeper: EventKeeper,
    told: Arc<Told>,
    /// Retained events found when the store was opened.
    retained: Mutex<Vec<RetainedEvent>>,
}

/// The realm, as seen by the store's thread.
pub trait Answers: Send + Sync {
    /// Acknowledges stored publications, or fails them with the reason.
    fn handle_stored(&self, acknowledgements: Vec<Acknowledgement>, outcome: Result<(), &str>);

    /// Sends the answer to a query of the store.
    fn handle_recalled(&self, recalled: Recalled);
}

/// The receiver of the thread's reports.
struct Told {
    name: String,
    realm: OnceLock<Weak<dyn Answers>>,
    /// The runtime that continues to send after a socket is full.
    context: Handle,
    kept: Kept,
    events: AtomicU64,
    bytes: AtomicU64,
    waiting_bytes: AtomicUsize,
    /// Why nothing can be written.
    failure: Mutex<Option<String>>,
}

/// The state of a store, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreStatus {
    pub events: u64,
    pub bytes: u64,
    pub waiting_bytes: usize,
    pub is_failing: bool,
}

impl RealmStore {
    /// Opens or creates the realm's configured store. An error names the file and its fault.
    pub fn open(
        realm: &model::Realm,
        store: &model::EventStore,
        directory: &Path,
        account: &Arc<Account>,
        context: Handle,
    ) -> Result<Self, String> {
        let opened = EventStore::open(EventStoreConfig {
            path: directory.join(&store.path),
            realm: realm.name.clone(),
            logs: realm.history.clone(),
            bytes_max: store.bytes_max,
            is_synced: store.is_synced,
        });
        let opened = opened.map_err(|e| e.to_string())?;
        let retained = match store.keeps_retained {
            true => opened.retained(),
            false => opened.forget_retained().map(|()| Vec::new()),
        };
        let retained = retained.map_err(|e| e.to_string())?;
        let told = Arc::new(Told {
            name: realm.name.clone(),
            realm: OnceLock::new(),
            context,
            kept: Kept::new(account),
            events: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            waiting_bytes: AtomicUsize::new(0),
            failure: Mutex::default(),
        });
        let owner = Arc::clone(&told);
        let keeper = EventKeeper::start(opened, store.buffer_bytes_max, owner)
            .map_err(|e| format!("the store's thread: {e}"))?;
        Ok(Self {
            keeper,
            told,
            retained: Mutex::new(retained),
        })
    }

    /// Sets the realm, before any session joins it.
    pub(crate) fn belongs_to(&self, realm: &Arc<impl Answers + 'static>) {
        let realm = Arc::downgrade(realm);
        let _ = self.told.realm.set(realm);
    }

    /// Takes the retained events that were found on opening; empty from the second call on.
    pub(crate) fn take_retained(&self) -> Vec<RetainedEvent> {
        mem::take(&mut *self.retained.lock())
    }

    /// Adds the store's counts to those of the realm.
    pub fn counted(&self, counts: RealmCounts) -> RealmCounts {
        let StoreStatus { events, bytes, .. } = self.status();
        RealmCounts {
            recorded_events: events as usize,
            recorded_bytes: bytes as usize,
            ..counts
        }
    }

    pub fn status(&self) -> StoreStatus {
        StoreStatus {
            events: self.told.events.load(Ordering::Relaxed),
            bytes: self.told.bytes.load(Ordering::Relaxed),
            waiting_bytes: self.told.waiting_bytes.load(Ordering::Relaxed),
            is_failing: self.told.failure.lock().is_some(),
        }
    }

    /// Why nothing can be written at present.
    pub fn failure(&self) -> Option<String> {
        self.told.failure.lock().clone()
    }
}

impl Told {
    /// Runs a report to the realm on the store's thread, then flushes the sockets.
    fn tell(&self, tell: impl FnOnce(&dyn Answers)) {
        if let Some(realm) = self.realm.get().and_then(Weak::upgrade) {
            let _context = self.context.enter();
            tell(&*realm);
            crosstie_transport::uncork_all();
        }
    }
}

impl EventOwner for Told {
    fn stored(&self, acknowledgements: Vec<Acknowledgement>, outcome: Result<(), &StoreError>) {
        let why = outcome.map_err(ToString::to_string);
        let outcome = why.as_ref().copied().map_err(String::as_str);
        self.tell(|realm| realm.handle_stored(acknowledgements, outcome));
    }

    fn recalled(&self, recalled: Recalled) {
        self.tell(|realm| realm.handle_recalled(recalled));
    }

    fn counted(&self, (events, bytes): (u64, u64), evicted: u64) {
        self.events.store(events, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        if evicted > 0 {
            counters().add(Counter::RecordedEventsEvicted, evicted);
        }
    }

    fn failed(&self, error: Option<&StoreError>) {
        *self.failure.lock() = error.map(ToString::to_string);
        let name = &self.name;
        match error {
            Some(error) => {
                tracing::error!("realm {name}: cannot write to the store, retrying: {error}");
            }
            None => tracing::info!("realm {name}: the store can write again"),
        }
    }

    fn hold(&self, bytes: usize) {
        self.waiting_bytes.store(bytes, Ordering::Relaxed);
        self.kept.set(bytes);
    }

    fn lost(&self, events: usize) {
        let name = &self.name;
        tracing::error!("realm {name}: {events} events could not be stored");
        counters().add(Counter::EventsNotRecorded, events as u64);
    }
}
