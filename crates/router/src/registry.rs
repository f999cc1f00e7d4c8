//! The parts of one router, and their shared state.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crosstie_broker::{self as amqp, Broker};
use crosstie_config as model;
use crosstie_fleets::{BrokerPlace, Fleets};
use crosstie_front::bounds::Bounds;
use crosstie_front::certificate::Certificate;
use crosstie_front::watch::Watch;
use crosstie_mgmt::Api;
use crosstie_realms::realm::SharedRealm;
use crosstie_realms::realms::{Node, Realms};
use crosstie_site::programs::Hosting;
use crosstie_site::request_counts::Requests;
use crosstie_site::services::Grounds;
use crosstie_spaces::Spaces;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;

use crate::joint_state::JointState;
use crate::rlink_state::RLinks;
use crate::router::RouterOptions;
use crate::succession::Haste;
use crate::testee::TesteeTransport;

/// The parts of one router. Its threads and listeners are [`crate::Router`]'s.
pub(crate) struct Registry {
    pub(crate) realms: Arc<Realms>,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) watch: Arc<Watch>,
    /// The topic spaces of MQTT, by realm.
    pub(crate) spaces: Arc<Spaces>,
    /// Per listener.
    pub(crate) page_connections_max: usize,
    /// The URLs of the listeners, by the transports' ids and kinds.
    pub(crate) addresses: Mutex<Vec<(String, &'static str, Vec<String>)>>,
    /// For web services and pages.
    pub(crate) grounds: Grounds,
    testees: Mutex<Vec<Arc<TesteeTransport>>>,
    /// The certificates of running listeners.
    certificates: Mutex<Vec<Weak<Certificate>>>,
    /// The broker of AMQP transports, unless AMQP is stopped.
    amqp: BrokerPlace,
    /// The MQTT clients of its vhosts.
    pub(crate) fleets: Arc<Fleets>,
    is_amqp_stopped: AtomicBool,
    /// Set until the store of stopped AMQP is closed.
    pub(crate) is_amqp_stopping: AtomicBool,
    /// The broker's management API, made with the first transport that needs it.
    api: Mutex<Option<Arc<Api>>>,
    joints: Mutex<Vec<Arc<JointState>>>,
    pub(crate) rlinks: RLinks,
    /// Set if another process waits for the end of the router.
    pub(crate) haste: OnceLock<Haste>,
}

impl Registry {
    pub(crate) fn new(
        worker: &model::RouterWorker,
        limits: &model::Limits,
        options: &RouterOptions,
        keeper: Handle,
    ) -> Self {
        let bounds = Arc::new(Bounds::new(limits, options.is_private));
        let node = Node {
            id: options.node.clone(),
            worker: worker.id.clone(),
            audit: options.audit.clone(),
            key: options.key.clone(),
        };
        let realms = Realms::new(node, limits, worker.says_goodbye, &bounds, keeper);
        let realms = Arc::new(realms);
        let amqp = BrokerPlace::default();
        Self {
            grounds: Grounds {
                realms: Arc::clone(&realms),
                hosting: Hosting {
                    programs: options.programs.clone(),
                    options: worker.process.clone(),
                },
                requests: Arc::<Requests>::default(),
                overview: Arc::clone(&options.overview),
            },
            spaces: Spaces::new(&realms, limits),
            realms,
            bounds,
            watch: Arc::default(),
            page_connections_max: limits.page_connections_max,
            addresses: Mutex::default(),
            testees: Mutex::default(),
            certificates: Mutex::default(),
            fleets: Fleets::new(&amqp, limits),
            amqp,
            is_amqp_stopped: AtomicBool::new(false),
            is_amqp_stopping: AtomicBool::new(false),
            api: Mutex::default(),
            joints: Mutex::default(),
            rlinks: RLinks::default(),
            haste: OnceLock::new(),
        }
    }

    /// The worker's id.
    pub(crate) fn id(&self) -> &str {
        &self.realms.worker
    }

    /// Number of all connections.
    pub(crate) fn connections(&self) -> usize {
        self.bounds.conversations() + self.echoes()
    }

    /// Number of testees' connections.
    fn echoes(&self) -> usize {
        self.testees().iter().map(|t| t.connections()).sum()
    }

    pub(crate) fn add_testee(&self, testee: Arc<TesteeTransport>) {
        self.testees.lock().push(testee);
    }

