//! The broker of a router worker: its vhosts, its users and its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crosstie_config as model;
use crosstie_front::bounds::Bounds;
use crosstie_front::seed::seed;
use crosstie_front::watch::Watch;
use crosstie_metadata::{Metadata, VhostLimit};
use crosstie_queues::{Position, Record, Time, Vhost};
use crosstie_store::{Batch, CommitterConfig, FreeMin, NotCommitted, Restored, Store};
use crosstie_transport::{Connection, Workers};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;

use super::backends::{Backends, Counts};
use super::client::About;
use super::clock::Clock;
use super::definitions;
use super::flow::FlowControl;
use super::identity::ServerProperties;
use super::incomplete::Incomplete;
use super::limits::{paging, vhost_config};
use super::logins::Logins;
use super::metadata::{LiveMetadata, add_created, layers, users};
use super::outbox::VhostOutbox;
use super::particulars::Particulars;
use super::peer::Peer;
use super::replicated::{Held, Whose};
use super::replication::{self, Ownership, Replicated};
use super::shared::{BackedUp, Shared};
use super::splice::{Splices, splicing};
use super::status::{Alarm, ConnectionStatus};
use super::stored;
use super::stream_files;
use super::totals::Totals;
use super::users::LiveUsers;
use super::vhost::{Keeper, SharedVhost};
use super::vhost_changes::{Changes, Making};

/// The state that all AMQP connections of a router share.
pub struct Broker {
    pub(crate) metadata: LiveMetadata,
    /// The users of the metadata.
    pub(crate) users: LiveUsers,
    pub(crate) backends: RwLock<Arc<Backends>>,
    pub(crate) asked: Arc<Counts>,
    pub(crate) logins: Arc<Logins>,
    pub shared: Arc<Shared>,
    pub(super) message_bytes_max: AtomicUsize,
    pub(super) server_properties: RwLock<ServerProperties>,
    /// Vhosts of this worker alone.
    pub(super) vhosts: RwLock<Vec<Arc<SharedVhost>>>,
    pub(super) vhost_changes: Mutex<Changes>,
    pub(super) making: Making,
    /// Replicated vhosts.
    replicated: Vec<Arc<Replicated>>,
    /// The threads of the replicated vhosts.
    ledgers: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    number_last: AtomicU64,
    /// Counters since the start.
    pub totals: Totals,
    pub splices: Splices,
    pub home: Home,
    pub particulars: Particulars,
}

/// The router that a broker belongs to.
pub struct Home {
    /// The node's id.
    pub node: String,
    /// The worker's id.
    pub worker: String,
    pub bounds: Arc<Bounds>,
    pub watch: Arc<Watch>,
    /// A store that lacks confirmed data is opened without them.
    pub accepts_loss: bool,
}

impl Broker {
    /// Opens the store, restores its contents, and adds the configured definitions. Also returns the definitions that
    /// were rejected. An error names the file and its fault.
    pub fn open(
        amqp: &model::Amqp,
        home: Home,
        directory: &Path,
        workers: &Workers,
    ) -> Result<(Arc<Self>, Vec<model::Skipped>), String> {
        let own = amqp;
        let (amqp, definitions, mut skipped) = definitions::with_definitions(own, directory)?;
        replication::check_released(&amqp, directory)?;
        let (mut store, restored) = stored::open(&amqp, home.accepts_loss, directory)?;
        let created = restored.iter();
        let created = names(created.filter(|found| found.record == Record::VhostCreated));
        let mut layers = layers(own, &amqp, &home.node)?;
        skipped.extend(definitions::add(&mut layers, &definitions));
        add_created(&mut layers, &created);
        let (metadata, held_settings) = stored::metadata(&mut store, layers, home.accepts_loss)?;
        let held = Held::by_vhost(&restored);
        let stored = names(restored.iter());
        // A clock that has gone back must not make messages live longer.
        let clock = Clock::begin_at(store.now_ms());
        let now = clock.time(Instant::now());
        // The files beside a store that another node has open are that node's.
        let is_stored = store.obstacle().is_none();
        let mut vhosts = restore_vhosts(&amqp, &metadata, now, (restored, &created), is_stored);
        skipped.extend(definitions::define(&definitions, now, &mut vhosts));
        let replicated = replication::take(&amqp, &mut vhosts, &held);
        let store_path = directory.join(&amqp.store);
        let opened = is_stored.then(|| vhosts.iter_mut());
        let (streams, troubles) = stream_files::open(&store_path, opened, &stored)?;

        let (asked, keeper) = (Arc::default(), workers.keeper_handle());
        let on = (&asked, &home.bounds.limits.account);
        let backends = Backends::new(&own.auth_backends, directory, on, &keeper, None)?;
        let limits = &amqp.limits;
        let flow = FlowControl::new(limits.memory_bytes_max, limits.commit_bytes_max);
        let incomplete = Incomplete::new(
            limits.memory_bytes_max,
            limits.message_bytes_max,
            limits.incomplete_timeout,
        );
        let shared = Arc::new(Shared::new(flow, incomplete));
        let making = Making::new(limits, clock, workers, is_stored.then_some(store_path));
        let (vhosts, vhost_changes) = share(&amqp, vhosts, (stored, created), &shared, &making);
        let broker = Arc::new(Self {
            users: LiveUsers::new(users(&metadata)),
            backends: RwLock::new(Arc::new(backends)),
            asked,
            metadata: LiveMetadata::new(metadata, held_settings),
            logins: Arc::new(Logins::new(limits.login_delay_max, workers.keeper_handle())),
            message_bytes_max: AtomicUsize::new(limits.message_bytes_max),
            server_properties: RwLock::new(ServerProperties::of(&amqp.identity)),
            vhosts: RwLock::new(vhosts),
            vhost_changes: Mutex::new(vhost_changes),
            making,
            replicated,
            ledgers: Mutex::default(),
            shared,
            peers: Mutex::default(),
            number_last: AtomicU64::new(0),
            totals: Totals::default(),
            splices: Splices::default(),
            home,
            particulars: Particulars::of(&amqp, directory),
        });
        broker.start_committer(store, limits.disk_free_bytes_min, workers.keeper_handle())?;
        broker.start_streams(streams, troubles, &workers.keeper_handle())?;
        broker.put_cluster_name();
        broker.start_keeping(workers);
        Ok((broker, skipped))
    }

