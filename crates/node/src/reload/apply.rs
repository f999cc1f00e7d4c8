//! The changes of a whole node.

use std::sync::Arc;

use crosstie_config::{Config, RouterWorker, Worker as Definition};
use crosstie_router::ReadyExporter;
use tracing::info;

use super::changed_router::Ready;
use crate::node::Node;
use crate::workers::hosted::Hosted;
use crate::workers::{Wanted, guest};

/// What a reload did.
pub(super) struct Applied {
    /// What could not be put in force.
    pub(super) troubles: Vec<String>,
    /// Number of listeners whose certificates were read again.
    pub(super) certificates: usize,
    /// The former console goes on, as the new one cannot open. The next reload tries again.
    pub(super) is_console_former: bool,
}

impl Node {
    /// Puts `target` in force in place of the present configuration. An error has changed nothing.
    pub(super) fn apply(&mut self, target: &Config) -> Result<Applied, String> {
        let present = self.reloads.config.clone();
        let exporter = self.ready_exporter(target);
        let exporter = exporter.map_err(|e| format!("the exporter of spans cannot start: {e}"))?;
        let secrets = Arc::clone(&self.place.secrets);
        self.place.secrets = Arc::new(target.secret_variables.clone());
        let mut ready = Vec::new();
        let mut started = Vec::new();
        if let Err(error) = self.make_ready(&present, target, &mut ready, &mut started) {
            for (id, ready) in ready {
                if let Some(running) = self.worker_mut(&id).and_then(|own| own.router.as_mut()) {
                    running.discard(ready);
                }
            }
            for id in started {
                self.remove_worker(&id);
            }
            self.place.secrets = secrets;
            return Err(error);
        }
        let mut troubles = Vec::new();
        let certificates = ready.iter().map(|(_, ready)| ready.certificates).sum();
        for (id, ready) in ready {
            let (Some(older), Some(newer)) = (router(&present, &id), router(target, &id)) else {
                continue;
            };
            if let Some(worker) = self.worker_mut(&id) {
                worker.definition = Definition::Router(Box::new(newer.clone()));
                if let Some(running) = worker.router.as_mut() {
                    troubles.extend(running.commit(older, newer, ready));
                }
            }
            self.bridge_meta_apis(&id);
        }
        self.put_processes(&present, target, &mut troubles);
        self.triggers.clone_from(&target.controller.shutdown);
        self.title.clone_from(&target.controller.title);
        if present.otlp != target.otlp {
            // The former one sends what waits, beside the new one.
            self.exporter = exporter.map(ReadyExporter::start);
        }
        let mut is_console_former = false;
        if present.console != target.console {
            let trouble = self.change_console(&present, target);
            is_console_former = trouble.is_some();
            troubles.extend(trouble);
        }
        self.show_routers();
        Ok(Applied {
            troubles,
            certificates,
            is_console_former,
        })
    }

    /// Opens the console anew. Its sessions end, as their logins may have gone. If that fails, the former console is
    /// opened again, and the error returned.
    fn change_console(&mut self, present: &Config, target: &Config) -> Option<String> {
        if let Some(management) = &self.management {
            management.stop_console();
        }
        let error = self.start_console(target).err()?;
        match self.start_console(present) {
            Ok(()) => Some(format!("{error}; the former console goes on")),
            Err(_) => Some(error.to_string()),
        }
    }

    /// Makes running routers ready for their changes, and starts new ones.
    fn make_ready(
        &mut self,
        present: &Config,
        target: &Config,
        ready: &mut Vec<(String, Ready)>,
        started: &mut Vec<String>,
    ) -> Result<(), String> {
        for newer in &target.workers {
            let id = newer.id();
            let older = present.workers.iter().find(|older| older.id() == id);
            match (older, newer) {
                (Some(Definition::Router(older)), Definition::Router(newer)) => {
                    let worker = self.worker_mut(id);
                    let running = worker.and_then(|worker| worker.router.as_mut());
                    let running =
                        running.ok_or_else(|| format!("worker '{id}' has been stopped"))?;
                    ready.push((id.to_owned(), running.make_ready(older, newer)?));
                }
                (None, _) if self.worker(id).is_some() => {
                    return Err(format!("a worker '{id}' runs already, or is being stopped"));
                }
                (None, Definition::Router(_) | Definition::WebSocketTestee(_)) => {
                    let begun = self.start_worker(newer.clone());
                    begun.map_err(|error| format!("worker '{id}': {}", error.text))?;
                    started.push(id.to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Stops workers that are gone, starts new ones with a process, and restarts changed ones.
    fn put_processes(&mut self, present: &Config, target: &Config, troubles: &mut Vec<String>) {
        let find = |config: &Config, id: &str| {
            config
                .workers
                .iter()
                .find(|worker| worker.id() == id)
                .cloned()
        };
        for older in &present.workers {
            if find(target, older.id()).is_none() {
                self.stop_removed(older.id());
            }
        }
        for newer in &target.workers {
            let id = newer.id();
            let older = find(present, id);
            let is_thread = matches!(
                newer,
                Definition::Router(_) | Definition::WebSocketTestee(_)
            );
            let is_same = older.as_ref() == Some(newer);
            if is_thread || is_same {
                continue;
            }
            // A worker that has ended for good starts with its change.
            match self.worker(id).is_some() {
                true => self.restart_changed(newer),
                false => {
                    let begun = self.start_worker(newer.clone());
                    let failed = begun
                        .err()
                        .map(|error| format!("worker '{id}': {}", error.text));
                    troubles.extend(failed);
                }
            }
        }
    }

    fn stop_removed(&mut self, id: &str) {
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        info!("Worker '{id}' is no longer in the configuration");
        worker.wanted = Wanted::Stop;
        let process = worker.process.as_mut();
        match process.filter(|process| process.is_running()) {
            Some(process) => {
                process.ask_to_end(false);
                self.kill_later(id);
            }
            None => self.remove_worker(id),
        }
    }

    /// Ends the present run of a container or guest, and starts the next with its changed definition.
    fn restart_changed(&mut self, definition: &Definition) {
        let id = definition.id();
        info!("Worker '{id}' has changed in the configuration: restarting it");
        let watch = match definition {
            Definition::Guest(guest) => self.watch(id, guest::watched(guest, &self.place)),
            _ => None,
        };
        let Some(worker) = self.worker_mut(id) else {
            return;
        };
        worker.definition = definition.clone();
        worker.watch = watch;
        if let Definition::Container(container) = definition {
            worker.components = Hosted::all(&container.components);
        }
        match worker
            .process
            .as_mut()
            .filter(|process| process.is_running())
        {
            Some(process) => {
                process.ask_to_end(false);
                worker.wanted = Wanted::Restart;
                self.kill_later(id);
            }
            None => {
                self.start_process(id);
                self.settle(id);
            }
        }
    }
}

fn router<'c>(config: &'c Config, id: &str) -> Option<&'c RouterWorker> {
    let mut workers = config.workers.iter();
    workers.find_map(|worker| match worker {
        Definition::Router(router) if router.id == id => Some(&**router),
        _ => None,
    })
}
