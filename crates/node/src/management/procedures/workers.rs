//! Procedures of workers of every kind.

use crosstie_config::Json;
use serde_json::{Map, json};
use tracing::info;

use super::{Deferred, Procedure, date, later, now, seconds_since};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;
use crate::triggers::Exit;
use crate::workers::hosted::Hosted;
use crate::workers::log::{LINES_MAX, level_name};
use crate::workers::process::Process;
use crate::workers::{Wanted, Worker};

pub(super) static PROCEDURES: [Procedure; 6] = [
    now("crossbar.get_workers", workers),
    now("crossbar.get_worker", worker),
    now("crossbar.get_worker_log", worker_log),
    later("crossbar.start_worker", start_worker),
    later("crossbar.stop_worker", stop_worker),
    later("crossbar.restart_worker", restart_worker),
];

fn workers(node: &mut Node, call: &Call) -> Answer {
    let kinds: Option<Vec<String>> = call.optional(0, "filter_types")?;
    let is_wanted = |worker: &&Worker| match &kinds {
        Some(kinds) => kinds.iter().any(|kind| kind == worker.kind()),
        None => true,
    };
    let ids = node.workers.iter().filter(is_wanted).map(Worker::id);
    Ok(ids.collect())
}

fn worker(node: &mut Node, call: &Call) -> Answer {
    let worker = named(node, call)?;
    let started = worker
        .process
        .as_ref()
        .filter(|_| worker.router.is_none())
        .map_or(Some(worker.since), |process| process.started_at());
    // For a router, those of its host of components.
    let process = worker.process.as_ref();
    Ok(json!({
        "id": worker.id(),
        "type": worker.kind(),
        "pid": worker.pid(),
        "status": worker.status(),
        "started": started.map(date),
        "uptime": started.map(seconds_since),
        "restarts": process.map_or(0, Process::restarts_in_a_row),
        "last_end": process.and_then(Process::last_end),
        "components": worker.components.iter().map(component).collect::<Vec<_>>(),
    }))
}

fn component(hosted: &Hosted) -> Json {
    let (state, reason) = hosted.condition();
    json!({"id": hosted.component.id, "state": state, "reason": reason})
}

fn worker_log(node: &mut Node, call: &Call) -> Answer {
    let worker = named(node, call)?;
    let limit: Option<i64> = call.optional(1, "limit")?;
    let limit = limit.unwrap_or(100);
    let Ok(limit) = usize::try_from(limit) else {
        let text = format!("argument 1, 'limit': expected 0 to {LINES_MAX}, got {limit}");
        return Err(errors::invalid_argument(&text));
    };
    let Some(process) = &worker.process else {
        return Ok(json!([]));
    };
    let log = process.log.lock();
    let lines = log.last(limit);
    Ok(lines
        .map(|line| json!({"level": level_name(line.level), "text": line.text}))
        .collect())
}

fn start_worker(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let definition = || {
        let id: String = call.required(0, "worker_id")?;
        let kind: String = call.required(1, "worker_type")?;
        let options: Option<Json> = call.optional(2, "worker_options")?;
        if node.is_ending() {
            return Err(errors::ending());
        }
        node.check_not_draining()?;
        if node.worker(&id).is_some() {
            return Err(errors::worker_already_running(&format!(
                "a worker '{id}' runs already"
            )));
        }
        let whole = whole_definition(&kind, options)?;
        crosstie_config::worker_from_json(Some(&id), &whole)
            .map_err(|problems| errors::invalid_configuration(&problems))
    };
    let definition = match definition() {
        Ok(definition) => definition,
        Err(error) => return Err((reply, error)),
    };
    let id = definition.id().to_owned();
    if let Err(error) = node.start_worker(definition) {
        return Err((reply, errors::cannot_start(&error.text)));
    }
    if let Some(worker) = node.worker_mut(&id) {
        worker.starting.push(reply);
    }
    node.settle(&id);
    node.show_routers();
    Ok(())
}

fn stop_worker(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let (id, kill) = match stop_arguments(node, call) {
        Ok(arguments) => arguments,
        Err(error) => return Err((reply, error)),
    };
    let Some(worker) = node.worker_mut(&id) else {
        return Err((reply, no_such_worker(&id)));
    };
    worker.stopping.push(reply);
    worker.wanted = Wanted::Stop;
    let Some(process) = worker
        .process
        .as_mut()
        .filter(|process| process.is_running())
    else {
        node.remove_worker(&id);
        return Ok(());
    };
    process.ask_to_end(kill);
    node.kill_later(&id);
    Ok(())
}