    /// Starts the threads of the replicated vhosts. An error names the file and its fault.
    pub fn start_replicated(
        self: &Arc<Self>,
        amqp: &model::Amqp,
        directory: &Path,
        workers: &Workers,
    ) -> Result<(), String> {
        if self.replicated.is_empty() {
            return Ok(());
        }
        let definitions = amqp.definitions.as_ref().map(|path| {
            let loaded = model::Definitions::load(&directory.join(path));
            loaded.map_err(|e| e.to_string())
        });
        let definitions = Arc::new(definitions.transpose()?.unwrap_or_default());
        for replicated in &self.replicated {
            replicated.set_splicing(splicing(replicated.settings(), directory)?);
            let started = replicated.start((amqp, &definitions), self, directory, workers)?;
            self.ledgers.lock().push(started);
        }
        Ok(())
    }

    /// Starts the timers of the vhosts on the keeper's thread.
    fn start_keeping(self: &Arc<Self>, workers: &Workers) {
        let _context = workers.keeper_handle().enter();
        for vhost in self.local_vhosts() {
            // Records of definitions, and of messages that expired meanwhile, are submitted to the store.
            vhost.settle();
            workers.spawn_keeper(vhost.keep_time());
        }
        let swept = Arc::downgrade(self);
        workers.spawn_keeper(async move {
            while let Some(broker) = swept.upgrade() {
                broker.shared.incomplete.sweep();
                let vhosts = broker.vhosts();
                drop(broker);
                vhosts.iter().for_each(SharedVhost::look_after);
                drop(vhosts);
                crosstie_transport::next_second().await;
            }
        });
    }

