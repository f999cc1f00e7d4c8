//! Connections that the broker closes, with 320 and the reason.

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_front::cause::Cause;
use crosstie_front::connections::Connections;
use crosstie_front::report;
use crosstie_front::watch::Watch;

use crate::broker::Broker;
use crate::operator_error::OperatorError;
use crate::peer::Peer;
use crate::vhost::SharedVhost;

impl Broker {
    /// Closes one connection, unless it is closing already.
    pub fn close_connection(&self, number: u64, reason: &str) -> Result<(), OperatorError> {
        let peers = self.peers.lock();
        let found = peers.get(&number);
        let peer = found.ok_or(OperatorError::NoSuchConnection { number })?;
        if peer.is_closing() {
            return Err(OperatorError::ClosingAlready { number });
        }
        report::connection_forced(&peer.connection, reason);
        force_close(peer, &self.home.watch, Cause::Operator, reason);
        Ok(())
    }

    /// The same, with a text for the client.
    pub(crate) fn close_connection_saying(&self, number: u64, text: &str) {
        let peers = self.peers.lock();
        if let Some(peer) = peers.get(&number).filter(|peer| !peer.is_closing()) {
            report::connection_forced(&peer.connection, text);
            Cause::Operator.note(&peer.connection);
            peer.force_close_with(&format!("{} - {text}", ReplyCode::ConnectionForced));
            self.home.watch.closing(peer.watch, peer.closing_timeout);
        }
    }

    /// Closes all connections of a vhost that accepts no more clients.
    pub(crate) fn close_vhost(&self, vhost: &Arc<SharedVhost>, reason: &str) {
        for peer in self.peers.lock().values() {
            if Arc::ptr_eq(&peer.vhost, vhost) {
                force_close(peer, &self.home.watch, Cause::VhostGone, reason);
            }
        }
    }

    /// Closes all connections of a vhost that is closed or deleted, with RabbitMQ's text.
    pub(crate) fn close_clients_of(&self, vhost: &Arc<SharedVhost>) {
        let text = format!(
            "{} - vhost '{}' is down",
            ReplyCode::ConnectionForced,
            vhost.name
        );
        for peer in self.peers.lock().values() {
            if Arc::ptr_eq(&peer.vhost, vhost) {
                Cause::VhostGone.note(&peer.connection);
                peer.force_close_with(&text);
                self.home.watch.closing(peer.watch, peer.closing_timeout);
            }
        }
    }

    /// Closes all connections of one transport, or of all transports.
    pub fn close_connections(&self, transport: Option<u32>, reason: &str) {
        for peer in self.peers.lock().values() {
            if transport.is_none_or(|transport| transport == peer.transport) {
                force_close(peer, &self.home.watch, Cause::Stop, reason);
            }
        }
    }

    /// Lets no client into its own vhosts any more.
    pub fn refuse_clients(&self) {
        self.local_vhosts().iter().for_each(|vhost| vhost.shut());
    }

    /// Whether any connection is in a vhost.
    pub fn has_peers(&self) -> bool {
        !self.peers.lock().is_empty()
    }

    /// Closes these connections.
    pub fn close_these(&self, connections: &Connections, reason: &str) {
        for peer in self.peers.lock().values() {
            if connections.has(&peer.connection) {
                force_close(peer, &self.home.watch, Cause::Stop, reason);
            }
        }
    }

    /// Closes the connections that are meant, each with its reason.
    pub(crate) fn close_where(
        &self,
        is_meant: impl Fn(&Peer) -> bool,
        reason: impl Fn(&Peer) -> String,
    ) {
        for peer in self.peers.lock().values().filter(|peer| is_meant(peer)) {
            let reason = reason(peer);
            report::connection_forced(&peer.connection, &reason);
            force_close(peer, &self.home.watch, Cause::Operator, &reason);
        }
    }
}

/// Called under the lock of the broker's peers, so that the watch has not reused the place.
fn force_close(peer: &Arc<Peer>, watch: &Watch, cause: Cause, reason: &str) {
    cause.note(&peer.connection);
    peer.force_close(reason);
    watch.closing(peer.watch, peer.closing_timeout);
}
