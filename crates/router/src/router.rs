//! A running router worker: its threads, and the parts that start and stop on them.

use std::path::PathBuf;
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crosstie_auth::wamp::SigningKey;
use crosstie_broker::{self as amqp, Broker, Home};
use crosstie_config::{self as model, Role};
use crosstie_front::listen::Listening;
use crosstie_realms::audit::Audit;
use crosstie_realms::peer::Peer;
use crosstie_realms::silence::close_silent;
use crosstie_site::overview::Overview;
use crosstie_site::programs::Programs;
use crosstie_transport::{Cores, Waiting, WorkerOptions, Workers};
use parking_lot::Mutex;

use crate::bridges;
use crate::departure;
use crate::error::{StartError, StartFault, StopError};
use crate::leaving::Leaving;
use crate::meta_session::MetaSession;
use crate::registry::Registry;
use crate::transports::RunningTransport;

/// The parameters of a router beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct RouterOptions {
    /// The node's id, as sent to clients.
    pub node: String,
    /// It serves the node itself: sessions are logged at debug level.
    pub is_private: bool,
    /// The base of the configuration's relative paths.
    pub directory: PathBuf,
    /// Time for which the first thread polls before it sleeps, if configured.
    pub busy_poll: Duration,
    /// A store that lacks confirmed data is opened without them.
    pub accepts_loss: bool,
    /// The router's node, for the pages.
    pub overview: Arc<Overview>,
    /// The audit log.
    pub audit: Option<Arc<Audit>>,
    /// The router's key, with which it authenticates itself to clients.
    pub key: Option<Arc<SigningKey>>,
    /// Starts the programs of web services; without this, such services do not start.
    pub programs: Option<Arc<dyn Programs>>,
}

/// A running router. It knows nothing of other routers.
///
/// Realms, roles and transports may be started and stopped in any order, by any thread except the router's own. Clients
/// of a stopped part are told so, and the part may be started again at once.
pub struct Router {
    pub(crate) state: Arc<Registry>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) options: RouterOptions,
    /// In the order of their starts.
    pub(crate) transports: Mutex<Vec<RunningTransport>>,
    /// Operators' listeners that this router's threads serve.
    pub(crate) pages: Mutex<Vec<Weak<Listening>>>,
    /// The clients of a drain.
    pub(crate) leaving: Mutex<Leaving>,
    /// Disconnects once all clients have been told to leave. Present from the beginning of the stop.
    pub(crate) dismissed: Mutex<Option<mpsc::Receiver<()>>>,
    /// The thread of a stop of AMQP. Returns whether all durable data could be stored.
    pub(crate) stopping_amqp: Mutex<Option<JoinHandle<bool>>>,
}

/// A running realm.
#[derive(Clone, Debug)]
pub struct RealmStatus {
    pub name: String,
    pub started: SystemTime,
    pub sessions: usize,
    pub subscriptions: usize,
    pub registrations: usize,
    /// Calls without a final answer.
    pub calls: usize,
    /// The names of its roles, in the order of their starts.
    pub roles: Vec<String>,
}

/// A role that sessions may have.
#[derive(Clone, Debug)]
pub struct RoleStatus {
    pub role: Role,
    pub started: SystemTime,
    pub sessions: usize,
}

impl Router {
    /// Starts the threads of `worker`, without its realms and transports.
    pub fn start(
        worker: &model::RouterWorker,
        limits: &model::Limits,
        options: &RouterOptions,
    ) -> Result<Self, StartError> {
        let workers = threads(worker, options).map_err(|error| StartError {
            what: format!("the threads of worker {}", worker.id),
            fault: StartFault::Io(error),
        })?;
        let state = Arc::new(Registry::new(
            worker,
            limits,
            options,
            workers.keeper_handle(),
        ));
        let watched = Arc::clone(&state);
        workers.spawn_keeper(async move {
            let door = &watched.realms.door;
            watched.watch.run(|| door.is_crowded()).await;
        });
        Ok(Self {
            state,
            workers: Arc::new(workers),
            options: options.clone(),
            transports: Mutex::default(),
            pages: Mutex::default(),
            leaving: Mutex::default(),
            dismissed: Mutex::default(),
            stopping_amqp: Mutex::default(),
        })
    }

