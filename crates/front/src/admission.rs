//! Admission: counts a listener's connections, and refuses those beyond a limit.

use std::sync::Arc;

use crosstie_transport::descriptors::Room;
use crosstie_transport::{PeerAddress, Socket};

use crate::addresses::AddressPlace;
use crate::counters::{Counter, counters};
use crate::listen::Listening;

crosstie_collections::named! {
    /// The limit that a connection exceeds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Excess: reason {
        /// `sessions_max` of the node, or `max_connections` of the listener.
        Connections = "connections_max",
        /// `address_connections_max`.
        Address = "address_connections_max",
        /// `connections_per_second_max` of the listener.
        Rate = "connections_per_second_max",
        /// The last descriptors are reserved.
        Descriptors = "descriptors",
    }
}

impl Excess {
    /// The text for the peer, if its protocol has one.
    pub fn text(self) -> &'static str {
        match self {
            Self::Connections => "the maximum number of connections is reached",
            Self::Address => "the maximum number of connections from this address is reached",
            Self::Rate => "the maximum number of connections per second is reached",
            Self::Descriptors => "no file descriptors are left for more connections",
        }
    }
}

/// Maximum number of excess connections that are answered before they are closed.
const TURNED_AWAY_MAX: usize = 256;
/// The same for one address, so that it leaves room for others.
const ADDRESS_TURNED_AWAY_MAX: usize = 16;

/// A counted connection, while this lives.
pub struct Admitted {
    pub listening: Arc<Listening>,
    address: AddressPlace,
    /// The connection exceeds a limit: it may get pages, but no session.
    pub excess: Option<Excess>,
}

impl Admitted {
    /// Counts a connection, if only to refuse it with a reason.
    pub fn admit(listening: &Arc<Listening>, socket: &Socket) -> Option<Self> {
        // The node's own processes may use the reserve.
        let room = match listening.is_of_own_process(socket.peer()) {
            true => Room::Enough,
            false => Room::left_by(socket),
        };
        let (admitted, is_told) = Self::judge(listening, socket.peer(), room);
        is_told.then_some(admitted)
    }

    /// Counts a client that has no connection of its own, and thus no descriptor.
    pub fn admit_peer(listening: &Arc<Listening>, peer: PeerAddress) -> Self {
        Self::judge(listening, peer, Room::Enough).0
    }

    /// Counts a client, and says whether there is room to answer an excess one.
    fn judge(listening: &Arc<Listening>, peer: PeerAddress, room: Room) -> (Self, bool) {
        let bounds = &listening.bounds;
        let (here, everywhere) = listening.count_in();
        let over = |count: usize, max: usize| count.saturating_sub(max.saturating_sub(1));
        let excess =
            over(here, listening.connections_max).max(over(everywhere, bounds.connections_max));
        let (address, of_address) = bounds.peer_addresses.count_in(peer);
        let of_address = over(of_address as usize, bounds.address_connections_max);
        let admitted = Self {
            listening: Arc::clone(listening),
            address,
            excess: if excess > 0 {
                Some(Excess::Connections)
            } else if of_address > 0 && !listening.is_of_own_process(peer) {
                counters().count(Counter::ConnectionsRefusedOfAddress);
                Some(Excess::Address)
            } else if listening.is_too_fast() {
                counters().count(Counter::ConnectionsRefusedForRate);
                Some(Excess::Rate)
            } else if room > Room::Enough {
                counters().count(Counter::ConnectionsRefusedForDescriptors);
                Some(Excess::Descriptors)
            } else {
                None
            },
        };
        let is_told =
            excess <= TURNED_AWAY_MAX && of_address <= ADDRESS_TURNED_AWAY_MAX && room < Room::Last;
        (admitted, is_told)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.listening.bounds.peer_addresses.count_out(self.address);
        self.listening.count_out();
        counters().count(Counter::ConnectionsClosed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admission_of_a_connection_is_small() {
        // It is part of every connection's task.
        assert_eq!(size_of::<Admitted>(), 16);
    }
}
