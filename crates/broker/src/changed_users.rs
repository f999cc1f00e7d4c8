//! Changed users and permissions, which apply to present connections too.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crosstie_auth::{Permissions, Users};
use crosstie_config as model;
use crosstie_metadata::Layers;

use crate::backends::Backends;
use crate::broker::Broker;
use crate::client_rights::of_client;
use crate::definitions::{self, with_definitions};
use crate::metadata::layers;
use crate::peer::Peer;

/// Users, backends of logins, and policies of definitions, that are ready to replace those of the present configuration.
pub struct ReadyUsers {
    layers: Layers,
    /// `None`: they have not changed. New ones have forgotten all answers, but for fetched keys of tokens.
    backends: Option<Arc<Backends>>,
}

impl Broker {
    /// Makes the users of a configuration ready, with those of its definitions. An error names the file and its fault.
    pub fn ready_users(&self, amqp: &model::Amqp, directory: &Path) -> Result<ReadyUsers, String> {
        let (all, defined, _) = with_definitions(amqp, directory)?;
        let mut layers = layers(amqp, &all, &self.home.node)?;
        for skipped in definitions::add(&mut layers, &defined) {
            tracing::warn!("{skipped}");
        }
        let present = self.backends();
        let backends = match present.is_of(&amqp.auth_backends, directory) {
            true => None,
            false => {
                let made = {
                    let keeper = &self.logins.keeper;
                    let former = Some(&*present);
                    let on = (&self.asked, &self.home.bounds.limits.account);
                    Backends::new(&amqp.auth_backends, directory, on, keeper, former)
                };
                Some(Arc::new(made?))
            }
        };
        Ok(ReadyUsers { layers, backends })
    }

    /// Replaces the users of the configuration. Those of run time stay, but for those that the configuration names now.
    pub fn put_users(&self, ReadyUsers { layers, backends }: ReadyUsers) {
        if let Some(backends) = backends {
            self.put_backends(backends);
        }
        self.reconfigure(layers);
    }

    /// Replaces the backends of logins. Present connections ask the new server, and their new tokens are read by the new
    /// rules; those that a kind of backend has let in that is gone are closed.
    fn put_backends(&self, backends: Arc<Backends>) {
        *self.backends.write() = Arc::clone(&backends);
        let is_gone = |peer: &Peer| {
            let rights = peer.rights.as_ref();
            rights.is_some_and(|rights| !rights.follow(&backends))
        };
        self.close_where(is_gone, backend_is_gone);
        crosstie_transport::uncork();
    }

    /// Has a connection that entered its vhost while the backends were replaced follow them.
    pub(crate) fn follow_backends(&self, peer: &Arc<Peer>) {
        let Some(rights) = &peer.rights else {
            return;
        };
        // Under the lock, so that a reload's backends are not replaced with these.
        let follows = rights.follow(&self.backends.read());
        if !follows {
            self.close_where(|other| other.number == peer.number, backend_is_gone);
        }
    }

    /// The present backends of logins.
    pub(crate) fn backends(&self) -> Arc<Backends> {
        Arc::clone(&self.backends.read())
    }

    /// Replaces the users. Connections of users that are gone are closed with 320; those of others have the present
    /// permissions and tags from their next method on. A changed password applies to later logins. Clients that other nodes
    /// have authenticated follow the permissions.
    pub(crate) fn put_users_now(&self, newer: Arc<Users>) {
        let former = self.users.put(Arc::clone(&newer));
        let peers: Vec<_> = self.peers.lock().values().cloned().collect();
        for peer in peers.iter().filter(|peer| peer.rights.is_none()) {
            let (user, vhost) = (&peer.about.user, &peer.vhost.name);
            let rights = |users: &Users| {
                let permissions = users.permissions(user, vhost).map(Arc::clone);
                (permissions, is_impersonator(users, user))
            };
            let is_followed = newer.find(user).is_some() || !is_own(peer);
            if is_followed && rights(&former) != rights(&newer) {
                set_permissions(peer, &newer);
            }
        }
        let is_gone = |peer: &Peer| is_own(peer) && newer.find(&peer.about.user).is_none();
        self.close_where(is_gone, |peer| {
            format!("user '{}' is deleted", peer.about.user)
        });
        crosstie_transport::uncork();
    }

    /// Has a connection that entered its vhost while the users were replaced follow them.
    pub(crate) fn follow_users(&self, peer: &Arc<Peer>) {
        if !self.users.were_put() || !is_own(peer) {
            return;
        }
        let users = self.users.now();
        match users.find(&peer.about.user) {
            Some(_) => set_permissions(peer, &users),
            None => self.close_where(
                |other| other.number == peer.number,
                |peer| format!("user '{}' is deleted", peer.about.user),
            ),
        }
    }
}

impl Broker {
    /// Has another node's client, about which this node has decided, follow permissions that were replaced while it
    /// entered its vhost.
    pub(crate) fn follow_permissions(&self, peer: &Peer) {
        if self.users.were_put() {
            set_permissions(peer, &self.users.now());
        }
    }
}

/// Whether the client is one of the broker's own users that this node has authenticated.
fn is_own(peer: &Peer) -> bool {
    peer.about.from.is_none() && peer.rights.is_none()
}

fn backend_is_gone(peer: &Peer) -> String {
    format!("the backend of user '{}' is gone", peer.about.user)
}

fn set_permissions(peer: &Peer, users: &Users) {
    let found = users.permissions(&peer.about.user, &peer.vhost.name);
    let permissions = found.map_or_else(|| Arc::new(Permissions::none()), Arc::clone);
    let permissions = of_client(
        &permissions,
        &peer.about,
        &peer.vhost.shared.client_patterns,
    );
    let Some(key) = peer.key.get() else {
        return;
    };
    let mut turn = peer.vhost.turn(Instant::now());
    let (vhost, ..) = turn.enter();
    // Of another node's client that node knows it.
    let is_impersonator = is_own(peer).then(|| is_impersonator(users, &peer.about.user));
    vhost.set_permissions(*key, permissions, is_impersonator);
    turn.finish();
}

/// Whether the user's tags let it publish in the name of others.
fn is_impersonator(users: &Users, user: &str) -> bool {
    let found = users.find(user);
    found.is_some_and(|user| user.tags.iter().any(|tag| tag == "impersonator"))
}