fn restart_worker(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let (id, kill) = match stop_arguments(node, call) {
        Ok(arguments) => arguments,
        Err(error) => return Err((reply, error)),
    };
    let Some(worker) = node.worker_mut(&id) else {
        return Err((reply, no_such_worker(&id)));
    };
    if worker.wanted == Wanted::Stop {
        let text = format!("worker '{id}' is being stopped");
        return Err((reply, errors::not_running(&text)));
    }
    let Some(process) = worker.process.as_mut().filter(|_| worker.router.is_none()) else {
        let text = format!(
            "worker '{id}' is of type '{}', which has no process of its own to be started again",
            worker.kind()
        );
        return Err((reply, errors::invalid_argument(&text)));
    };
    if !process.is_running() {
        worker.starting.push(reply);
        node.start_process(&id);
        node.settle(&id);
        return Ok(());
    }
    process.ask_to_end(kill);
    worker.wanted = Wanted::Restart;
    worker.restarting.push(reply);
    node.kill_later(&id);
    Ok(())
}

fn stop_arguments(node: &Node, call: &Call) -> Result<(String, bool), Refusal> {
    let id: String = call.required(0, "worker_id")?;
    let kill: Option<bool> = call.optional(1, "kill")?;
    if node.is_ending() {
        return Err(errors::ending());
    }
    match node.worker(&id) {
        Some(_) => Ok((id, kill.unwrap_or(false))),
        None => Err(no_such_worker(&id)),
    }
}

fn named<'a>(node: &'a Node, call: &Call) -> Result<&'a Worker, Refusal> {
    let id: String = call.required(0, "worker_id")?;
    node.worker(&id).ok_or_else(|| no_such_worker(&id))
}

pub(super) fn no_such_worker(id: &str) -> Refusal {
    errors::no_such_worker(&format!("there is no worker '{id}'"))
}

/// The worker's definition as in a configuration. Crossbar.io's form has only the options of routers and containers,
/// and the whole definition of guests; keys of a configuration beside `options` may be given here for each kind.
fn whole_definition(kind: &str, options: Option<Json>) -> Result<Json, Refusal> {
    const BESIDE_OPTIONS: [&str; 8] = [
        "options",
        "realms",
        "transports",
        "amqp",
        "components",
        "executable",
        "arguments",
        "transport",
    ];
    let fields = match options {
        None => Map::new(),
        Some(Json::Object(fields)) => fields,
        Some(_) => {
            let text = "expected a dictionary as argument 2, 'worker_options'";
            return Err(errors::invalid_argument(text));
        }
    };
    let is_whole = fields
        .keys()
        .any(|key| BESIDE_OPTIONS.contains(&key.as_str()));
    let mut whole = match is_whole {
        true => fields,
        false if fields.is_empty() => Map::new(),
        false => Map::from_iter([("options".to_owned(), Json::Object(fields))]),
    };
    whole.insert("type".to_owned(), kind.into());
    Ok(Json::Object(whole))
}

impl Node {
    /// Removes a worker without a process: a router says goodbye on a thread that may block.
    pub(crate) fn remove_worker(&mut self, id: &str) {
        let Some(at) = self.workers.iter().position(|worker| worker.id() == id) else {
            return;
        };
        let mut worker = self.workers.remove(at);
        if let Some(running) = worker.router.take() {
            self.show_routers();
            running.router.close_listeners();
            tokio::task::spawn_blocking(move || running.router.stop());
        }
        info!("Node worker {id} ended successfully");
        self.handle_exit(worker, Exit::Requested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_made_whole() {
        let check = |options: Json, expected: Json| {
            let whole = whole_definition("guest", Some(options.clone()));
            assert_eq!(whole.ok(), Some(expected), "{options}");
        };
        check(json!({}), json!({"type": "guest"}));
        check(
            json!({"executable": "true"}),
            json!({"type": "guest", "executable": "true"}),
        );
        check(
            json!({"cpu_affinity": [0]}),
            json!({"type": "guest", "options": {"cpu_affinity": [0]}}),
        );
        check(
            json!({"options": {}, "type": "router"}),
            json!({"type": "guest", "options": {}}),
        );
        assert!(whole_definition("guest", Some(json!([]))).is_err());
        assert_eq!(
            whole_definition("router", None).ok(),
            Some(json!({"type": "router"}))
        );
    }
}