    /// Starts the store's thread, which reports each commit to the vhosts; they then send the confirms that waited for
    /// it.
    fn start_committer(
        self: &Arc<Self>,
        store: Store,
        disk_free_bytes_min: u64,
        context: Handle,
    ) -> Result<(), String> {
        let free_min = FreeMin::or_an_eighth(disk_free_bytes_min);
        self.shared.flow.note_free_min(free_min);
        let config = CommitterConfig {
            disk_free_bytes_min,
            ..CommitterConfig::default()
        };
        let broker = Arc::downgrade(self);
        let of_disk = (broker.clone(), context.clone());
        let on_disk_low = move |disk| {
            let (broker, context) = &of_disk;
            if let Some(broker) = broker.upgrade() {
                let _context = context.enter();
                broker.shared.disk_changed(disk);
                crosstie_transport::uncork_all();
            }
        };
        let on_committed = move |vhost: &str, position, result: Result<(), NotCommitted<'_>>| {
            if let Some(broker) = broker.upgrade() {
                let _context = context.enter();
                broker.handle_commit(vhost, position, result);
                crosstie_transport::uncork_all();
            }
        };
        let started = self
            .shared
            .start_committer(store, config, on_committed, on_disk_low);
        started.map_err(|e| format!("the store's thread: {e}"))
    }

    fn handle_commit(
        self: &Arc<Self>,
        name: &str,
        position: Position,
        result: Result<(), NotCommitted<'_>>,
    ) {
        let flow = &self.shared.flow;
        match &result {
            Ok(()) => {
                if flow.is_store_failing() {
                    tracing::info!("the store can write again");
                }
                flow.store_wrote(self.shared.store_waiting_bytes());
            }
            Err(NotCommitted { error, .. }) => {
                self.shared.note_failure(error);
                if flow.store_failed() {
                    tracing::error!("cannot write to the store, retrying: {error}");
                }
            }
        }
        self.settle_commit(name, position, &result);
        if let Some(vhost) = self.find_local(name) {
            vhost.handle_commit(position, result);
        }
    }

    /// The next connection number. Numbers are never reused.
    pub(crate) fn next_number(&self) -> u64 {
        self.number_last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a peer that has entered its vhost.
    pub(crate) fn add_peer(&self, peer: &Arc<Peer>) {
        self.totals.count_in(peer);
        self.peers.lock().insert(peer.number, Arc::clone(peer));
        self.follow_users(peer);
        self.follow_backends(peer);
        if !peer.vhost.is_open() {
            // Closed while the client entered.
            self.close_clients_of(&peer.vhost);
        }
    }

    /// Removes a peer that has left. Called before its place in the watch is reused.
    pub(crate) fn remove_peer(&self, number: u64) {
        let mut peers = self.peers.lock();
        let removed = peers.remove(&number);
        if let Some(peer) = &removed {
            peer.stop_asking();
            self.totals.count_out(peer);
        }
        drop(peers);
        removed.iter().for_each(|peer| peer.seat.leave());
    }

    /// Stops the vhosts in order, writes all pending records, and joins the store's thread. Returns whether all could
    /// be written.
    pub fn stop(&self) -> bool {
        self.replicated
            .iter()
            .for_each(|replicated| replicated.stop());
        for ledger in self.ledgers.lock().drain(..) {
            // A ledger thread that panicked has logged that already.
            let _ = ledger.join();
        }
        for vhost in self.local_vhosts() {
            vhost.rest();
        }
        self.stop_changes()
    }

    /// Copies the store to a file that must not exist yet. In the copy, every delivered message is marked as delivered.
    pub(crate) fn back_up(
        &self,
        path: PathBuf,
        on_done: impl FnOnce(BackedUp) + Send + 'static,
    ) -> bool {
        let vhosts = self.local_vhosts();
        let mut streams = vhosts.iter().map(|vhost| vhost.lock().stream_count());
        if streams.any(|count| count > 0) {
            tracing::warn!("the backup has the declarations of streams, and not their messages");
        }
        let delivered = move || {
            let mut batch = Batch::default();
            for vhost in &vhosts {
                let locked = vhost.lock();
                if !vhost.is_deleted() {
                    batch.push(vhost.name(), locked.delivered(), Position::default());
                }
            }
            batch
        };
        self.shared.back_up(path, delivered, on_done)
    }

    /// The vhosts that are open on this node, by name.
    pub fn vhosts(&self) -> Vec<Arc<SharedVhost>> {
        let mut vhosts = self.local_vhosts();
        vhosts.retain(|vhost| vhost.is_open());
        vhosts.extend(self.replicated.iter().filter_map(|found| found.here()));
        vhosts.sort_by(|a, b| a.name().cmp(b.name()));
        vhosts
    }

    /// The replicated vhosts, whichever node owns them.
    pub fn replicated(&self) -> &[Arc<Replicated>] {
        &self.replicated
    }

    /// The replicated vhost of that name.
    pub(super) fn replicated_of(&self, name: &str) -> Option<&Arc<Replicated>> {
        let mut replicated = self.replicated.iter();
        replicated.find(|found| *found.name == *name)
    }

    /// Whether a vhost of that name exists, on this node or another.
    pub fn has_vhost(&self, name: &str) -> bool {
        self.local(name).is_some() || self.replicated_of(name).is_some()
    }

    /// The vhost if it is open on this node; otherwise the owner, or why it has none.
    pub fn vhost(&self, name: &str) -> Result<Arc<SharedVhost>, Whose> {
        if let Some(vhost) = self.local(name) {
            return Ok(vhost);
        }
        match self.replicated_of(name) {
            Some(found) => match found.ownership() {
                Ownership::Here(vhost) => Ok(vhost),
                Ownership::NotHere(whose) => Err(whose),
            },
            None => Err(Whose::Nobody {
                why: "there is none of that name".into(),
            }),
        }
    }

    /// The active alarms.
    pub fn alarms(&self) -> Vec<Alarm> {
        let mut alarms = self.shared.alarms();
        for vhost in self.vhosts() {
            let unreadable = vhost.unreadable.lock();
            let found = unreadable.iter();
            alarms.extend(found.map(|(queue, why)| Alarm::QueueUnreadable {
                vhost: vhost.name.to_string(),
                queue: queue.to_owned(),
                why: why.to_owned(),
            }));
            drop(unreadable);
            alarms.extend(vhost.refused_letters());
        }
        for replicated in &self.replicated {
            if let Some(why) = replicated.seen().alarm {
                let vhost = replicated.name.to_string();
                alarms.push(Alarm::Ledger { vhost, why });
            }
        }
        alarms
    }

    /// The vhost of this worker alone, if it is open.
    fn local(&self, name: &str) -> Option<Arc<SharedVhost>> {
        self.find_local(name).filter(|vhost| vhost.is_open())
    }

    /// The client's description of itself, if the connection is in a vhost.
    pub fn about(&self, connection: &Arc<Connection>) -> Option<About> {
        let peers = self.peers.lock();
        let mut peers = peers.values();
        let peer = peers.find(|peer| Arc::ptr_eq(&peer.connection, connection))?;
        Some(peer.about.clone())
    }

    /// The connections that are in a vhost, oldest first.
    pub fn connections(&self) -> Vec<ConnectionStatus> {
        self.each_peer(|peer| Some(peer.status()))
    }

    pub(super) fn each_peer<T>(&self, read: impl Fn(&Arc<Peer>) -> Option<T>) -> Vec<T> {
        let mut read_ones = Vec::new();
        let mut next = 0;
        loop {
            // Copying the handles in parts keeps the lock short: peers that connect or leave do not wait for the
            // listing.
            let part: Vec<_> = {
                let peers = self.peers.lock();
                let part = peers.range(next..).take(PEERS_MAX);
                part.map(|(_, peer)| Arc::clone(peer)).collect()
            };
            read_ones.extend(part.iter().filter_map(&read));
            match part.last() {
                Some(last) => next = last.number + 1,
                None => return read_ones,
            }
        }
    }
}

