//! One router worker, running: its threads, and what is started and stopped on them.

use std::path::PathBuf;
use std::sync::{Arc, Weak, mpsc};
use std::time::{Duration, SystemTime};

use crosstie_auth::wamp::SigningKey;
use crosstie_config::{self as model, Role};
use crosstie_transport::{Connection, Cores, WorkerOptions, Workers};
use parking_lot::Mutex;

use crate::amqp::{self, Broker};
use crate::audit::Audit;
use crate::bridges;
use crate::error::{StartError, StartFault, StopError};
use crate::leaving;
use crate::listen::{Listening, MakeHttp};
use crate::meta_session::MetaSession;
use crate::overview::Overview;
use crate::programs::Programs;
use crate::report;
use crate::router_state::RouterState;
use crate::transports::RunningTransport;
use crate::wamp::end_reason::EndReason;
use crate::wamp::peer::Peer;
use crate::wamp::session::{self, Farewell};
use crate::watch::Connections;

/// What a router needs to know beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct RouterOptions {
    /// The node's id, which its clients are told.
    pub node: String,
    /// It serves the node itself: who comes and goes is told at level debug.
    pub is_private: bool,
    /// Relative paths of the configuration are relative to this directory.
    pub directory: PathBuf,
    /// How long the first thread polls before it sleeps, where the configuration asks for it.
    pub busy_poll: Duration,
    /// What the pages tell of the node that the router belongs to.
    pub overview: Arc<Overview>,
    /// Where it is written who was not let in.
    pub audit: Option<Arc<Audit>>,
    /// What it proves with that it is itself, to clients that ask for that.
    pub key: Option<Arc<SigningKey>>,
    /// Who starts what web services are answered by; without it these do not start.
    pub programs: Option<Arc<dyn Programs>>,
}

/// A running router. It knows nothing of other routers.
///
/// Realms, roles and transports may be started and stopped in any order, by any thread that is
/// not one of the router's own. What is stopped is told so, and may be started again at once.
pub struct Router {
    pub(crate) state: Arc<RouterState>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) options: RouterOptions,
    /// In the order in which they were started.
    pub(crate) transports: Mutex<Vec<RunningTransport>>,
    /// Operators' listeners that this router's threads serve.
    pub(crate) pages: Mutex<Vec<Weak<Listening>>>,
}

/// A realm that runs.
#[derive(Clone, Debug)]
pub struct RealmStatus {
    pub name: String,
    pub started: SystemTime,
    pub sessions: usize,
    pub subscriptions: usize,
    pub registrations: usize,
    /// Calls that wait for their last answer.
    pub calls: usize,
    /// The names of its roles, in the order in which they were started.
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
    /// Starts the threads of `worker`; none of its realms or transports yet.
    pub(crate) fn start_with(
        worker: &model::RouterWorker,
        limits: &model::Limits,
        options: &RouterOptions,
        make_http: MakeHttp,
    ) -> Result<Self, StartError> {
        let workers = threads(worker, options).map_err(|error| StartError {
            what: format!("the threads of worker {}", worker.id),
            fault: StartFault::Io(error),
        })?;
        let state = Arc::new(RouterState::new(
            worker,
            limits,
            options,
            workers.keeper_handle(),
            make_http,
        ));
        let watched = Arc::clone(&state);
        workers.spawn_keeper(async move { watched.watch.run(&watched.door).await });
        Ok(Self {
            state,
            workers: Arc::new(workers),
            options: options.clone(),
            transports: Mutex::default(),
            pages: Mutex::default(),
        })
    }

