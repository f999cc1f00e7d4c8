//! The task that accepts the connections of a listener.

use std::sync::{Arc, mpsc};

use crosstie_front::serve::{self, Destination};
use crosstie_transport::{Listener, Workers};
use tokio::task::AbortHandle;

/// A bound listener that accepts nothing yet.
pub(crate) struct Ready {
    pub(crate) destination: Arc<Destination>,
    pub(crate) listener: Arc<Listener>,
}

impl Ready {
    pub(crate) fn accept(self, workers: &Arc<Workers>) -> Accepting {
        let serving = serve::serve_all(self.destination, self.listener, Arc::clone(workers));
        Accepting::start(workers, serving)
    }
}

/// The task that accepts a listener's connections.
pub(crate) struct Accepting {
    task: AbortHandle,
    /// Disconnects once the task has ended and its listener is closed.
    ended: mpsc::Receiver<()>,
}

impl Accepting {
    /// Starts `accepting` on the first thread, where its listener was bound.
    pub(crate) fn start(
        workers: &Workers,
        accepting: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let (alive, ended) = mpsc::channel::<()>();
        // Dropped in this order, whenever the task ends.
        let held = (Box::pin(accepting), alive);
        let task = workers.spawn_first(async move {
            let mut held = held;
            held.0.as_mut().await;
        });
        Self {
            task: task.abort_handle(),
            ended,
        }
    }

    /// Ends the task.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }

    /// Ends the task, and waits until its listener is closed.
    pub(crate) fn stop(self) {
        self.abort();
        let _ = self.ended.recv();
    }
}
