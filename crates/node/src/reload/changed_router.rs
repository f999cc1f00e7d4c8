//! The changes of one running router.

use std::collections::{HashMap, HashSet};

use crosstie_config::{RLink, Realm, Role, RouterWorker, Transport};
use crosstie_router::{ReadyTransport, ReadyUsers, ReadyVhosts, StartError};
use tracing::info;

use crate::workers::router::RunningRouter;

/// What was made ready for a router, and is not in force yet.
#[derive(Default)]
pub(super) struct Ready {
    transports: Vec<ReadyTransport>,
    /// Changed AMQP users and permissions.
    users: Option<ReadyUsers>,
    /// AMQP vhosts and limits that may have changed.
    vhosts: Option<ReadyVhosts>,
    /// The ids of transports whose addresses nobody takes over.
    gone: Vec<String>,
    /// The ids and names of realms that were started for it.
    realms: Vec<(String, String)>,
    /// Number of transports that differ by the files of their certificates alone.
    pub(super) certificates: usize,
}

impl RunningRouter {
    /// Makes everything ready that may fail. On failure all of it has ended again.
    pub(super) fn make_ready(
        &mut self,
        old: &RouterWorker,
        new: &RouterWorker,
    ) -> Result<Ready, String> {
        let mut ready = Ready::default();
        match self.try_ready(old, new, &mut ready) {
            Ok(()) => Ok(ready),
            Err(error) => {
                self.discard(ready);
                Err(error.to_string())
            }
        }
    }

    fn try_ready(
        &mut self,
        old: &RouterWorker,
        new: &RouterWorker,
        ready: &mut Ready,
    ) -> Result<(), StartError> {
        // AMQP that an operator has stopped starts with the configuration that is then in force.
        let is_stopped = self.is_amqp_stopped();
        if let Some(amqp) = new.amqp.as_ref()
            && self.router.amqp().is_none()
            && !is_stopped
        {
            self.start_amqp(&new.id, amqp)?;
        }
        // A file of definitions may have changed under the same name.
        if let (Some(older), Some(newer)) = (&old.amqp, &new.amqp)
            && (older != newer || newer.definitions.is_some())
        {
            ready.users = self.router.ready_users(newer)?;
            ready.vhosts = self.router.ready_vhosts(newer)?;
        }
        for realm in &new.realms {
            let older = find(old, &realm.name);
            // One that an operator has stopped stays so until it changes.
            let is_stopped = || self.realms.iter().all(|running| running.name != realm.name);
            if older.is_none_or(|older| older != realm && is_stopped()) {
                let id = self.free_realm_id();
                self.start_realm(&new.id, &id, realm)?;
                ready.realms.push((id, realm.name.clone()));
            }
        }
        let of_stopped = |transport: &&Transport| is_stopped && transport.kind.is_of_broker();
        for transport in new.transports.iter().filter(|new| !of_stopped(new)) {
            let made = match old.transports.contains(transport) {
                true => {
                    let renewed = self.router.ready_certificate(&transport.id)?;
                    ready.certificates += usize::from(renewed.is_some());
                    renewed
                }
                false => Some(self.router.ready_transport(transport)?),
            };
            ready.transports.extend(made);
        }
        let stays = |older: &Transport| {
            let mut newer = new.transports.iter();
            newer.any(|newer| {
                let takes = newer.endpoint.has_address_of(&older.endpoint);
                newer.id == older.id || (takes && !newer.endpoint.is_chosen())
            })
        };
        let gone = old.transports.iter().filter(|older| !stays(older));
        ready.gone = gone.map(|older| older.id.clone()).collect();
        Ok(())
    }

    /// Ends what was made ready.
    pub(super) fn discard(&mut self, ready: Ready) {
        self.router.discard_transports(ready.transports);
        for (id, _) in ready.realms {
            if let Some(at) = self.realm(&id) {
                let realm = self.realms.remove(at);
                // It runs, and has no session.
                let _ = self.router.stop_realm(&realm.name);
            }
        }
    }

