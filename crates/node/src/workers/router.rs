//! Router workers: threads of the node's own process, and their parts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crosstie_config::{
    Amqp, Component, Endpoint, Joint, Json, Limits, RLink, Realm, Role, RouterWorker, Transport,
};
use crosstie_router::{
    ClosedListener, Router, RouterOptions, StartError, StartFault, passed, socket_name,
};
use serde_json::json;
use tracing::{info, warn};

/// A running router, with the ids of its parts.
pub(crate) struct RunningRouter {
    pub(crate) router: Router,
    /// Its name in the log.
    title: &'static str,
    pub(crate) realms: Vec<RunningRealm>,
    /// Sockets for components beside the router, by the role of their sessions.
    private: BTreeMap<String, PathBuf>,
    /// The listeners of AMQP that an operator has stopped.
    stopped_amqp: Option<Vec<ClosedListener>>,
}

/// A realm of a running router.
pub(crate) struct RunningRealm {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) roles: Vec<RunningRole>,
    /// The management realm offers its meta API, too.
    pub(crate) is_meta_api_bridged: bool,
    roles_ever: usize,
}

/// A role of a realm.
pub(crate) struct RunningRole {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The prefix of ids of transports for components beside a router.
const PRIVATE: &str = "components:";

/// The role of a component without a configured one.
pub(crate) const DEFAULT_ROLE: &str = "anonymous";

impl RunningRouter {
    /// Starts its threads, without any parts.
    pub(crate) fn start(
        worker: &RouterWorker,
        limits: &Limits,
        options: &RouterOptions,
        title: &'static str,
    ) -> Result<Self, StartError> {
        Ok(Self {
            router: Router::start(worker, limits, options)?,
            title,
            realms: Vec::new(),
            private: BTreeMap::new(),
            stopped_amqp: None,
        })
    }

    /// Starts its configured parts. Transports with ids in `moving` use any free port if their own is in use.
    pub(crate) fn open(
        &mut self,
        worker: &RouterWorker,
        moving: &[&str],
    ) -> Result<(), StartError> {
        for (index, realm) in worker.realms.iter().enumerate() {
            self.start_realm(&worker.id, &format!("realm{}", index + 1), realm)?;
        }
        if let Some(amqp) = &worker.amqp {
            self.start_amqp(&worker.id, amqp)?;
        }
        for joint in &worker.joints {
            self.start_joint(&worker.id, joint)?;
        }
        for transport in &worker.transports {
            match moving.contains(&transport.id.as_str()) {
                true => self.start_moving_transport(&worker.id, transport)?,
                false => self.start_transport(&worker.id, transport)?,
            };
        }
        for bridge in &worker.bridges {
            self.router.start_bridge(bridge)?;
            let (id, worker) = (&bridge.id, &worker.id);
            info!("Router '{worker}': component '{id}' started, in the router itself");
        }
        for realm in &worker.realms {
            self.start_rlinks(&worker.id, realm)?;
        }
        Ok(())
    }

    pub(crate) fn start_joint(&self, worker: &str, joint: &Joint) -> Result<(), StartError> {
        self.router.start_joint(joint)?;
        info!("Router '{worker}': joint '{}' started", joint.id);
        Ok(())
    }

    /// The configured links of a realm.
    pub(crate) fn start_rlinks(&self, worker: &str, realm: &Realm) -> Result<(), StartError> {
        for link in &realm.rlinks {
            self.start_rlink(worker, &realm.name, link)?;
        }
        Ok(())
    }

    pub(crate) fn start_rlink(
        &self,
        worker: &str,
        realm: &str,
        link: &RLink,
    ) -> Result<(), StartError> {
        self.router.start_rlink(realm, link)?;
        let id = &link.id;
        info!("Router '{worker}': link '{id}' started on realm '{realm}'");
        Ok(())
    }

    pub(crate) fn start_realm(
        &mut self,
        worker: &str,
        id: &str,
        realm: &Realm,
    ) -> Result<(), StartError> {
        self.router.start_realm(realm)?;
        let name = &realm.name;
        info!("Router '{worker}': realm '{id}' (named '{name}') started");
        let mut running = RunningRealm {
            id: id.to_owned(),
            name: name.clone(),
            roles: Vec::new(),
            is_meta_api_bridged: realm.is_meta_api_bridged,
            roles_ever: 0,
        };
        for role in &realm.roles {
            let role_id = running.next_role_id();
            running.add_role(worker, role_id, &role.name);
        }
        self.realms.push(running);
        Ok(())
    }

