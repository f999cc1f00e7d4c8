//! A broker's view of a replicated vhost: its owner, the vhost of this term, and the redirection of its clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use crosstie_config as model;
use crosstie_front::seed::seed;
use crosstie_nats::escaped;
use crosstie_queues::{Position, QueueId, Record, Time, Vhost, VhostConfig};
use crosstie_store::Batch;
use crosstie_transport::Workers;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

use super::broker::Broker;
use super::clock::Clock;
use super::definitions;
use super::limits::{replicated_paging, vhost_config};
use super::metadata::{Begin, LogSettings};
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::replicated::{
    self, Beginning, Building, Held, Holder, Journal, ORDERS_MAX, Order, Seen, Task, Whose,
};
use super::splice::{Cluster, Splicing, WAIT_MAX, transport};
use super::status::ReplicatedStatus;
use super::vhost::{Keeper, SharedVhost};

/// The owner of a vhost.
#[derive(Clone)]
pub enum Ownership {
    /// This node: the vhost of this term.
    Here(Arc<SharedVhost>),
    NotHere(Whose),
}

/// A replicated vhost.
pub struct Replicated {
    pub name: Arc<str>,
    settings: model::Replicated,
    ownership: watch::Sender<Ownership>,
    seen: Arc<Mutex<Seen>>,
    /// How clients reach the owner; set before the thread starts.
    splicing: OnceLock<Splicing>,
    /// Signals the thread to end.
    stopping: watch::Sender<bool>,
    /// The records of the vhost in the worker's store, from before it was replicated.
    held: Option<Held>,
    /// Operators' orders for the vhost's thread.
    orders: mpsc::Sender<Order>,
    obeying: Mutex<Option<mpsc::Receiver<Order>>>,
}

/// The parts that a term needs to create its vhost, and to end it.
struct Opening {
    replicated: Arc<Replicated>,
    definitions: Arc<model::Definitions>,
    clock: Clock,
    /// The runtime of timers.
    keeper: Handle,
    /// The runtime that processes a vhost's backlog.
    serving: Handle,
    broker: Arc<Broker>,
    /// Stored bytes, for the log.
    held_bytes: AtomicUsize,
}

impl Replicated {
    pub fn new(name: Arc<str>, settings: model::Replicated, held: Option<Held>) -> Self {
        let (orders, obeying) = mpsc::channel(ORDERS_MAX);
        let why = "no NATS server has been reached yet".into();
        Self {
            name,
            settings,
            ownership: watch::Sender::new(Ownership::NotHere(Whose::Nobody { why })),
            seen: Arc::default(),
            splicing: OnceLock::new(),
            stopping: watch::Sender::new(false),
            held,
            orders,
            obeying: Mutex::new(Some(obeying)),
        }
    }

    /// Starts the vhost's thread. An error names the file and its fault.
    pub fn start(
        self: &Arc<Self>,
        (amqp, definitions): (&model::Amqp, &Arc<model::Definitions>),
        broker: &Arc<Broker>,
        directory: &Path,
        workers: &Workers,
    ) -> Result<JoinHandle<()>, String> {
        let opening = Opening {
            replicated: Arc::clone(self),
            definitions: Arc::clone(definitions),
            clock: Clock::begin(),
            keeper: workers.keeper_handle(),
            serving: workers.serving_handle(),
            broker: Arc::clone(broker),
            held_bytes: AtomicUsize::new(0),
        };
        replicated::start(Task {
            vhost: Arc::clone(&self.name),
            settings: self.announced(),
            node: format!("{}/{}", broker.home.node, broker.home.worker),
            incarnation: seed(),
            log: seed(),
            node_directory: directory.to_owned(),
            directory: directory.join(format!("{}.replicated", amqp.store)),
            store: directory.join(&amqp.store),
            held: self.held,
            orders: self.obeying.lock().take(),
            paging: replicated_paging(&amqp.limits),
            waiting_bytes_max: amqp.limits.commit_bytes_max,
            seen: Arc::clone(&self.seen),
            stopping: self.stopping.subscribe(),
            holder: Arc::new(opening),
        })
    }

