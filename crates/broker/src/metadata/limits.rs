//! Limits of connections and channels, in RabbitMQ's words.

use std::sync::Arc;

use crosstie_metadata::{UserLimit, VhostLimit};

use super::seats::{Full, Seat, SeatsMax};
use crate::broker::Broker;
use crate::peer::Peer;

impl Broker {
    /// Takes a seat for another connection of a user in a vhost, or returns the reason why there is none.
    pub(crate) fn take_seat(&self, user: &Arc<str>, vhost: &Arc<str>) -> Result<Seat, String> {
        let metadata = self.metadata.now();
        let max = SeatsMax {
            of_vhost: metadata.vhost_limit(vhost, VhostLimit::Connections),
            of_user: metadata.user_limit(user, UserLimit::Connections),
        };
        let taken = self.metadata.seats.take(user, vhost, max);
        taken.map_err(|full| reached(&full, user, vhost))
    }

    /// The same for a client of another node, which has looked at the limits of the user.
    pub(crate) fn take_seat_of_vhost(
        &self,
        user: &Arc<str>,
        vhost: &Arc<str>,
    ) -> Result<Seat, String> {
        let max = SeatsMax {
            of_vhost: self
                .metadata
                .now()
                .vhost_limit(vhost, VhostLimit::Connections),
            of_user: None,
        };
        let taken = self.metadata.seats.take(user, vhost, max);
        taken.map_err(|full| reached(&full, user, vhost))
    }

    /// Takes a seat whatever the limits: for the router's own connections, and for those of other nodes.
    pub(crate) fn take_any_seat(&self, user: &Arc<str>, vhost: &Arc<str>) -> Seat {
        self.metadata.seats.take_any(user, vhost)
    }

    /// Counts another channel of a user, or returns the reason why it may not be opened.
    pub(crate) fn count_channel(&self, peer: &Peer) -> Result<(), String> {
        let user = &peer.about.user;
        let max = self.metadata.now().user_limit(user, UserLimit::Channels);
        peer.seat.open_channel(max).map_err(|max| {
            format!(
                "number of channels opened for user '{user}' has reached the maximum allowed user limit of ({max})"
            )
        })
    }
}

fn reached(full: &Full, user: &str, vhost: &str) -> String {
    match full {
        Full::Vhost(max) => format!(
            "access to vhost '{vhost}' refused for user '{user}': connection limit ({max}) is reached"
        ),
        Full::User(max) => format!(
            "connection refused for user '{user}': user connection limit ({max}) is reached"
        ),
    }
}