    pub(crate) fn remove_testee(&self, testee: &Arc<TesteeTransport>) {
        self.testees.lock().retain(|t| !Arc::ptr_eq(t, testee));
    }

    pub(crate) fn testees(&self) -> MutexGuard<'_, Vec<Arc<TesteeTransport>>> {
        self.testees.lock()
    }

    /// Opens the certificate of a listener, if it has one.
    pub(crate) fn open_certificate(
        &self,
        id: &str,
        endpoint: &model::Endpoint,
        directory: &Path,
        protocols: &'static [&'static [u8]],
    ) -> io::Result<Option<Arc<Certificate>>> {
        let Some(files) = endpoint.tls() else {
            return Ok(None);
        };
        let keeper = self.realms.door.keeper();
        let opened = Certificate::open(id, files, directory, protocols, keeper)?;
        let mut certificates = self.certificates.lock();
        certificates.retain(|known| known.strong_count() > 0);
        certificates.push(Arc::downgrade(&opened));
        Ok(Some(opened))
    }

    /// The certificates of running listeners, in the order of their starts.
    pub(crate) fn certificates(&self) -> Vec<Arc<Certificate>> {
        let certificates = self.certificates.lock();
        certificates.iter().filter_map(Weak::upgrade).collect()
    }

    /// The broker of AMQP transports.
    pub(crate) fn amqp(&self) -> Option<Arc<Broker>> {
        self.amqp.read().clone()
    }

    /// The broker's management API, or the one that `make` returns.
    pub(crate) fn api(&self, make: impl FnOnce() -> Option<Arc<Api>>) -> Option<Arc<Api>> {
        let mut api = self.api.lock();
        if api.is_none() {
            *api = make();
        }
        api.clone()
    }

    /// The node's id.
    pub(crate) fn node(&self) -> &str {
        &self.realms.node
    }

    /// Sets the broker. Returns false if there is one.
    pub(crate) fn set_amqp(&self, broker: Arc<Broker>) -> bool {
        let mut amqp = self.amqp.write();
        let is_free = amqp.is_none();
        if is_free {
            *amqp = Some(broker);
            self.is_amqp_stopped.store(false, Ordering::SeqCst);
        }
        is_free
    }

    /// Takes the broker out, with its management API.
    pub(crate) fn take_amqp(&self) -> Option<Arc<Broker>> {
        let mut api = self.api.lock();
        *api = None;
        let taken = self.amqp.write().take();
        // AMQP that has failed to start again stays stopped.
        self.is_amqp_stopped
            .fetch_or(taken.is_some(), Ordering::SeqCst);
        taken
    }

    /// Whether the router's AMQP was stopped.
    pub(crate) fn is_amqp_stopped(&self) -> bool {
        self.is_amqp_stopped.load(Ordering::SeqCst)
    }

    /// Adds a joint. Returns whether its id is new.
    pub(crate) fn add_joint(&self, joint: Arc<JointState>) -> bool {
        let mut joints = self.joints.lock();
        if joints.iter().any(|known| known.joint.id == joint.joint.id) {
            return false;
        }
        joints.push(joint);
        true
    }

    /// The joints, in the order of their starts.
    pub(crate) fn joints(&self) -> Vec<Arc<JointState>> {
        self.joints.lock().clone()
    }

    /// Removes the joint of that id, if any.
    pub(crate) fn take_joint(&self, id: &str) -> Option<Arc<JointState>> {
        let mut joints = self.joints.lock();
        let at = joints.iter().position(|known| known.joint.id == id)?;
        Some(joints.remove(at))
    }
}

/// Every realm, with its router.
pub(crate) fn realms(
    routers: &[Arc<Registry>],
) -> impl Iterator<Item = (&Registry, Arc<SharedRealm>)> {
    let of_router = |router: &Registry| router.realms.realms().into_iter();
    routers
        .iter()
        .flat_map(move |router| of_router(router).map(move |realm| (&**router, realm)))
}

/// The brokers of those routers that speak AMQP.
pub(crate) fn brokers(routers: &[Arc<Registry>]) -> impl Iterator<Item = amqp::Named<'_>> {
    let routers = routers.iter();
    routers.filter_map(|router| Some((router.id(), router.amqp()?)))
}