    /// Puts the changes in force. Returns what could not be.
    pub(super) fn commit(
        &mut self,
        old: &RouterWorker,
        new: &RouterWorker,
        ready: Ready,
    ) -> Vec<String> {
        let mut troubles = Vec::new();
        let worker = new.id.as_str();
        let is_fresh = |name: &str| ready.realms.iter().any(|(_, fresh)| fresh == name);
        for realm in &new.realms {
            if let Some(older) = find(old, &realm.name).filter(|older| *older != realm)
                && !is_fresh(&realm.name)
            {
                self.put_roles(worker, older, realm, &mut troubles);
            }
        }
        if let Some(users) = ready.users {
            self.router.put_users(users);
            if old.amqp != new.amqp {
                info!("Router '{worker}': AMQP users, permissions, vhosts or limits have changed");
            }
        }
        // After their permissions.
        if let Some(vhosts) = ready.vhosts {
            self.router.put_vhosts(vhosts);
        }
        let count = ready.transports.len() - ready.certificates;
        let revoked = self
            .router
            .replace_transports(ready.transports, &ready.gone);
        if count > 0 || !ready.gone.is_empty() {
            info!(
                "Router '{worker}': transports started or changed: {count}, stopped: {}, principals revoked: {revoked}",
                ready.gone.len()
            );
        }
        for realm in &old.realms {
            self.drop_roles(worker, realm, find(new, &realm.name));
        }
        match self.is_amqp_stopped() {
            true => self.note_changed(old, new),
            false => self.put_joints(old, new, &mut troubles),
        }
        for realm in &new.realms {
            let older = find(old, &realm.name).filter(|_| !is_fresh(&realm.name));
            let links = older.map_or(&[][..], |older| &older.rlinks);
            self.put_links(worker, links, realm, &mut troubles);
        }
        troubles
    }

    /// Starts and changes roles of a realm.
    fn put_roles(&mut self, worker: &str, old: &Realm, new: &Realm, troubles: &mut Vec<String>) {
        let Some(at) = self.realms.iter().position(|realm| realm.name == new.name) else {
            troubles.push(format!("realm '{}' does not run", new.name));
            return;
        };
        let by_name: HashMap<&str, &Role> =
            old.roles.iter().map(|role| (&*role.name, role)).collect();
        for role in &new.roles {
            let older = by_name.get(role.name.as_str());
            let mut running = self.realms[at].roles.iter();
            let done = match running.any(|running| running.name == role.name) {
                _ if older.is_some_and(|older| *older == role) => Ok(()),
                true => self.router.change_role(&new.name, role),
                false => {
                    let id = self.realms[at].next_role_id();
                    self.start_role(worker, at, &id, role)
                }
            };
            if let Err(error) = done {
                troubles.push(error.to_string());
            }
        }
    }

    /// Stops the roles of a realm that `newer` has no more, or the whole realm.
    fn drop_roles(&mut self, worker: &str, realm: &Realm, newer: Option<&Realm>) {
        let Some(at) = self
            .realms
            .iter()
            .position(|running| running.name == realm.name)
        else {
            return;
        };
        let Some(newer) = newer else {
            let running = self.realms.remove(at);
            self.router.stop_rlinks(&realm.name);
            // One that a client has stopped meanwhile is gone already.
            let _ = self.router.stop_realm(&realm.name);
            let (id, name) = (&running.id, &running.name);
            info!("Router '{worker}': realm '{id}' (named '{name}') stopped");
            return;
        };
        let kept: HashSet<&str> = newer.roles.iter().map(|role| &*role.name).collect();
        for role in realm
            .roles
            .iter()
            .filter(|role| !kept.contains(&*role.name))
        {
            self.realms[at]
                .roles
                .retain(|running| running.name != role.name);
            let _ = self.router.stop_role(&realm.name, &role.name);
            let (name, realm) = (&role.name, &self.realms[at].id);
            info!("Router '{worker}': role named '{name}' stopped on realm '{realm}'");
        }
    }

    fn put_joints(&self, old: &RouterWorker, new: &RouterWorker, troubles: &mut Vec<String>) {
        for joint in old
            .joints
            .iter()
            .filter(|joint| !new.joints.contains(joint))
        {
            let _ = self.router.stop_joint(&joint.id);
            info!("Router '{}': joint '{}' stopped", new.id, joint.id);
        }
        for joint in new
            .joints
            .iter()
            .filter(|joint| !old.joints.contains(joint))
        {
            let started = self.start_joint(&new.id, joint);
            troubles.extend(started.err().map(|error| error.to_string()));
        }
    }

    /// Stops and starts links of a realm, which had those of `old`.
    fn put_links(&self, worker: &str, old: &[RLink], new: &Realm, troubles: &mut Vec<String>) {
        for link in old.iter().filter(|link| !new.rlinks.contains(link)) {
            let _ = self.router.stop_rlink(&new.name, &link.id);
            let (id, realm) = (&link.id, &new.name);
            info!("Router '{worker}': link '{id}' stopped on realm '{realm}'");
        }
        for link in new.rlinks.iter().filter(|link| !old.contains(link)) {
            let started = self.start_rlink(worker, &new.name, link);
            troubles.extend(started.err().map(|error| error.to_string()));
        }
    }

    fn free_realm_id(&self) -> String {
        let mut numbers = self.realms.len() + 1..;
        // The range of all numbers does not end before a free one is found.
        let free = numbers.find_map(|number| {
            let id = format!("realm{number}");
            self.realm(&id).is_none().then_some(id)
        });
        free.unwrap_or_default()
    }
}

fn find<'w>(worker: &'w RouterWorker, realm: &str) -> Option<&'w Realm> {
    worker.realms.iter().find(|other| other.name == realm)
}
