//! The stop of a router's AMQP, while everything else of the router goes on.
//!
//! The broker ends as it does with its router, and its store is closed. [`Router::start_amqp`] opens the store again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosstie_broker::Broker;
use crosstie_front::listen::Listening;

use crate::accepting::Accepting;
use crate::departure::{CLOSED_WITHIN, LOOK_AT_CLIENTS_AFTER};
use crate::registry::Registry;
use crate::router::Router;
use crate::transports::RunningTransport;

/// A listener that a stop of AMQP has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedListener {
    /// The transport's id.
    pub id: String,
    /// The port that it had; `None` for a Unix socket.
    pub port: Option<u16>,
}

impl Router {
    /// Stops AMQP: its listeners are closed when this returns, and those of its management API and its metrics. Its
    /// clients are closed with 320. `done` is called once the store is closed, with whether it has all durable data.
    /// Returns the listeners, or `None` without AMQP; `done` is not called then.
    pub fn stop_amqp(
        &self,
        done: impl FnOnce(bool) + Send + 'static,
    ) -> Option<Vec<ClosedListener>> {
        let broker = self.state.take_amqp()?;
        broker.refuse_clients();
        let mut of_broker = Vec::new();
        {
            let mut transports = self.transports.lock();
            let all = std::mem::take(&mut *transports);
            for running in all {
                match running.is_of_broker() {
                    true => of_broker.push(running),
                    false => transports.push(running),
                }
            }
            let accepting: Vec<_> = of_broker
                .iter_mut()
                .filter_map(RunningTransport::close)
                .collect();
            accepting.into_iter().for_each(Accepting::stop);
            self.note_transports(&transports);
        }
        // Those for other nodes start with the broker itself.
        let public = of_broker.iter().filter(|running| !running.is_private);
        let closed = public.map(|running| ClosedListener {
            id: running.id.clone(),
            port: running.reopens_at,
        });
        let closed = closed.collect();
        let conversing = of_broker.iter().flat_map(RunningTransport::conversing);
        let listening: Vec<_> = conversing.map(|of| Arc::clone(&of.listening)).collect();
        for running in of_broker {
            self.end_served(running.served, running.earlier);
        }
        let context = self.workers.keeper_handle();
        let state = Arc::clone(&self.state);
        self.state.is_amqp_stopping.store(true, Ordering::SeqCst);
        let end = move || {
            let _context = context.enter();
            let is_stored = end(&state, &broker, &listening);
            // Whoever awaits `done` may start AMQP at once.
            state.is_amqp_stopping.store(false, Ordering::SeqCst);
            done(is_stored);
            is_stored
        };
        *self.stopping_amqp.lock() = Some(std::thread::spawn(end));
        Some(closed)
    }

    /// Whether a stop of AMQP has not closed the store yet. A start would wait for that.
    pub fn is_amqp_stopping(&self) -> bool {
        let stopping = self.stopping_amqp.lock();
        stopping
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
            && self.state.is_amqp_stopping.load(Ordering::SeqCst)
    }

    /// Waits for the end of a stop of AMQP. Returns whether all durable data could be stored.
    pub(crate) fn await_amqp_stop(&self) -> bool {
        let stopping = self.stopping_amqp.lock().take();
        stopping.is_none_or(|thread| thread.join().unwrap_or(false))
    }
}

/// Ends the broker when its clients have gone. They have as much time for that as at the stop of the router.
fn end(state: &Registry, broker: &Broker, listening: &[Arc<Listening>]) -> bool {
    let begun = Instant::now();
    // The router's own connections, too.
    broker.close_connections(None, "shutdown");
    crosstie_transport::uncork();
    let are_there = || listening.iter().any(|of| of.connections() > 0);
    while (are_there() || broker.has_peers()) && begun.elapsed() < CLOSED_WITHIN {
        std::thread::sleep(LOOK_AT_CLIENTS_AFTER);
    }
    for of in listening {
        state.watch.close_all(of.number);
    }
    // A connection ends in the next turn of its thread, unless the threads have ended.
    while broker.has_peers() && begun.elapsed() < 2 * CLOSED_WITHIN {
        std::thread::sleep(LOOK_AT_CLIENTS_AFTER);
    }
    broker.stop()
}