    pub fn settings(&self) -> &model::Replicated {
        &self.settings
    }

    /// How clients reach the owner, once that is known.
    pub fn splicing(&self) -> Option<&Splicing> {
        self.splicing.get()
    }

    pub fn set_splicing(&self, splicing: Splicing) {
        let _ = self.splicing.set(splicing);
    }

    /// The settings, with the address that this node announces to others.
    fn announced(&self) -> model::Replicated {
        let mut settings = self.settings.clone();
        if let Some(splicing) = self.splicing() {
            settings.address = splicing.announced();
        }
        settings
    }

    pub(super) fn watch(&self) -> watch::Receiver<Ownership> {
        self.ownership.subscribe()
    }

    /// Waits until the vhost has an owner, at most as long as a client would.
    pub(super) async fn await_owner(&self) {
        let mut ownership = self.ownership.subscribe();
        let is_nobodys =
            |known: &Ownership| matches!(known, Ownership::NotHere(Whose::Nobody { .. }));
        let known = ownership.wait_for(|known| !is_nobodys(known));
        let _ = tokio::time::timeout(WAIT_MAX, known).await;
    }

    /// Notes the owner.
    pub fn set_ownership(&self, ownership: Ownership) {
        self.ownership.send_replace(ownership);
    }

    /// The current owner.
    pub fn ownership(&self) -> Ownership {
        self.ownership.borrow().clone()
    }

