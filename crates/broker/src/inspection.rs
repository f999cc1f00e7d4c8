//! A vhost and its connections in the detail of the management API. Listings come in parts, so that nobody waits for the
//! lock longer than for one of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_queues::{
    BindingStatus, ChannelStatus, ConsumerStatus, Counts, Destination, ExchangeStatus, Part,
    QueueStatus, QueueView, Vhost,
};
use crosstie_transport::PeerAddress;
use parking_lot::MutexGuard;

use super::broker::Broker;
use super::client::About;
use super::listings::PLACES_MAX;
use super::octets::Octets;
use super::peer::Peer;
use super::resident;
use super::status::ConnectionStatus;
use super::vhost::SharedVhost;

/// Maximum number of queues looked up under one lock.
pub const NAMES_MAX: usize = 256;

/// The connection name of one request of the management API.
pub const REQUEST: &str = "management API";

/// A connection in a vhost.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    pub status: ConnectionStatus,
    /// Its name in the management API: both addresses.
    pub title: Arc<str>,
    pub peer: Option<SocketAddr>,
    pub own: Option<SocketAddr>,
    pub about: About,
    pub frame_bytes_max: u32,
    pub is_tls: bool,
    /// Bytes that wait to be sent.
    pub queued_bytes: usize,
    pub octets: Octets,
}

/// A channel of a connection.
#[derive(Clone, Debug)]
pub struct ChannelView {
    pub vhost: Arc<str>,
    /// The name of its connection.
    pub connection: Arc<str>,
    pub peer: Option<SocketAddr>,
    pub status: ChannelStatus,
}

/// A consumer of a queue, with its connection.
#[derive(Clone, Debug)]
pub struct ConsumerView {
    pub vhost: Arc<str>,
    /// The name of its connection.
    pub connection: Arc<str>,
    pub peer: Option<SocketAddr>,
    pub status: ConsumerStatus,
}

impl Broker {
    /// Number of connections in vhosts.
    pub fn peers(&self) -> usize {
        self.peers.lock().len()
    }

    /// Logins by AMQP since the start: clients that entered a vhost, and failures.
    pub fn logins(&self) -> (u64, u64) {
        let failed = self.logins.failed.load(Ordering::Relaxed);
        let of_http = self.logins.failed_http.load(Ordering::Relaxed);
        (self.churn().opened, failed.saturating_sub(of_http))
    }

    /// The connections that are in a vhost, oldest first, without those of the API's own requests.
    pub fn connection_views(&self) -> Vec<ConnectionView> {
        self.each_peer(|peer| (!peer.is_request()).then(|| peer.view()))
    }

    /// The channels of the same connections.
    pub fn channel_views(&self) -> Vec<ChannelView> {
        let of_peers = self.each_peer(|peer| (!peer.is_request()).then(|| peer.channel_views()));
        of_peers.into_iter().flatten().collect()
    }
}

impl Peer {
    /// Whether it is the connection of one request of the management API.
    pub(super) fn is_request(&self) -> bool {
        self.transport == resident::TRANSPORT && self.about.name == REQUEST
    }

    /// The name of the connection in the management API, as in RabbitMQ.
    pub(super) fn title(&self) -> Arc<str> {
        let own = self.connection.own_address();
        match (&self.about.from, self.connection.peer(), own) {
            (Some(from), _, _) => {
                let from = from.strip_prefix("tcp:").unwrap_or(from);
                format!("{from} -> {}", self.number).into()
            }
            (None, PeerAddress::Tcp(peer), Some(own)) => format!("{peer} -> {own}").into(),
            (None, PeerAddress::Tcp(peer), None) => format!("{peer} -> {}", self.number).into(),
            (None, PeerAddress::Unix(_), _) => format!("unix -> {}", self.number).into(),
        }
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        match self.connection.peer() {
            PeerAddress::Tcp(address) if self.about.from.is_none() => Some(address),
            _ => None,
        }
    }

    /// The connection in the detail of the management API.
    pub(super) fn view(&self) -> ConnectionView {
        ConnectionView {
            status: self.status(),
            title: self.title(),
            peer: self.peer_address(),
            own: self.connection.own_address(),
            about: self.about.clone(),
            frame_bytes_max: self.frame_bytes_max,
            is_tls: self.connection.is_tls(),
            queued_bytes: self.connection.queued_bytes(),
            octets: self.octets(),
        }
    }

    /// Its channels.
    pub(super) fn channel_views(&self) -> Vec<ChannelView> {
        let Some(key) = self.key.get() else {
            return Vec::new();
        };
        // Most connections that only publish are without channels between their turns.
        if self.seat.channels() == 0 {
            return Vec::new();
        }
        let vhost = self.vhost.lock();
        let statuses: Vec<_> = vhost.channels(*key).collect();
        MutexGuard::unlock_fair(vhost);
        let (connection, peer) = (self.title(), self.peer_address());
        let views = statuses.into_iter().map(|status| ChannelView {
            vhost: Arc::clone(self.vhost.name()),
            connection: Arc::clone(&connection),
            peer,
            status,
        });
        views.collect()
    }
}