    pub(crate) fn start_transport(
        &self,
        worker: &str,
        transport: &Transport,
    ) -> Result<Vec<String>, StartError> {
        if transport.kind.is_of_broker() && self.router.amqp().is_none() {
            if self.is_amqp_stopped() {
                return Err(StartError {
                    what: format!("transport {} of worker {worker}", transport.id),
                    fault: StartFault::NoSuch("AMQP, which was stopped".to_owned()),
                });
            }
            self.start_amqp(worker, &Amqp::default())?;
        }
        let urls = self.router.start_transport(transport)?;
        let (id, at) = (&transport.id, urls.join(" "));
        let title = self.title;
        info!("{title} '{worker}': transport '{id}' started at {at}");
        Ok(urls)
    }

    /// Starts a transport on another port if its own is in use.
    fn start_moving_transport(
        &self,
        worker: &str,
        transport: &Transport,
    ) -> Result<Vec<String>, StartError> {
        // The former process of the node may have moved it.
        let mut moved = transport.clone();
        if let Endpoint::Tcp(tcp) = &mut moved.endpoint
            && let Some(port) = passed::port(&socket_name(worker, &transport.id))
        {
            (tcp.port, tcp.port_last) = (port, None);
        }
        let transport = &moved;
        let taken = match self.start_transport(worker, transport) {
            Err(StartError {
                fault: StartFault::Io(error),
                ..
            }) if error.kind() == io::ErrorKind::AddrInUse => error,
            outcome => return outcome,
        };
        let mut elsewhere = transport.clone();
        let Endpoint::Tcp(tcp) = &mut elsewhere.endpoint else {
            return self.start_transport(worker, &elsewhere);
        };
        let port = std::mem::take(&mut tcp.port);
        tcp.port_last = None;
        warn!(
            "Transport '{}' takes another port than {port}: {taken}",
            transport.id
        );
        let urls = self.start_transport(worker, &elsewhere)?;
        if let Some(url) = urls.first() {
            warn!("Clients that are to come here and not to port {port} need the URL {url}");
        }
        Ok(urls)
    }

    /// Starts the broker of AMQP transports, and imports its definitions.
    pub(crate) fn start_amqp(&self, worker: &str, amqp: &Amqp) -> Result<(), StartError> {
        let skipped = self.router.start_amqp(amqp)?;
        if let Some(definitions) = &amqp.definitions {
            info!("Router '{worker}': definitions imported from '{definitions}'");
        }
        for skipped in skipped {
            warn!("Router '{worker}': {skipped}");
        }
        Ok(())
    }

    /// Whether an operator has stopped AMQP.
    pub(crate) fn is_amqp_stopped(&self) -> bool {
        self.stopped_amqp.is_some()
    }

    /// Listeners of AMQP that was stopped and that have changed in the configuration have no former port.
    pub(crate) fn note_changed(&mut self, old: &RouterWorker, new: &RouterWorker) {
        if let Some(closed) = &mut self.stopped_amqp {
            let is_same = |transport: &Transport| new.transports.contains(transport);
            closed.retain(|former| {
                let mut olds = old.transports.iter();
                olds.any(|older| older.id == former.id && is_same(older))
            });
        }
    }

    /// Stops AMQP, which runs, with its listeners and joints. `done` is called when its store is closed, with whether
    /// all durable data could be stored.
    pub(crate) fn stop_amqp(&mut self, done: impl FnOnce(bool) + Send + 'static) {
        for joint in self.router.joints() {
            // It runs.
            let _ = self.router.stop_joint(&joint.joint.id);
        }
        self.stopped_amqp = self.router.stop_amqp(done);
    }

    /// Starts AMQP that was stopped, with the configured listeners and joints. A listener without a configured port
    /// has its former one.
    pub(crate) fn restart_amqp(&mut self, worker: &RouterWorker) -> Result<(), StartError> {
        let Some(closed) = self.stopped_amqp.take() else {
            return Ok(());
        };
        let started = self.start_amqp_again(worker, &closed);
        if started.is_err() {
            // All of it ends again, so that another attempt starts the same.
            self.stop_amqp(|_| {});
            self.stopped_amqp = Some(closed);
        }
        started
    }

