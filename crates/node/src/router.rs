//! One router: its realms, and what all its connections share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_config as model;
use crosstie_routing::{Limits, RealmConfig};
use crosstie_transport::{ConnectionLimits, QueueBudget};
use crosstie_wamp::codec;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::realm::SharedRealm;
use crate::testee::TesteeTransport;
use crate::watch::Watch;

/// What a router worker is made of, apart from its threads and listeners.
pub(crate) struct Router {
    /// The worker's id.
    pub(crate) id: String,
    realms: HashMap<String, Arc<SharedRealm>>,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) decoding: codec::Limits,
    pub(crate) watch: Watch,
    pub(crate) handshake_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) connections_max: usize,
    conversations: AtomicUsize,
    testees: Mutex<Vec<Arc<TesteeTransport>>>,
    stopping: AtomicBool,
    stopped: Notify,
}

impl Router {
    pub(crate) fn new(worker: &model::RouterWorker, limits: &model::Limits) -> Self {
        let realms = worker.realms.iter().map(|realm| {
            let config = realm_config(realm, limits);
            (
                realm.name.clone(),
                Arc::new(SharedRealm::new(config, seed())),
            )
        });
        Self {
            id: worker.id.clone(),
            realms: realms.collect(),
            limits: Arc::new(ConnectionLimits {
                queue_bytes_max: limits.queue_bytes_max,
                stall_max: limits.queue_stall_timeout,
                budget: Arc::new(QueueBudget::new(limits.queue_bytes_total_max)),
            }),
            decoding: codec::Limits {
                depth_max: limits.depth_max,
            },
            watch: Watch::default(),
            handshake_timeout: limits.handshake_timeout,
            shutdown_timeout: limits.shutdown_timeout,
            connections_max: limits.sessions_max,
            conversations: AtomicUsize::new(0),
            testees: Mutex::default(),
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
        }
    }

    /// The realm of that name.
    pub(crate) fn realm(&self, name: &str) -> Option<&Arc<SharedRealm>> {
        self.realms.get(name)
    }

    pub(crate) fn realms(&self) -> impl Iterator<Item = &Arc<SharedRealm>> {
        self.realms.values()
    }

    /// Counts a conversation in; returns how many connections there were before.
    pub(crate) fn count_in(&self) -> usize {
        self.conversations.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a conversation out.
    pub(crate) fn count_out(&self) {
        self.conversations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections that a stop waits for: somebody there may have to say goodbye.
    pub(crate) fn conversations(&self) -> usize {
        self.conversations.load(Ordering::Relaxed)
    }

    /// All connections.
    pub(crate) fn connections(&self) -> usize {
        self.conversations() + self.echoes()
    }

    /// Connections of testees.
    fn echoes(&self) -> usize {
        self.testees().iter().map(|t| t.connections()).sum()
    }

    pub(crate) fn add_testee(&self, testee: Arc<TesteeTransport>) {
        self.testees.lock().push(testee);
    }

    pub(crate) fn testees(&self) -> MutexGuard<'_, Vec<Arc<TesteeTransport>>> {
        self.testees.lock()
    }

    /// From now on no session is let in, and a GOODBYE ends its connection.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stopped.notify_waiters();
    }

    /// Ends when the router is stopped.
    pub(crate) async fn until_stopped(&self) {
        let stopped = self.stopped.notified();
        if !self.is_stopping() {
            stopped.await;
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

fn realm_config(realm: &model::Realm, limits: &model::Limits) -> RealmConfig {
    let mut realm_limits = Limits::default();
    realm_limits.sessions_max = limits.sessions_max;
    realm_limits.subscriptions_max = limits.subscriptions_max;
    realm_limits.registrations_max = limits.registrations_max;
    realm_limits.calls_max = limits.calls_pending_max;
    realm_limits.uri_bytes_max = limits.uri_bytes_max;
    // 0 is what a realm understands as no bound; a bound below a millisecond is one of 1.
    let timeout_ms = limits.call_timeout_max.map(|max| max.as_millis().max(1));
    realm_limits.call_timeout_ms_max =
        timeout_ms.map_or(0, |ms| u64::try_from(ms).unwrap_or(u64::MAX));
    RealmConfig {
        name: realm.name.clone(),
        uri_check: realm.uri_check,
        request_id_check: realm.request_id_check,
        disclose_me: realm.disclose_me,
        roles: realm.roles.clone(),
        limits: realm_limits,
    }
}

/// What a realm's random ids follow from. Ids need to be unlikely to meet, not to be secret, so
/// that a system without randomness at start is served with the time instead.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    })
}
