//! Ends of workers' processes: reported, and judged by the operator's request, the restart policy and the node's
//! triggers, in this order.

use std::path::Path;
use std::time::Duration;

use crosstie_config::Worker as Definition;
use serde_json::json;
use tracing::{error, info, warn};

use super::process::{Phase, Verdict};
use super::{Wanted, Worker, container};
use crate::event::{End, Event, Run};
use crate::management::errors;
use crate::node::Node;
use crate::outcome::Outcome;
use crate::triggers::Exit;

impl Node {
    /// A run of a worker's process has ended.
    pub(crate) fn handle_ended(&mut self, run: &Run, end: &End) {
        let is_ending = self.is_ending();
        let id = run.worker.as_str();
        let Some(worker) = self.worker_mut(id).filter(|worker| worker.is_in(run)) else {
            return;
        };
        let is_router = worker.router.is_some();
        let Some(process) = &mut worker.process else {
            return;
        };
        let verdict = process.handle_ended(end);
        worker.report_end(&verdict);
        let exit = worker.exit(&verdict);
        let components_were_under_way = worker.components.iter().any(|c| c.is_under_way());
        worker.lose_host(&verdict.text);
        // A caller that requested a worker only gets the error if its process could not be started.
        let was_in_vain = matches!(end, End::NotStarted(_)) && !worker.starting.is_empty();
        let wanted = worker.wanted;
        worker.answer_start(&verdict);
        if !is_router && let Some(worker) = self.worker(id) {
            self.tell_about_worker("stopped", worker, worker.last_pid());
        }
        if is_router && !verdict.was_ready && !is_ending && wanted == Wanted::Running {
            self.end_without_component(id);
        }
        let is_ending = self.is_ending();
        if is_ending {
            self.forget_process(id, exit, is_router);
        } else if wanted == Wanted::Stop && is_router {
            self.remove_worker(id);
        } else if (wanted == Wanted::Stop || was_in_vain) && !is_router {
            self.forget_process(id, Exit::Requested, is_router);
        } else if wanted == Wanted::Restart {
            if let Some(worker) = self.worker_mut(id) {
                worker.starting.append(&mut worker.restarting);
            }
            self.start_process(id);
            self.settle(id);
        } else if let Some(delay) = self.pause_before_next(id, &verdict) {
            let whose = if is_router {
                "Host of components of router"
            } else {
                "Worker"
            };
            info!("{whose} {id} is started again in {} ms", delay.as_millis());
            if let Some(process) = self
                .worker_mut(id)
                .and_then(|worker| worker.process.as_mut())
            {
                process.is_waiting = true;
            }
            self.send_after(delay, Event::RestartDue(run.clone()));
            self.settled(id);
        } else if is_router {
            // The router itself continues.
            if components_were_under_way {
                self.settled(id);
            }
        } else {
            if !verdict.was_ready {
                self.end_without_worker(id);
            }
            self.forget_process(id, exit, is_router);
        }
        self.start_queued();
    }

    /// A worker's process did not become ready. During the node's own start, that ends the node, whatever its triggers,
    /// as in Crossbar.io.
    fn end_without_worker(&mut self, id: &str) {
        let is_needed = self.worker(id).is_some_and(|worker| {
            let is_container = matches!(worker.definition, Definition::Container(_));
            !is_container || worker.needs_components()
        });
        if is_needed && !self.is_ready() && !self.is_ending() {
            error!("Worker '{id}' could not be started: the node ends");
            self.begin_end(Outcome::WithFailure);
        }
    }

    /// The delay before a worker's next automatic run, if any.
    fn pause_before_next(&mut self, id: &str, verdict: &Verdict) -> Option<Duration> {
        let worker = self.worker_mut(id)?;
        match worker.wanted {
            Wanted::Running => worker.process.as_mut()?.next_start(verdict),
            Wanted::Reload => Some(worker.reload.next_delay(verdict.ran_for)),
            _ => None,
        }
    }

    /// The delay before a worker's next run is over.
    pub(crate) fn handle_restart_due(&mut self, run: &Run) {
        let is_due = self.worker(&run.worker).is_some_and(|worker| {
            let process = worker.process.as_ref();
            worker.is_in(run) && process.is_some_and(|process| process.is_waiting)
        });
        if is_due && !self.is_ending() {
            self.start_process(&run.worker);
        }
    }