impl SharedVhost {
    /// The names of its queues, sorted.
    pub fn queue_names(&self) -> Vec<Arc<str>> {
        let mut names = self.list(Vhost::queue_names_part);
        names.sort_unstable();
        // A queue that was deleted and declared between two parts is listed twice.
        names.dedup();
        names
    }

    /// Some of its queues, from that place on; 0 is the first.
    pub fn queues_part(&self, place: usize) -> Part<QueueStatus> {
        let vhost = self.lock();
        let part = vhost.queues_part(place, PLACES_MAX);
        MutexGuard::unlock_fair(vhost);
        part
    }

    /// These queues, at most [`NAMES_MAX`]; `None` for those that do not exist.
    pub fn queue_views(&self, names: &[Arc<str>]) -> Vec<Option<QueueView>> {
        let vhost = self.lock();
        let names = names.iter().take(NAMES_MAX);
        let views = names.map(|name| vhost.queue_view(name)).collect();
        MutexGuard::unlock_fair(vhost);
        views
    }

    pub fn queue_view(&self, name: &str) -> Option<QueueView> {
        self.lock().queue_view(name)
    }

    pub fn exchange_view(&self, name: &str) -> Option<ExchangeStatus> {
        self.lock().exchange_view(name)
    }

    /// Whether a queue of that name exists.
    pub fn has_queue(&self, name: &str) -> bool {
        self.lock().has_queue(name)
    }

    /// Its counts, without the messages of queues.
    pub fn totals(&self) -> Counts {
        self.lock().totals()
    }

    /// Its counts, with the messages of its queues.
    pub fn counts_walked(&self) -> Counts {
        let parts = self.list(Vhost::messages_part);
        let sum = |of: usize| parts.iter().map(|part| part[of]).sum();
        Counts {
            messages_ready: sum(0),
            messages_unacknowledged: sum(1),
            ..self.totals()
        }
    }

    /// Its exchanges, by name.
    pub fn exchange_views(&self) -> Vec<ExchangeStatus> {
        let mut exchanges = self.list(Vhost::exchanges_part);
        exchanges.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        exchanges
    }

    /// Its exchanges with messages that reached no queue, and the number of these messages.
    pub fn unroutable(&self) -> Vec<(Arc<str>, u64)> {
        self.list(Vhost::unroutable_part)
    }

    /// Those of its bindings that `is_wanted`, by their ends; without the default exchange's implicit ones.
    pub fn binding_views(&self, is_wanted: impl Fn(&BindingStatus) -> bool) -> Vec<BindingStatus> {
        let mut bindings = self.list_wanted(Vhost::bindings_part, is_wanted);
        let order = |binding: &BindingStatus| {
            let (destination, is_queue) = match &binding.destination {
                Destination::Exchange(name) => (name.clone(), false),
                Destination::Queue(name) => (name.clone(), true),
            };
            let ends = (binding.source.clone(), is_queue, destination);
            (ends, binding.routing_key.clone())
        };
        bindings.sort_by_cached_key(order);
        bindings
    }

    /// Its consumers.
    pub fn consumer_views(&self) -> Vec<ConsumerView> {
        let statuses = self.list(Vhost::consumers_part);
        self.with_connections(statuses)
    }

    /// The consumers of one of its queues, at most `max` of them.
    pub fn consumers_of_queue(&self, queue: &str, max: usize) -> Vec<ConsumerView> {
        let statuses = self.lock().consumers_of_queue(queue, max);
        self.with_connections(statuses)
    }

    fn with_connections(&self, statuses: Vec<ConsumerStatus>) -> Vec<ConsumerView> {
        let mut views = Vec::with_capacity(statuses.len());
        for part in statuses.chunks(NAMES_MAX) {
            let vhost = self.lock();
            let handles = part.iter();
            let handles = handles.map(|status| vhost.handle_of(status.connection).cloned());
            let handles: Vec<Option<Arc<Peer>>> = handles.collect();
            MutexGuard::unlock_fair(vhost);
            for (status, peer) in part.iter().zip(handles) {
                // Its connection has ended meanwhile.
                let Some(peer) = peer else { continue };
                views.push(ConsumerView {
                    vhost: Arc::clone(&self.name),
                    connection: peer.title(),
                    peer: peer.peer_address(),
                    status: status.clone(),
                });
            }
        }
        views
    }

    /// The name of the connection that an exclusive queue belongs to.
    pub fn title_of(&self, connection: crosstie_queues::ConnectionKey) -> Option<Arc<str>> {
        let peer = self.lock().handle_of(connection).cloned();
        peer.map(|peer| peer.title())
    }
}