    /// Starts AMQP: opens the store, restores its contents, and imports the definitions. Called before the transports
    /// that lead to it. Returns rejected definitions with the reasons.
    pub fn start_amqp(&self, amqp: &model::Amqp) -> Result<Vec<model::Skipped>, StartError> {
        let what = || format!("AMQP of worker {}", self.id());
        let failed = |fault| StartError {
            what: what(),
            fault,
        };
        self.check_runs(what)?;
        // A stop that is not complete has the store.
        self.await_amqp_stop();
        if self.state.amqp().is_some() {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let opened = Broker::open(amqp, self.home(), &self.options.directory, &self.workers);
        let (broker, skipped) =
            opened.map_err(|e| failed(StartFault::Io(std::io::Error::other(e))))?;
        if !self.state.set_amqp(Arc::clone(&broker)) {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let (directory, workers) = (&self.options.directory, &self.workers);
        let started = broker.start_replicated(amqp, directory, workers);
        started.map_err(|e| failed(StartFault::Io(std::io::Error::other(e))))?;
        for (transport, cluster) in amqp::cluster_listeners(broker.replicated()) {
            self.start_cluster_listener(&transport, cluster)?;
        }
        Ok(skipped)
    }

    /// The state that a broker of this router shares with it.
    pub(crate) fn home(&self) -> Home {
        Home {
            node: self.options.node.clone(),
            worker: self.id().to_owned(),
            bounds: Arc::clone(&self.state.bounds),
            watch: Arc::clone(&self.state.watch),
            accepts_loss: self.options.accepts_loss,
        }
    }

    /// Starts a component that is part of the router. It runs as long as the router.
    pub fn start_bridge(&self, bridge: &model::OutgoingBridge) -> Result<(), StartError> {
        let what = || self.of_worker("component", &bridge.id);
        self.check_runs(what)?;
        let rooms = Arc::clone(&self.state.realms);
        let kind = match bridge.kind {
            model::OutgoingKind::Callee { .. } => "callee",
            _ => "forwarder",
        };
        let counts = self.state.grounds.requests.of(kind, &bridge.id);
        let run = bridges::run(bridge, rooms, counts, &self.options.directory);
        let started = run.and_then(|run| self.workers.spawn_web(run));
        started.map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })
    }

    /// Joins a realm for its meta API.
    pub fn meta_session(&self, realm: &str) -> Result<MetaSession, String> {
        let rooms = Arc::clone(&self.state.realms);
        MetaSession::join(rooms, realm, self.workers.keeper_handle())
    }

    /// AMQP for operators, if it was started.
    pub fn amqp(&self) -> Option<amqp::Operators> {
        let broker = self.state.amqp()?;
        let context = self.workers.keeper_handle();
        Some(amqp::Operators::new(broker, context))
    }

    /// Stops a realm: no client can join it any more. Its open calls may be answered within the shutdown timeout.
    /// Without open calls, its sessions have left when this returns. Their connections are closed so that the clients
    /// return, or the clients are sent GOODBYE `wamp.close.close_realm`.
    pub fn stop_realm(&self, name: &str) -> Result<(), StopError> {
        let Some(realm) = self.state.realms.remove(name) else {
            return Err(StopError {
                what: self.of_worker("realm", name),
            });
        };
        if realm.open_calls(None).is_empty() {
            // Before their sessions end, MQTT clients leave without their wills.
            self.state.spaces.close(name);
            let stopped = Arc::clone(&realm);
            let says_goodbye = self.state.realms.says_goodbye;
            self.end_sessions(!says_goodbye, move || Some(stopped.stop(says_goodbye)));
            realm.stop_store();
            return Ok(());
        }
        let (state, id) = (Arc::clone(&self.state), self.of_worker("realm", name));
        self.workers.spawn_keeper(async move {
            departure::drain(&state, std::slice::from_ref(&realm), None).await;
            let says_goodbye = state.realms.says_goodbye;
            state.spaces.close(realm.name());
            let ended = realm.stop(says_goodbye);
            close_later(state, &ended, !says_goodbye);
            realm.stop_store();
            tracing::info!("{id}: the sessions that had open calls are out of it");
        });
        Ok(())
    }

    /// Starts a role in a running realm.
    pub fn start_role(&self, realm: &str, role: &Role) -> Result<(), StartError> {
        let failed = |fault| StartError {
            what: self.of_realm(realm, &role.name),
            fault,
        };
        let found = self.state.realms.realm(realm);
        let Some(found) = found else {
            return Err(failed(StartFault::NoSuch(format!("realm {realm}"))));
        };
        match found.start_role(role) {
            true => Ok(()),
            false => Err(failed(StartFault::AlreadyRunning)),
        }
    }

    /// Gives a role of a running realm other permissions, bounds or another authorizer. Its sessions stay.
    pub fn change_role(&self, realm: &str, role: &Role) -> Result<(), StartError> {
        let found = self.state.realms.realm(realm);
        match found.is_some_and(|found| found.change_role(role)) {
            true => Ok(()),
            false => Err(StartError {
                what: self.of_realm(realm, &role.name),
                fault: StartFault::NoSuch(format!("role {} of realm {realm}", role.name)),
            }),
        }
    }

    /// Stops a role. Its sessions are sent GOODBYE `wamp.close.killed`, like those of a stopped realm.
    pub fn stop_role(&self, realm: &str, role: &str) -> Result<(), StopError> {
        let stopped = self.state.realms.realm(realm).is_some_and(|found| {
            let name = role.to_owned();
            self.end_sessions(false, move || found.stop_role(&name))
        });
        match stopped {
            true => Ok(()),
            false => Err(StopError {
                what: self.of_realm(realm, role),
            }),
        }
    }

