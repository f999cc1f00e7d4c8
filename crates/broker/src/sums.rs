//! Counters of all vhosts and connections since the start, with those that are gone: a counter never falls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_queues::Counts;

use super::broker::Broker;
pub use super::octets::Octets;
use super::peer::Peer;
use super::totals::Totals;
use super::vhost::SharedVhost;

impl Peer {
    /// Bytes and system calls of its socket; none, if it has no socket.
    pub fn octets(&self) -> Octets {
        self.connection.meter().map(Octets::of).unwrap_or_default()
    }
}

impl Totals {
    pub(super) fn count_in(&self, peer: &Peer) {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        if !peer.is_request() {
            self.clients_opened.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_out(&self, peer: &Peer) {
        self.connections_closed.fetch_add(1, Ordering::Relaxed);
        if !peer.is_request() {
            self.clients_closed.fetch_add(1, Ordering::Relaxed);
            let octets = peer.octets();
            self.octets.lock().add(&octets);
            peer.vhost.octets.lock().add(&octets);
        }
    }
}

/// Connections that were opened and closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    pub opened: u64,
    pub closed: u64,
}

impl Broker {
    /// The counters of all vhosts, without gauges.
    pub fn counters(&self) -> Counts {
        let mut vhosts = self.vhosts();
        // One that is being closed is listed for a while, and has connections for a while.
        vhosts.extend(self.local_vhosts());
        vhosts.extend(self.each_peer(|peer| Some(Arc::clone(&peer.vhost))));
        let vhosts = vhosts.into_iter().map(|vhost| (Arc::as_ptr(&vhost), vhost));
        let vhosts: BTreeMap<*const SharedVhost, Arc<SharedVhost>> = vhosts.collect();
        let mut sum = Counts::default();
        for vhost in vhosts.values() {
            sum.add_counters(&vhost.totals());
        }
        // Those that are held here are not among them.
        sum.add_counters(&self.shared.gone.lock());
        sum
    }

    /// Bytes and system calls of all connections of clients.
    pub fn octets(&self) -> Octets {
        let peers = self.peers.lock();
        let mut sum = *self.totals.octets.lock();
        peers.values().for_each(|peer| sum.add(&peer.octets()));
        sum
    }

    /// The same of each vhost that is open on this node.
    pub fn octets_of_vhosts(&self) -> BTreeMap<Arc<str>, Octets> {
        let vhosts = self.vhosts().into_iter();
        let closed = vhosts.map(|vhost| (Arc::clone(vhost.name()), *vhost.octets.lock()));
        let mut sums: BTreeMap<_, Octets> = closed.collect();
        for peer in self.peers.lock().values() {
            if let Some(sum) = sums.get_mut(peer.vhost.name()) {
                sum.add(&peer.octets());
            }
        }
        sums
    }

    /// Connections that entered a vhost, and that left it, without those of the management API's requests.
    pub fn churn(&self) -> Churn {
        let totals = &self.totals;
        Churn {
            opened: totals.clients_opened.load(Ordering::Relaxed),
            closed: totals.clients_closed.load(Ordering::Relaxed),
        }
    }
}