/// The vhosts of records.
fn names<'r>(restored: impl Iterator<Item = &'r Restored>) -> BTreeSet<Arc<str>> {
    restored.map(|found| Arc::clone(&found.vhost)).collect()
}

/// Makes the restored vhosts ready for clients.
fn share(
    amqp: &model::Amqp,
    vhosts: BTreeMap<Arc<str>, Vhost<Arc<Peer>>>,
    (stored, created): (BTreeSet<Arc<str>>, BTreeSet<Arc<str>>),
    shared: &Arc<Shared>,
    making: &Making,
) -> (Vec<Arc<SharedVhost>>, Changes) {
    let is_open = |name: &Arc<str>| vhosts.contains_key(name);
    let configured = amqp.vhosts.iter().map(|vhost| vhost.name.as_str().into());
    let changes = Changes {
        configured: configured.collect(),
        created,
        unopened: stored.into_iter().filter(|name| !is_open(name)).collect(),
        ..Changes::default()
    };
    let vhosts = vhosts.into_iter().map(|(name, vhost)| {
        let shared = Arc::clone(shared);
        let (clock, thread) = (making.clock, making.next_thread());
        let keeper = Keeper::Local;
        Arc::new(SharedVhost::new(name, vhost, clock, shared, thread, keeper))
    });
    (vhosts.collect(), changes)
}

/// Creates the configured vhosts, and those that operators have created, with their contents from the store.
fn restore_vhosts(
    amqp: &model::Amqp,
    metadata: &Metadata,
    now: Time,
    (restored, created): (Vec<Restored>, &BTreeSet<Arc<str>>),
    is_stored: bool,
) -> BTreeMap<Arc<str>, Vhost<Arc<Peer>>> {
    let mut vhosts = BTreeMap::new();
    let mut outbox = VhostOutbox::default();
    let created = created.iter().map(|name| (Arc::clone(name), true));
    let configured = amqp.vhosts.iter();
    let configured =
        configured.map(|vhost| (vhost.name.as_str().into(), vhost.replicated.is_none()));
    for (name, is_local) in created.chain(configured) {
        let mut config = vhost_config(&name, &amqp.limits);
        config.paging = paging(&amqp.limits);
        config.has_streams = is_stored && is_local;
        let mut vhost = Vhost::new(config, seed());
        vhost.limit_queues(metadata.vhost_limit(&name, VhostLimit::Queues));
        vhost.set_policies(now, Arc::new(metadata.policies(&name)), &mut outbox);
        vhosts.insert(name, vhost);
    }
    for restored in restored {
        // Records of a vhost that is no longer configured stay in the file.
        if let Some(vhost) = vhosts.get_mut(&restored.vhost) {
            vhost.restore(now, restored.record);
        }
    }
    for vhost in vhosts.values_mut() {
        vhost.restored(now, &mut outbox);
    }
    vhosts
}

/// Maximum number of peers copied under one lock.
const PEERS_MAX: usize = 1000;