    /// The worker's id.
    pub fn id(&self) -> &str {
        self.state.id()
    }

    /// The realms, in the order of their starts.
    pub fn realms(&self) -> Vec<RealmStatus> {
        let realms = self.state.realms.realms();
        let status = realms.iter().map(|realm| {
            let counts = realm.counts();
            RealmStatus {
                name: realm.name().to_owned(),
                started: realm.started,
                sessions: counts.sessions,
                subscriptions: counts.subscriptions,
                registrations: counts.registrations,
                calls: counts.calls,
                roles: realm.roles().into_iter().map(|r| r.0.role.name).collect(),
            }
        });
        status.collect()
    }

    /// The roles of a realm, in the order of their starts; `None` if the realm does not exist.
    pub fn roles(&self, realm: &str) -> Option<Vec<RoleStatus>> {
        let roles = self.state.realms.realm(realm)?.roles().into_iter();
        let status = roles.map(|(started, sessions)| RoleStatus {
            role: started.role,
            started: started.started,
            sessions,
        });
        Some(status.collect())
    }

    /// Current number of connections, of all transports.
    pub fn connections(&self) -> usize {
        self.state.connections()
    }

    /// Number of serving threads; the router has one more.
    pub fn threads(&self) -> usize {
        self.workers.count()
    }

    /// Ends its threads, and then the stores'. A second call does nothing.
    pub(crate) fn end(&self) -> bool {
        // The router's own tasks would keep the threads alive.
        self.workers.stop();
        let mut is_stored = self.await_amqp_stop();
        is_stored &= self.state.amqp().is_none_or(|broker| broker.stop());
        is_stored &= self.state.spaces.close_all();
        for realm in self.state.realms.realms() {
            is_stored &= realm.store.as_ref().is_none_or(|store| store.keeper.stop());
        }
        is_stored
    }

    /// Removes sessions on the keeper, and waits for that. Returns false if the realm or role does not exist. The
    /// keeper's thread sends their last messages.
    pub(crate) fn end_sessions(
        &self,
        are_closed: bool,
        end: impl FnOnce() -> Option<Vec<Peer>> + Send + 'static,
    ) -> bool {
        let state = Arc::clone(&self.state);
        let ended = self.run(async move {
            let ended = end();
            close_later(state, ended.as_deref().unwrap_or_default(), are_closed);
            ended.is_some()
        });
        ended.unwrap_or(false)
    }

    /// Runs `future` on the keeper, and waits for it.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> Option<R> {
        let (done, result) = mpsc::sync_channel(1);
        self.workers.spawn_keeper(async move {
            let _ = done.send(future.await);
        });
        result.recv().ok()
    }

    pub(crate) fn check_runs(&self, what: impl FnOnce() -> String) -> Result<(), StartError> {
        match self.state.bounds.is_stopping() {
            false => Ok(()),
            true => Err(StartError {
                what: what(),
                fault: StartFault::Stopping,
            }),
        }
    }

    pub(crate) fn of_worker(&self, what: &str, name: &str) -> String {
        format!("{what} {name} of worker {}", self.id())
    }

    fn of_realm(&self, realm: &str, role: &str) -> String {
        format!("role {role} of realm {realm} of worker {}", self.id())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.end();
    }
}

/// Flushes the last messages of removed sessions, and closes their connections: soon if they were closed, or else after
/// the time for an answer to GOODBYE.
fn close_later(state: Arc<Registry>, ended: &[Peer], are_closed: bool) {
    crosstie_transport::uncork();
    // Weak, so that waiting does not keep the connections open.
    let told = ended.iter().map(|peer| Arc::downgrade(&peer.connection));
    let told: Vec<_> = told.collect();
    match (told.is_empty(), are_closed) {
        (true, _) => {}
        (false, true) => drop(tokio::spawn(async move {
            tokio::time::sleep(departure::CLOSED_WITHIN).await;
            let connections = told.iter().filter_map(Weak::upgrade);
            connections.for_each(|connection| connection.close());
        })),
        (false, false) => drop(tokio::spawn(close_silent(Arc::clone(&state.realms), told))),
    }
}

fn threads(worker: &model::RouterWorker, options: &RouterOptions) -> std::io::Result<Workers> {
    let mut worker_options = WorkerOptions::default();
    if !worker.cpu_affinity.is_empty() {
        let cores = Cores::new(&worker.cpu_affinity)?;
        worker_options.threads = cores.count();
        worker_options.cores = Some(cores);
    }
    worker_options.threads = worker.threads.unwrap_or(worker_options.threads);
    let percent = u8::try_from(worker.spin_budget).unwrap_or(100);
    worker_options.waiting = match worker.busy_poll {
        true => Waiting::Always(options.busy_poll),
        false => Waiting::Adaptive(percent),
    };
    Workers::start(worker_options)
}