    /// Starts AMQP: opens the store, restores what it kept, and takes what definitions declare.
    /// Once, and before the transports that lead to it. Returns what of the definitions was not
    /// taken, and why.
    pub fn start_amqp(&self, amqp: &model::Amqp) -> Result<Vec<model::Skipped>, StartError> {
        let what = || format!("AMQP of worker {}", self.id());
        let failed = |fault| StartError {
            what: what(),
            fault,
        };
        self.check_runs(what)?;
        if self.state.amqp().is_some() {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let opened = Broker::open(amqp, &self.options.directory, &self.workers);
        let (broker, skipped) =
            opened.map_err(|e| failed(StartFault::Io(std::io::Error::other(e))))?;
        if !self.state.set_amqp(Arc::clone(&broker)) {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let (directory, workers) = (&self.options.directory, &self.workers);
        let started = broker.start_replicated(amqp, &self.state, directory, workers);
        started.map_err(|e| failed(StartFault::Io(std::io::Error::other(e))))?;
        for (transport, cluster) in amqp::cluster_listeners(broker.replicated()) {
            self.start_cluster_listener(&transport, cluster)?;
        }
        Ok(skipped)
    }

    /// Starts a component that the router is itself. It runs as long as the router.
    pub fn start_bridge(&self, bridge: &model::OutgoingBridge) -> Result<(), StartError> {
        let what = || self.of_worker("component", &bridge.id);
        self.check_runs(what)?;
        let rooms = Arc::clone(&self.state);
        let kind = match bridge.kind {
            model::OutgoingKind::Callee { .. } => "callee",
            _ => "forwarder",
        };
        let counts = self.state.counts_of(kind, &bridge.id);
        let run = bridges::run(bridge, rooms, counts, &self.options.directory);
        let started = run.and_then(|run| self.workers.spawn_web(run));
        started.map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })
    }

    /// Joins a realm for its meta API.
    pub fn meta_session(&self, realm: &str) -> Result<MetaSession, String> {
        let rooms = Arc::clone(&self.state);
        MetaSession::join(rooms, realm, self.workers.keeper_handle())
    }

    /// AMQP for operators, where it was started.
    pub fn amqp(&self) -> Option<amqp::Operators> {
        let broker = Arc::clone(self.state.amqp()?);
        let context = self.workers.keeper_handle();
        Some(amqp::Operators::new(
            broker,
            Arc::clone(&self.state),
            context,
        ))
    }

    /// Stops a realm. Its sessions are told GOODBYE `wamp.close.close_realm`, and are out of it
    /// when this returns; their connections may open other sessions.
    pub fn stop_realm(&self, name: &str) -> Result<(), StopError> {
        let Some(realm) = self.state.remove_realm(name) else {
            return Err(StopError {
                what: self.of_worker("realm", name),
            });
        };
        let stopped = Arc::clone(&realm);
        self.end_sessions(move || Some(realm.stop()));
        if let Some(store) = &stopped.store {
            store.keeper.stop();
        }
        Ok(())
    }

    /// Starts a role in a realm that runs.
    pub fn start_role(&self, realm: &str, role: &Role) -> Result<(), StartError> {
        let failed = |fault| StartError {
            what: self.of_realm(realm, &role.name),
            fault,
        };
        let found = self.state.realm(realm);
        let Some(found) = found else {
            return Err(failed(StartFault::NoSuch(format!("realm {realm}"))));
        };
        match found.start_role(role) {
            true => Ok(()),
            false => Err(failed(StartFault::AlreadyRunning)),
        }
    }

