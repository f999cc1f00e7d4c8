//! The stop of a router: closes listeners, waits for open calls, then tells all clients to leave.

use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use crosstie_realms::farewell::{Farewell, close_for_return, say_goodbye};

use crate::accepting::Accepting;
use crate::conversing::Conversing;
use crate::departure;
use crate::registry::Registry;
use crate::router::Router;

/// Maximum time for giving up grants, which takes a request to a NATS server.
const LEAVE_MAX: Duration = Duration::from_secs(2);

impl Router {
    /// Closes every listener at once, and the connections that have not become sessions. The system refuses new
    /// clients, which retry. Sessions continue. A second call does nothing.
    pub fn close_listeners(&self) {
        self.state.bounds.stop();
        let accepting: Vec<_> = {
            let mut transports = self.transports.lock();
            let running = transports.iter_mut();
            running.filter_map(|t| t.accepting.take()).collect()
        };
        accepting.iter().for_each(Accepting::abort);
        accepting.into_iter().for_each(Accepting::stop);
        for Conversing { listening, .. } in self.conversing() {
            listening.stop();
            self.state.watch.finish_unopened(listening.number);
        }
        for listening in self.pages.lock().iter().filter_map(Weak::upgrade) {
            listening.stop();
        }
    }

    /// Closes every listener, waits for or ends open calls, and then tells all clients to leave. To stop several
    /// routers, call this for each first, and wait afterwards.
    pub fn begin_stop(&self) {
        self.close_listeners();
        let mut dismissed = self.dismissed.lock();
        if dismissed.is_some() {
            return;
        }
        let (begun, ended) = mpsc::channel::<()>();
        *dismissed = Some(ended);
        let state = Arc::clone(&self.state);
        let transports = self.conversing();
        self.workers.spawn_keeper(async move {
            dismiss(&state, &transports).await;
            drop(begun);
        });
    }

    /// Does what [`Router::begin_stop`] does, waits a limited time for all clients to go, and stops. Returns whether
    /// all durable data could be stored.
    pub fn stop(self) -> bool {
        self.begin_stop();
        let dismissed = self.dismissed.lock().take();
        // Disconnects once all clients have been told to leave.
        dismissed.map(|dismissed| dismissed.recv());
        departure::await_all(&self.state);
        for Conversing { listening, .. } in self.conversing() {
            self.state.watch.close_all(listening.number);
        }
        self.leave_fabric();
        self.end()
    }

    /// Announces the end of this node to the realms' other nodes.
    fn leave_fabric(&self) {
        let realms = self.state.realms.realms();
        let ports: Vec<_> = realms.iter().filter_map(|r| r.port.clone()).collect();
        if ports.is_empty() {
            return;
        }
        self.run(async move {
            let left: Vec<_> = ports.iter().map(|port| port.stop()).collect();
            crosstie_transport::uncork();
            let all_left = async {
                for port in left {
                    let _ = port.await;
                }
            };
            let _ = tokio::time::timeout(LEAVE_MAX, all_left).await;
        });
    }
}

/// Tells all clients of the router to leave.
async fn dismiss(state: &Registry, transports: &[Conversing]) {
    let realms = state.realms.realms();
    departure::drain(state, &realms, None).await;
    if state.realms.says_goodbye {
        transports.iter().for_each(Conversing::note_goodbye);
    }
    for realm in &realms {
        let peers = realm.peers();
        peers
            .iter()
            .for_each(|peer| match state.realms.says_goodbye {
                true => say_goodbye(&state.realms.session_messages, peer, &Farewell::SHUTDOWN),
                false => close_for_return(peer),
            });
    }
    state.watch.close_kept_alive(|_, _| true);
    if let Some(broker) = state.amqp() {
        broker.close_connections(None, "shutdown");
    }
    crosstie_transport::uncork();
}
