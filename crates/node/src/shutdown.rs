//! The node's shutdown: closes listeners, ends every process, then stops the routers.

use std::time::{Duration, Instant};

use crosstie_router::Router;
use tracing::{info, warn};

use crate::event::{Event, Run};
use crate::node::Node;
use crate::outcome::{Ending, Outcome, Phase};
use crate::triggers::{self, Exit};

/// Time for a process to end after TERM.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// A signal for a whole process group may arrive several times at once; a later one is deliberate.
const SAME_SIGNAL_WITHIN: Duration = Duration::from_millis(300);

impl Node {
    pub(crate) fn handle_signal(&mut self, signal: &str) {
        let Some(ending) = &mut self.ending else {
            info!("Received {signal}, shutting down.");
            self.begin_end(Outcome::Orderly);
            return;
        };
        if ending.since.elapsed() > SAME_SIGNAL_WITHIN {
            warn!("Received {signal} again: ending at once");
            ending.outcome = Outcome::AtOnce;
            ending.phase = Phase::Over;
            for process in self
                .workers
                .iter_mut()
                .filter_map(|own| own.process.as_mut())
            {
                process.kill();
            }
        }
    }

    pub(crate) fn handle_time_is_up(&mut self) {
        if !self.is_ending() {
            info!("The time given with --shutdownafter is over, shutting down.");
            self.begin_end(Outcome::Orderly);
        }
    }

    /// Requests the end of every process; their ends trigger the rest.
    pub(crate) fn begin_end(&mut self, outcome: Outcome) {
        if self.end_upgrade(outcome) {
            // The end begins when the upgrade is given up.
            return;
        }
        if self.succeeded.is_none() {
            // Or else the service goes on in another process.
            self.manager.stopping();
        }
        // Before clients are disconnected: a client that reconnects too early is refused, and retries.
        self.close_listeners();
        self.ending = Some(Ending {
            since: Instant::now(),
            outcome,
            phase: Phase::Processes,
            is_announced: false,
        });
        let mut gone = Vec::new();
        for worker in &mut self.workers {
            worker.monitor = None;
            let is_router = worker.router.is_some();
            match worker
                .process
                .as_mut()
                .map(|process| (process.pid(), process))
            {
                Some((Some(pid), process)) => {
                    info!("sending TERM to subprocess {pid}");
                    process.terminate();
                    info!("waiting for {pid} to exit...");
                }
                // Between two runs no process exists.
                Some((None, _)) if is_router => worker.process = None,
                _ if is_router => {}
                _ => gone.push(worker.id().to_owned()),
            }
        }
        self.workers
            .retain(|worker| !gone.iter().any(|id| id == worker.id()));
        self.send_after(ENDED_WITHIN, Event::KillDue);
        self.end_when_alone();
    }

    fn close_listeners(&mut self) {
        let routers = self.workers.iter().filter_map(|own| own.router.as_ref());
        routers.for_each(|running| running.router.close_listeners());
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
    }

    /// Kills processes that did not end in time.
    pub(crate) fn handle_kill_due(&mut self) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        for worker in &mut self.workers {
            let (id, process) = (worker.definition.id(), worker.process.as_mut());
            if let Some((pid, process)) = process.and_then(|own| own.pid().zip(Some(own))) {
                let seconds = ENDED_WITHIN.as_secs();
                warn!(
                    "worker {id} (process {pid}) has not ended {seconds} s after TERM: killing it"
                );
                process.kill();
                ending.outcome = ending.outcome.worse(Outcome::WithFailure);
            }
        }
    }

    /// Kills one worker's process unless it ends in time.
    pub(crate) fn kill_later(&self, id: &str) {
        let Some(run) = self
            .worker(id)
            .and_then(|worker| worker.process.as_ref())
            .map(|process| process.run(id))
        else {
            return;
        };
        self.send_after(ENDED_WITHIN, Event::EndOverdue(run));
    }

    /// One worker of a running node did not end in time.
    pub(crate) fn handle_end_overdue(&mut self, run: &Run) {
        let worker = self
            .worker_mut(&run.worker)
            .filter(|worker| worker.is_in(run));
        if let Some(process) = worker.and_then(|worker| worker.process.as_mut())
            && process.is_running()
        {
            let (id, seconds) = (&run.worker, ENDED_WITHIN.as_secs());
            warn!("worker {id} has not ended {seconds} s after TERM: killing it");
            process.kill();
        }
    }

    /// After the last process, stops the routers; after these, the shutdown is complete.
    pub(crate) fn end_when_alone(&mut self) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        let has_processes = self.workers.iter().any(|worker| worker.process.is_some());
        if ending.phase != Phase::Processes || has_processes {
            return;
        }
        ending.phase = Phase::Routers;
        let workers = self.workers.iter_mut();
        let routers: Vec<_> = workers
            .filter_map(|worker| worker.router.take())
            .map(|running| running.router)
            .collect();
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            // All routers say goodbye at once.
            routers.iter().for_each(Router::begin_stop);
            // Each is stopped, whatever happens to the others.
            let stored: Vec<bool> = routers.into_iter().map(Router::stop).collect();
            let is_all_stored = !stored.contains(&false);
            let _ = events.send(Event::RoutersStopped { is_all_stored });
        });
    }

    pub(crate) fn handle_routers_stopped(&mut self, is_all_stored: bool) {
        if !is_all_stored && let Some(ending) = &mut self.ending {
            ending.outcome = ending.outcome.worse(Outcome::WithFailure);
        }
        for worker in std::mem::take(&mut self.workers) {
            info!("Node worker {} ended successfully", worker.id());
            self.handle_exit(worker, Exit::Success);
        }
        if let Some(ending) = &mut self.ending {
            ending.phase = Phase::Over;
        }
    }

    /// A worker has ended for good: checks whether the node ends with it. Its exit code is then 1 even if the worker
    /// succeeded, as in Crossbar.io: the operator did not request that end.
    pub(crate) fn pull_triggers(&mut self, exit: Exit) {
        let fired = triggers::fired(&self.triggers, exit, self.workers.len());
        if let Some(trigger) = fired {
            let name = triggers::name(trigger);
            info!("Node worker ended, and trigger '{name}' active");
        }
        if exit == Exit::Error
            && let Some(ending) = &mut self.ending
        {
            ending.outcome = ending.outcome.worse(Outcome::WithFailure);
        }
        match &mut self.ending {
            Some(ending) if fired.is_some() && ending.is_announced => {
                info!("Node is already shutting down.");
            }
            Some(ending) if fired.is_some() => {
                ending.is_announced = true;
                announce();
            }
            None if fired.is_some() => {
                announce();
                let outcome = match exit {
                    Exit::Requested => Outcome::Orderly,
                    _ => Outcome::WithFailure,
                };
                self.begin_end(outcome);
                if let Some(ending) = &mut self.ending {
                    ending.is_announced = true;
                }
            }
            _ => {}
        }
        self.end_when_alone();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// The node's outcome, if it has ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let ending = self.ending.as_ref()?;
        (ending.phase == Phase::Over).then_some(ending.outcome)
    }
}

fn announce() {
    info!("Node shutting down ..");
    info!("Shutting down node...");
}