    fn start_amqp_again(
        &self,
        worker: &RouterWorker,
        closed: &[ClosedListener],
    ) -> Result<(), StartError> {
        match &worker.amqp {
            Some(amqp) => self.start_amqp(&worker.id, amqp)?,
            // It began with its first transport.
            None => self.start_amqp(&worker.id, &Amqp::default())?,
        }
        let of_broker = worker.transports.iter();
        for transport in of_broker.filter(|transport| transport.kind.is_of_broker()) {
            let former = closed.iter().find(|former| former.id == transport.id);
            let mut again = transport.clone();
            if let Endpoint::Tcp(tcp) = &mut again.endpoint
                && let Some(port) = former.and_then(|former| former.port)
            {
                (tcp.port, tcp.port_last) = (port, None);
            }
            match self.start_transport(&worker.id, &again) {
                // Another program has taken the former port, and the configuration may allow others.
                Err(StartError {
                    fault: StartFault::Io(error),
                    ..
                }) if error.kind() == io::ErrorKind::AddrInUse && again != *transport => {
                    self.start_transport(&worker.id, transport)?
                }
                started => started?,
            };
        }
        for joint in &worker.joints {
            self.start_joint(&worker.id, joint)?;
        }
        Ok(())
    }

    pub(crate) fn start_role(
        &mut self,
        worker: &str,
        realm: usize,
        id: &str,
        role: &Role,
    ) -> Result<(), StartError> {
        let realm = &mut self.realms[realm];
        self.router.start_role(&realm.name, role)?;
        realm.add_role(worker, id.to_owned(), &role.name);
        Ok(())
    }

    /// A component's definition for its host: the checked one, with the socket to use.
    pub(crate) fn definition(
        &mut self,
        component: &Component,
        directory: &Path,
    ) -> Result<Json, String> {
        let role = component.role.as_deref().unwrap_or(DEFAULT_ROLE);
        let socket = self.private_socket(role, directory)?;
        let mut definition = component.definition.clone();
        if let Some(fields) = definition.as_object_mut() {
            let transport = json!({
                "type": "rawsocket",
                "endpoint": {"type": "unix", "path": socket},
                "serializer": "msgpack",
            });
            fields.insert("transport".to_owned(), transport);
        }
        Ok(definition)
    }

    /// The configured and requested transports.
    pub(crate) fn transports(&self) -> Vec<crosstie_router::TransportStatus> {
        let mut transports = self.router.transports();
        transports.retain(|transport| !transport.id.starts_with(PRIVATE));
        transports
    }

    /// The index of that realm in `realms`.
    pub(crate) fn realm(&self, id: &str) -> Option<usize> {
        self.realms.iter().position(|realm| realm.id == id)
    }

    /// The path of the socket for sessions with that role.
    fn private_socket(&mut self, role: &str, directory: &Path) -> Result<PathBuf, String> {
        if let Some(path) = self.private.get(role) {
            return Ok(path.clone());
        }
        // Short and of safe characters, whatever the names of worker and role.
        let path = (1..)
            .map(|number| directory.join(format!("components{number}.sock")))
            .find(|path| !path.exists())
            .unwrap_or_default();
        let transport = private_transport(&format!("{PRIVATE}{role}"), &path, role)?;
        let started = self.router.start_private_transport(&transport);
        started.map_err(|error| error.to_string())?;
        self.private.insert(role.to_owned(), path.clone());
        Ok(path)
    }
}

impl RunningRealm {
    pub(crate) fn next_role_id(&mut self) -> String {
        self.roles_ever += 1;
        format!("role{}", self.roles_ever)
    }

    fn add_role(&mut self, worker: &str, id: String, name: &str) {
        let realm = &self.id;
        info!("Router '{worker}': role '{id}' (named '{name}') started on realm '{realm}'");
        self.roles.push(RunningRole {
            id,
            name: name.to_owned(),
        });
    }
}

/// A RawSocket on a Unix socket that only this user can open, whose sessions have `role`.
pub(crate) fn private_transport(id: &str, path: &Path, role: &str) -> Result<Transport, String> {
    let definition = json!({
        "id": "private",
        "type": "rawsocket",
        "endpoint": {"type": "unix", "path": "private.sock"},
        "auth": {"anonymous": {"type": "static", "role": role}},
    });
    let mut transport = crosstie_config::transport_from_json(&definition)?;
    // Set after the check, which would reject these values in a configuration.
    id.clone_into(&mut transport.id);
    let path = path
        .to_str()
        .ok_or_else(|| format!("the path {} is not UTF-8", path.display()))?;
    transport.endpoint = Endpoint::Unix {
        path: path.to_owned(),
        backlog: 128,
        proxies: None,
    };
    Ok(transport)
}
