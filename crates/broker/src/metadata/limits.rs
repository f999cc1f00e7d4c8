//! Limits of connections and channels, in RabbitMQ's words.

use std::sync::atomic::Ordering;

use crosstie_metadata::{UserLimit, VhostLimit};

use crate::broker::Broker;
use crate::peer::Peer;

impl Broker {
    /// The reason why a user may not open another connection to a vhost.
    pub(crate) fn connection_refusal(&self, user: &str, vhost: &str) -> Option<String> {
        let metadata = self.metadata.now();
        let limit = metadata.vhost_limit(vhost, VhostLimit::Connections);
        if let Some(max) = limit
            && self.count_peers(|peer| **peer.vhost.name() == *vhost) >= max
        {
            return Some(format!(
                "access to vhost '{vhost}' refused for user '{user}': connection limit ({max}) is reached"
            ));
        }
        let limit = metadata.user_limit(user, UserLimit::Connections);
        if let Some(max) = limit
            && self.count_peers(|peer| *peer.about.user == *user) >= max
        {
            return Some(format!(
                "connection refused for user '{user}': user connection limit ({max}) is reached"
            ));
        }
        None
    }

    /// The reason why a user may not open another channel.
    pub(crate) fn channel_refusal(&self, user: &str) -> Option<String> {
        let max = self.metadata.now().user_limit(user, UserLimit::Channels)?;
        let peers = self.peers.lock();
        let of_user = peers.values().filter(|peer| *peer.about.user == *user);
        let channels: usize = of_user
            .map(|peer| peer.channels.load(Ordering::Relaxed))
            .sum();
        (channels >= max).then(|| {
            format!(
                "number of channels opened for user '{user}' has reached the maximum allowed user limit of ({max})"
            )
        })
    }

    fn count_peers(&self, is_counted: impl Fn(&Peer) -> bool) -> usize {
        let peers = self.peers.lock();
        peers.values().filter(|peer| is_counted(peer)).count()
    }
}