    /// The vhost, if this node owns it.
    pub fn here(&self) -> Option<Arc<SharedVhost>> {
        match &*self.ownership.borrow() {
            Ownership::Here(vhost) => Some(Arc::clone(vhost)),
            Ownership::NotHere(_) => None,
        }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// The status for operators.
    pub(super) fn status(&self) -> ReplicatedStatus {
        let seen = self.seen();
        let owner = match self.ownership() {
            Ownership::Here(_) => Some("this node".to_owned()),
            Ownership::NotHere(Whose::Elsewhere { node, .. }) => Some(node.to_string()),
            Ownership::NotHere(Whose::Nobody { .. }) => None,
        };
        ReplicatedStatus {
            name: self.name.to_string(),
            role: seen.role.name(),
            owner,
            epoch: seen.epoch,
            entries: seen.sequence,
            lag_entries: seen.end.saturating_sub(seen.sequence),
            waiting_bytes: seen.waiting_bytes,
            alarm: seen.alarm,
        }
    }

    /// Passes an order to the thread. The order is refused if too many wait.
    pub(crate) fn order(&self, order: Order) {
        match self.orders.try_send(order) {
            Ok(()) => {}
            Err(TrySendError::Full(order)) => order.refuse("too many orders wait already"),
            Err(TrySendError::Closed(order)) => order.refuse("the node is stopping"),
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

impl Opening {
    /// Runs an action that sends, then flushes the sockets.
    fn act<R>(&self, act: impl FnOnce() -> R) -> R {
        let _context = self.keeper.enter();
        let done = act();
        crosstie_transport::uncork_all();
        done
    }

    fn now(&self) -> Time {
        self.clock.time(Instant::now())
    }

    /// Has the log take settings that only the node has.
    fn keep_settings(&self, vhost: &Arc<SharedVhost>, begin: Begin) {
        if let Some(moving) = self.broker.settle_term(vhost, begin) {
            let (broker, name) = (Arc::clone(&self.broker), Arc::clone(vhost.name()));
            drop(
                self.keeper
                    .spawn_blocking(move || broker.forget_held(&name, moving)),
            );
        }
    }

    /// Drops a vhost of many messages where nobody waits for that.
    fn discard(&self, vhost: Arc<SharedVhost>) {
        drop(self.keeper.spawn_blocking(move || drop(vhost)));
    }
}

/// A vhost whose log is being read.
struct Built {
    opening: Arc<Opening>,
    vhost: Vhost<Arc<Peer>>,
    settings: LogSettings,
}

impl Building for Built {
    fn restore(&mut self, records: Vec<Record>) {
        let now = self.opening.now();
        for record in records {
            match record {
                Record::Setting { key, value } => self.settings.set(key, value),
                record => self.vhost.restore(now, record),
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.vhost.memory_bytes()
    }

    fn open(mut self: Box<Self>, beginning: Beginning, journal: &Arc<Journal>) {
        self.restore(beginning.rested);
        (self.settings.epochs, self.settings.place) = (beginning.epochs, beginning.place);
        let Self {
            opening,
            mut vhost,
            settings,
        } = *self;
        let name = Arc::clone(&opening.replicated.name);
        opening.act(|| {
            let now = opening.now();
            let mut outbox = VhostOutbox::default();
            // Before any client enters.
            let begin = opening.broker.begin_term(&name, &settings);
            vhost.restore_policies(opening.broker.policies_of(&name));
            vhost.limit_queues(opening.broker.queues_limit(&name));
            vhost.restored(now, &mut outbox);
            let mut vhosts = BTreeMap::from([(Arc::clone(&name), vhost)]);
            // Rejected definitions were reported when the broker started.
            drop(definitions::define(&opening.definitions, now, &mut vhosts));
            let Some(vhost) = vhosts.remove(&name) else {
                return;
            };
            let shared = Arc::new(SharedVhost::new(
                name,
                vhost,
                opening.clock,
                Arc::clone(&opening.broker.shared),
                opening.serving.clone(),
                Keeper::replicated(
                    journal,
                    opening.broker.limits().commit_bytes_max,
                    settings.has_begun(),
                    settings.place,
                ),
            ));
            shared.settle();
            opening.keep_settings(&shared, begin);
            opening.keeper.spawn(Arc::clone(&shared).keep_time());
            let ownership = Ownership::Here(Arc::clone(&shared));
            opening.replicated.set_ownership(ownership);
            // A reload may have changed them meanwhile.
            let limits = vhost_config(&shared.name, &opening.broker.limits()).limits;
            shared.lock().set_limits(limits);
            shared.set_policies(opening.broker.policies_of(shared.name()));
            opening.broker.put_vhost_limits(shared.name());
        });
    }
}

impl Holder for Opening {
    fn build(self: Arc<Self>) -> Box<dyn Building> {
        let limits = self.broker.limits();
        let config = VhostConfig {
            paging: replicated_paging(&limits),
            ..vhost_config(&self.replicated.name, &limits)
        };
        let policies = self.broker.policies_of(&self.replicated.name);
        let mut vhost = Vhost::new(config, seed());
        vhost.set_policies(self.now(), policies, &mut VhostOutbox::default());
        Box::new(Built {
            opening: self,
            vhost,
            settings: LogSettings::default(),
        })
    }

    fn commit(&self, position: Position, waiting_bytes: usize, of_messages: usize) {
        if let Some(vhost) = self.replicated.here() {
            self.act(|| {
                vhost.set_ledger_bytes(of_messages);
                vhost.log_goes_on(waiting_bytes);
                vhost.handle_commit(position, Ok(()));
            });
        }
    }

    fn stall(&self) {
        if let Some(vhost) = self.replicated.here()
            && self.act(|| vhost.log_stalls())
        {
            let name = &self.replicated.name;
            tracing::warn!(
                "vhost '{name}': its log sends no acknowledgements, publishers are blocked"
            );
        }
    }

    fn hold(&self) {
        if let Some(vhost) = self.replicated.here() {
            self.act(|| vhost.judge_waiting(usize::MAX));
        }
    }

    fn go_on(&self) {
        if let Some(vhost) = self.replicated.here() {
            self.act(|| vhost.let_go());
        }
    }

    fn back_up(&self, path: &Path) -> Result<(), String> {
        let ending = || "the node is stopping".to_owned();
        let (done, made) = std::sync::mpsc::channel();
        // The copy becomes a log, which does not record deliveries.
        self.broker
            .shared
            .back_up(path.to_owned(), Batch::default, move |made| {
                let _ = done.send(made.map(drop).map_err(|e| e.to_string()));
            });
        made.recv().map_err(|_| ending())?
    }

    fn close(&self, why: &str) {
        let Some(vhost) = self.replicated.here() else {
            return;
        };
        // No further client may enter.
        self.show(&Whose::Nobody { why: why.into() });
        self.act(|| {
            vhost.stop();
            vhost.let_go();
            // The ledger is counted by itself again.
            vhost.note_ledger_bytes(0);
            let name = &self.replicated.name;
            let reason = format!("vhost '{name}': {why}");
            self.broker.close_vhost(&vhost, &reason);
            vhost.commits.end(why);
            self.broker.end_term(name);
        });
    }

    fn rest(&self, why: &str) -> Vec<(QueueId, i64)> {
        let Some(vhost) = self.replicated.here() else {
            return Vec::new();
        };
        self.close(why);
        let rested = self.act(|| vhost.rest());
        self.discard(vhost);
        rested
    }

    fn note_memory(&self, bytes: usize, of_messages: usize) -> bool {
        let flow = &self.broker.shared.flow;
        let held = match self.replicated.here() {
            Some(vhost) => {
                vhost.note_ledger_bytes(of_messages);
                bytes
            }
            None => bytes + of_messages,
        };
        flow.memory_changed(self.held_bytes.swap(held, Ordering::Relaxed), held);
        self.act(|| flow.judge_memory());
        flow.is_crowded()
    }

    fn page_bytes(&self, under_way: usize) -> usize {
        self.broker.shared.flow.page_bytes(under_way)
    }

    fn show(&self, whose: &Whose) {
        let not_here = Ownership::NotHere(whose.clone());
        self.replicated.set_ownership(not_here);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.note_memory(0, 0);
    }
}

/// Rejects a vhost that was replicated and no longer is: the worker's store lacks the contents of its log.
pub(super) fn check_released(amqp: &model::Amqp, directory: &Path) -> Result<(), String> {
    let beside = directory.join(format!("{}.replicated", amqp.store));
    let released = amqp
        .vhosts
        .iter()
        .filter(|vhost| vhost.replicated.is_none());
    for model::AmqpVhost { name, .. } in released {
        let known = beside.join(format!("{}.known", escaped(name)));
        if known.exists() {
            let (known, store) = (known.display(), &amqp.store);
            return Err(format!(
                "vhost '{name}' was replicated ({known}), and what it has is in its log: \
                 `crosstie amqp release {name} --store {store}` puts this node's copy of it into the store; \
                 without that file it is as the store has it"
            ));
        }
    }
    Ok(())
}

/// Takes the replicated vhosts out of `vhosts`. Their records in the worker's store do not belong to their logs, unless
/// an operator says so.
pub(super) fn take(
    amqp: &model::Amqp,
    vhosts: &mut BTreeMap<Arc<str>, Vhost<Arc<Peer>>>,
    held: &BTreeMap<Arc<str>, Held>,
) -> Vec<Arc<Replicated>> {
    let mut found = Vec::new();
    for vhost in &amqp.vhosts {
        let Some(settings) = &vhost.replicated else {
            continue;
        };
        let name: Arc<str> = vhost.name.as_str().into();
        vhosts.remove(&name);
        let held = held.get(&name).copied();
        found.push(Arc::new(Replicated::new(name, settings.clone(), held)));
    }
    found
}

/// The listeners for other nodes: one for each address of the replicated vhosts.
pub fn cluster_listeners(replicated: &[Arc<Replicated>]) -> Vec<(model::Transport, Cluster)> {
    let mut listeners = BTreeMap::<SocketAddr, (Option<model::NodesTls>, Cluster)>::new();
    for vhost in replicated {
        let address = vhost.settings.address.as_ref();
        let address = address.and_then(|address| address.parse().ok());
        if let (Some(address), Some(splicing)) = (address, vhost.splicing())
            && splicing.splices()
        {
            let (tls, cluster) = listeners.entry(address).or_default();
            tls.clone_from(&vhost.settings.tls);
            let known = (Arc::clone(&vhost.name), splicing.key().clone());
            cluster.vhosts.push(known);
        }
    }
    let listeners = listeners.into_iter();
    let listeners = listeners.map(|(address, (tls, cluster))| (transport(address, tls), cluster));
    listeners.collect()
}