    /// A guest's files have changed.
    pub(crate) fn handle_files_changed(&mut self, id: &str, first: &Path) {
        if self.is_ending() {
            return;
        }
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        let Some(process) = worker.process.as_mut() else {
            return;
        };
        // A worker that is about to restart sees the change then; one that is about to end is not asked again.
        if worker.wanted != Wanted::Running {
            return;
        }
        let say = || info!("'{}' changed: restarting worker {id}", first.display());
        match process.phase() {
            Phase::Starting | Phase::Started => {
                say();
                process.terminate();
                worker.wanted = Wanted::Reload;
                self.kill_later(id);
            }
            // The change may have fixed the cause of its end.
            Phase::Restarting => {
                say();
                worker.wanted = Wanted::Reload;
                let (run, delay) = (process.run(id), worker.reload.next_delay(Duration::ZERO));
                self.send_after(delay, Event::RestartDue(run));
            }
            Phase::Stopping | Phase::Stopped => {}
        }
    }

    /// A worker is gone for good.
    fn forget_process(&mut self, id: &str, exit: Exit, is_router: bool) {
        if is_router {
            // Only the host of its components has ended; the router ends later.
            if let Some(worker) = self.worker_mut(id) {
                worker.process = None;
            }
            self.end_when_alone();
            return;
        }
        let Some(at) = self.workers.iter().position(|worker| worker.id() == id) else {
            return;
        };
        let worker = self.workers.remove(at);
        self.settled(id);
        self.handle_exit(worker, exit);
    }

    /// Publishes the end of a worker, and checks the triggers.
    pub(crate) fn handle_exit(&mut self, mut worker: Worker, exit: Exit) {
        // A process publishes this with each of its runs.
        if !worker.is_process() {
            self.tell_about_worker("stopped", &worker, worker.last_pid());
        }
        worker.lose_host("the worker was stopped");
        let refusal = match self.is_ending() {
            true => errors::ending(),
            false => errors::not_running(&format!("worker '{}' was stopped", worker.id())),
        };
        for reply in worker.starting.drain(..).chain(worker.restarting.drain(..)) {
            let _ = reply.send(Err(refusal.clone()));
        }
        let about = json!({"id": worker.id(), "type": worker.kind()});
        for reply in worker.stopping.drain(..) {
            // The caller may have gone.
            let _ = reply.send(Ok(about.clone()));
        }
        self.pull_triggers(exit);
    }
}

impl Worker {
    /// Fails callers that wait for its start, as the run has ended, unless another run follows or the end was
    /// requested.
    fn answer_start(&mut self, verdict: &Verdict) {
        if self.wanted != Wanted::Running {
            return;
        }
        let text = format!("its process ended: {}", verdict.text);
        for reply in self.starting.drain(..) {
            // The caller may have gone.
            let _ = reply.send(Err(errors::cannot_start(&text)));
        }
    }

    /// The kind of exit for the node's triggers.
    fn exit(&self, verdict: &Verdict) -> Exit {
        match verdict.is_success {
            _ if self.kind() == "guest" => Exit::Guest,
            true => Exit::Success,
            false => Exit::Error,
        }
    }

    fn report_end(&self, verdict: &Verdict) {
        let id = self.id();
        let is_host = !self.kind().eq("guest");
        let who = match self.router {
            Some(_) => format!("Host of components of router {id}"),
            None => format!("Node worker {id}"),
        };
        if verdict.is_success {
            if is_host {
                info!("Native worker connection closed cleanly.");
            }
            info!("{who} ended successfully");
            return;
        }
        if is_host && verdict.was_ready {
            warn!("Native worker connection closed uncleanly.");
        }
        error!("{who} ended with error: {}", verdict.text);
        let process = self
            .process
            .as_ref()
            .filter(|_| is_host && !verdict.was_ready);
        let Some((process, program)) = process.and_then(|own| Some((own, own.program()?))) else {
            return;
        };
        let log = process.log.lock();
        let last = log.last(container::REASON_LINES);
        let lines: Vec<_> = last.map(|line| line.text.clone()).collect();
        if let Some(advice) = container::advice(program, &lines) {
            error!("Worker {id}: {advice}");
        }
    }
}
