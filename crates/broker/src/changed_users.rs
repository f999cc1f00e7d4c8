//! Changed users and permissions, which apply to present connections too.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crosstie_auth::{Permissions, Users};
use crosstie_config as model;

use crate::broker::Broker;
use crate::peer::Peer;
use crate::users::users;

/// Users that are ready to replace the present ones.
pub struct ReadyUsers(Arc<Users>);

impl Broker {
    /// Makes the users of a configuration ready, with those of its definitions. An error names the file and its fault.
    pub fn ready_users(&self, amqp: &model::Amqp, directory: &Path) -> Result<ReadyUsers, String> {
        let mut amqp = amqp.clone();
        if let Some(path) = &amqp.definitions {
            let loaded = model::Definitions::load(&directory.join(path));
            let definitions = loaded.map_err(|e| e.to_string())?;
            amqp.import(&definitions);
        }
        Ok(ReadyUsers(Arc::new(users(&amqp)?)))
    }

    /// Replaces the users. Connections of users that are gone are closed with 320; those of others have the present
    /// permissions from their next method on. A changed password applies to later logins.
    pub fn put_users(&self, ReadyUsers(newer): ReadyUsers) {
        let former = self.users.put(Arc::clone(&newer));
        let peers: Vec<_> = self.peers.lock().values().cloned().collect();
        for peer in peers.iter().filter(|peer| is_own(peer)) {
            let (user, vhost) = (&peer.about.user, &peer.vhost.name);
            let rights = |users: &Users| {
                let permissions = users.permissions(user, vhost);
                permissions.map(|permissions| permissions.patterns().map(str::to_owned))
            };
            if newer.find(user).is_some() && rights(&former) != rights(&newer) {
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

/// Whether this node has authenticated the client.
fn is_own(peer: &Peer) -> bool {
    peer.about.from.is_none()
}

fn set_permissions(peer: &Peer, users: &Users) {
    let found = users.permissions(&peer.about.user, &peer.vhost.name);
    let permissions = found.map_or_else(|| Arc::new(Permissions::none()), Arc::clone);
    let Some(key) = peer.key.get() else {
        return;
    };
    let mut turn = peer.vhost.turn(Instant::now());
    let (vhost, ..) = turn.enter();
    vhost.set_permissions(*key, permissions);
    turn.finish();
}