    /// Stops a role. Its sessions are told GOODBYE `wamp.close.killed`, as those of a stopped
    /// realm are told.
    pub fn stop_role(&self, realm: &str, role: &str) -> Result<(), StopError> {
        let stopped = self.state.realm(realm).is_some_and(|found| {
            let name = role.to_owned();
            self.end_sessions(move || found.stop_role(&name))
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
        &self.state.id
    }

    /// The realms, in the order in which they were started.
    pub fn realms(&self) -> Vec<RealmStatus> {
        let realms = self.state.realms();
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

    /// The roles of a realm, in the order in which they were started; `None` if there is no such
    /// realm.
    pub fn roles(&self, realm: &str) -> Option<Vec<RoleStatus>> {
        let roles = self.state.realm(realm)?.roles().into_iter();
        let status = roles.map(|(started, sessions)| RoleStatus {
            role: started.role,
            started: started.started,
            sessions,
        });
        Some(status.collect())
    }

    /// Connections at the moment, of all transports.
    pub fn connections(&self) -> usize {
        self.state.connections()
    }

    /// How many threads serve connections; the router has one more.
    pub fn threads(&self) -> usize {
        self.workers.count()
    }

    /// Says GOODBYE to every session, and lets none in any more. Several routers that are to stop
    /// are told so first, and waited for afterwards.
    pub fn begin_stop(&self) {
        self.state.stop();
        let state = Arc::clone(&self.state);
        let transports = self.conversing();
        for listening in &transports {
            listening.stop();
        }
        for listening in self.pages.lock().iter().filter_map(Weak::upgrade) {
            listening.stop();
        }
        self.workers.spawn_first(async move {
            for realm in state.realms() {
                let peers = realm.peers();
                let farewell = &Farewell::SHUTDOWN;
                let messages = &state.session_messages;
                peers
                    .iter()
                    .for_each(|p| session::say_goodbye(messages, p, farewell));
            }
            for listening in &transports {
                state.watch.finish_unopened(listening.number);
            }
            if let Some(broker) = state.amqp() {
                broker.close_connections(&state.watch, None, "shutdown");
            }
            crosstie_transport::uncork();
        });
    }

    /// Says GOODBYE to every session, waits a bounded time for them to go, and stops. Whether all
    /// that should survive could be stored.
    pub fn stop(self) -> bool {
        if !self.state.is_stopping() {
            self.begin_stop();
        }
        leaving::await_all(&self.state);
        for listening in self.conversing() {
            self.state.watch.close_all(listening.number);
        }
        self.leave_fabric();
        self.end()
    }

    /// Tells realms' other nodes that this one ends.
    fn leave_fabric(&self) {
        let realms = self.state.realms();
        let links: Vec<_> = realms.iter().filter_map(|r| r.link.clone()).collect();
        if links.is_empty() {
            return;
        }
        self.run(async move {
            links.iter().for_each(|link| link.stop());
            crosstie_transport::uncork();
        });
    }

    /// Ends its threads, and then the stores'. A second time is none.
    fn end(&self) -> bool {
        // Its own tasks hold the threads, which would live on.
        self.workers.stop();
        let mut is_stored = self.state.amqp().is_none_or(|broker| broker.stop());
        for realm in self.state.realms() {
            is_stored &= realm.store.as_ref().is_none_or(|store| store.keeper.stop());
        }
        is_stored
    }

    /// Has the keeper take sessions out, and waits until they are; whether there was something
    /// to take them out of. What they are told leaves by that thread.
    pub(crate) fn end_sessions(
        &self,
        end: impl FnOnce() -> Option<Vec<Peer>> + Send + 'static,
    ) -> bool {
        let state = Arc::clone(&self.state);
        let ended = self.run(async move {
            let ended = end();
            crosstie_transport::uncork();
            // Not kept open for the sake of being closed later.
            let told = ended.as_deref().unwrap_or_default().iter();
            let told: Vec<_> = told.map(|p| Arc::downgrade(&p.connection)).collect();
            if !told.is_empty() {
                tokio::spawn(close_silent(state, told));
            }
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
        match self.state.is_stopping() {
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

/// Ends the connections whose sessions were told GOODBYE, and that have been nobody's since: they
/// have had as long as a new one has to become a session.
pub(crate) async fn close_silent(state: Arc<RouterState>, told: Vec<Weak<Connection>>) {
    tokio::time::sleep(state.handshake_timeout).await;
    let realms = state.realms();
    let joined: Vec<_> = realms.iter().flat_map(|realm| realm.peers()).collect();
    let joined: Connections = joined.iter().map(|peer| &peer.connection).collect();
    for connection in told.iter().filter_map(Weak::upgrade) {
        if !joined.has(&connection) && !connection.is_closed() {
            EndReason::Silent.note(&connection);
            report::peer_fault(&connection, "timeout", "no answer to GOODBYE in time");
            connection.close();
        }
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
    if worker.busy_poll {
        worker_options.busy_poll = options.busy_poll;
    }
    Workers::start(worker_options)
}
