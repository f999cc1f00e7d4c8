//! Procedures of router workers with AMQP: contents of their vhosts, and connections.
//!
//! Lists come in parts of at most [`PART_MAX`], so that those of a large broker fit into messages: a caller that gets a
//! full part requests the next one.

use std::path::PathBuf;

use crosstie_config::{Json, Worker as Definition};
use crosstie_router::amqp::{
    Alarm, BindingStatus, ConnectionStatus, DeleteIf, ExchangeStatus, OperatorError, Operators,
    QueueStatus, VhostStatus,
};
use serde_json::json;
use tracing::{info, warn};

use super::router::{router, router_mut};
use super::{Deferred, Procedure, date, later, now, replicated};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;
use crate::workers::router::RunningRouter;

pub(super) static PROCEDURES: [Procedure; 19] = [
    now("crossbar.worker..get_amqp_state", state),
    later("crossbar.worker..stop_amqp", stop),
    now("crossbar.worker..start_amqp", start),
    now("crossbar.worker..get_amqp_alarms", alarms),
    now("crossbar.worker..get_amqp_vhosts", vhosts),
    now("crossbar.worker..get_amqp_queues", queues),
    now("crossbar.worker..get_amqp_exchanges", exchanges),
    now("crossbar.worker..get_amqp_bindings", bindings),
    now("crossbar.worker..get_amqp_connections", connections),
    now("crossbar.worker..get_amqp_unroutable", unroutable),
    now("crossbar.worker..get_amqp_login", login),
    now("crossbar.worker..purge_amqp_queue", purge_queue),
    now("crossbar.worker..delete_amqp_queue", delete_queue),
    now("crossbar.worker..delete_amqp_exchange", delete_exchange),
    now("crossbar.worker..close_amqp_connection", close_connection),
    later("crossbar.worker..back_up_amqp_store", back_up),
    now(
        "crossbar.worker..get_amqp_replicated_vhosts",
        replicated_vhosts,
    ),
    later("crossbar.worker..move_amqp_vhost", move_vhost),
    later("crossbar.worker..recover_amqp_vhost", recover_vhost),
];

/// Maximum number of list entries in one answer.
pub(super) const PART_MAX: usize = 5_000;

/// The vhost of clients that name none.
const DEFAULT_VHOST: &str = "/";

/// Whether the worker's AMQP runs, and the name of the node for RabbitMQ's tools.
fn state(node: &mut Node, call: &Call) -> Answer {
    let router = router(node, call)?;
    let state = match router.router.amqp() {
        Some(_) => "running",
        None if router.is_amqp_stopped() => "stopped",
        None => "none",
    };
    Ok(json!({"state": state, "node": router.router.management_name()}))
}

/// Answers when the store is closed.
fn stop(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let router = match changing(node, call) {
        Ok(router) => router,
        Err(error) => return Err((reply, error)),
    };
    let worker = call.worker.clone();
    if router.router.is_amqp_stopping() {
        return Err((reply, still_stopping(&worker)));
    }
    if router.is_amqp_stopped() {
        // The caller may have gone.
        let _ = reply.send(Ok(json!({"state": "stopped"})));
        return Ok(());
    }
    if router.router.amqp().is_none() {
        return Err((reply, no_amqp(&worker)));
    }
    router.stop_amqp(move |is_stored| {
        info!("Router '{worker}': AMQP stopped");
        let _ = reply.send(match is_stored {
            true => Ok(json!({"state": "stopped"})),
            false => Err(errors::not_stored("the store could not take all messages")),
        });
    });
    Ok(())
}

/// Starts AMQP that was stopped.
fn start(node: &mut Node, call: &Call) -> Answer {
    changing(node, call)?;
    let id = call.worker.as_str();
    let worker = node.worker_mut(id).ok_or_else(|| no_amqp(id))?;
    let Definition::Router(definition) = &worker.definition else {
        return Err(no_amqp(id));
    };
    let router = worker.router.as_mut().ok_or_else(|| no_amqp(id))?;
    if router.router.is_amqp_stopping() {
        return Err(still_stopping(id));
    }
    if router.is_amqp_stopped() {
        let started = router.restart_amqp(definition);
        started.map_err(|error| errors::cannot_start(&error.to_string()))?;
        info!("Router '{id}': AMQP started again");
    } else if router.router.amqp().is_none() {
        return Err(no_amqp(id));
    }
    Ok(json!({"state": "running"}))
}

/// The router, unless the node opens and closes listeners itself.
fn changing<'a>(node: &'a mut Node, call: &Call) -> Result<&'a mut RunningRouter, Refusal> {
    if node.is_ending() {
        return Err(errors::ending());
    }
    node.check_not_draining()?;
    router_mut(node, call)
}

fn alarms(node: &mut Node, call: &Call) -> Answer {
    let alarms = amqp(node, call)?.alarms();
    let about = |alarm: &Alarm| json!({"alarm": alarm.name(), "text": alarm.to_string()});
    Ok(alarms.iter().map(about).collect())
}

fn vhosts(node: &mut Node, call: &Call) -> Answer {
    let vhosts = amqp(node, call)?.vhosts();
    Ok(vhosts.iter().map(about_vhost).collect())
}

fn queues(node: &mut Node, call: &Call) -> Answer {
    let vhost = vhost(call, 0)?;
    let queues = amqp(node, call)?.queues(&vhost).map_err(no_such)?;
    part(call, queues.len(), || {
        queues.iter().map(|queue| about_queue(&vhost, queue))
    })
}

fn exchanges(node: &mut Node, call: &Call) -> Answer {
    let vhost = vhost(call, 0)?;
    let exchanges = amqp(node, call)?.exchanges(&vhost).map_err(no_such)?;
    part(call, exchanges.len(), || {
        exchanges
            .iter()
            .map(|exchange| about_exchange(&vhost, exchange))
    })
}

fn bindings(node: &mut Node, call: &Call) -> Answer {
    let vhost = vhost(call, 0)?;
    let bindings = amqp(node, call)?.bindings(&vhost).map_err(no_such)?;
    part(call, bindings.len(), || {
        bindings
            .iter()
            .map(|binding| about_binding(&vhost, binding))
    })
}

fn connections(node: &mut Node, call: &Call) -> Answer {
    let vhost: Option<String> = call.optional(0, "vhost")?;
    let mut connections = amqp(node, call)?.connections();
    connections.retain(|connection| {
        vhost
            .as_ref()
            .is_none_or(|vhost| connection.vhost == *vhost)
    });
    part(call, connections.len(), || {
        connections.iter().map(about_connection)
    })
}

/// Exchanges with messages that reached no queue, those with most of them first.
fn unroutable(node: &mut Node, call: &Call) -> Answer {
    let limit: Option<usize> = call.optional(0, "limit")?;
    let exchanges = amqp(node, call)?.unroutable();
    let shown = exchanges
        .iter()
        .take(limit.unwrap_or(UNROUTABLE_MAX).min(UNROUTABLE_MAX));
    let about = shown.map(|(vhost, exchange, messages)| {
        json!({"vhost": **vhost, "exchange": **exchange, "messages": messages})
    });
    Ok(about.collect())
}

/// Maximum number of exchanges in its answer.
const UNROUTABLE_MAX: usize = 100;

/// Whether a user has that password.
fn login(node: &mut Node, call: &Call) -> Answer {
    let user: String = call.required(0, "user")?;
    let password: String = call.required(1, "password")?;
    let found = amqp(node, call)?.users();
    let found = found.authenticate(&user, password.as_bytes(), true);
    Ok(json!({"user": user, "accepted": found.is_ok()}))
}

fn purge_queue(node: &mut Node, call: &Call) -> Answer {
    let queue: String = call.required(0, "queue")?;
    let vhost = vhost(call, 1)?;
    let purged = amqp(node, call)?.purge_queue(&vhost, &queue);
    let messages = purged.map_err(no_such)?;
    info!(
        "Router '{}': queue '{queue}' in vhost '{vhost}' purged of {messages} messages",
        call.worker
    );
    Ok(json!({"queue": queue, "vhost": vhost, "messages": messages}))
}

fn delete_queue(node: &mut Node, call: &Call) -> Answer {
    let queue: String = call.required(0, "queue")?;
    let vhost = vhost(call, 1)?;
    let is_true = |index, name| Ok::<_, Refusal>(call.optional(index, name)? == Some(true));
    let condition = DeleteIf {
        is_empty: is_true(2, "if_empty")?,
        is_unused: is_true(3, "if_unused")?,
    };
    let deleted = amqp(node, call)?.delete_queue(&vhost, &queue, condition);
    let messages = deleted.map_err(refusal)?;
    info!(
        "Router '{}': queue '{queue}' in vhost '{vhost}' deleted with {messages} messages",
        call.worker
    );
    Ok(json!({"queue": queue, "vhost": vhost, "messages": messages}))
}

fn delete_exchange(node: &mut Node, call: &Call) -> Answer {
    let exchange: String = call.required(0, "exchange")?;
    let vhost = vhost(call, 1)?;
    let deleted = amqp(node, call)?.delete_exchange(&vhost, &exchange);
    deleted.map_err(no_such)?;
    info!(
        "Router '{}': exchange '{exchange}' in vhost '{vhost}' deleted",
        call.worker
    );
    Ok(json!({"exchange": exchange, "vhost": vhost}))
}

fn close_connection(node: &mut Node, call: &Call) -> Answer {
    let number: u64 = call.required(0, "connection")?;
    let reason: Option<String> = call.optional(1, "reason")?;
    let reason = reason.unwrap_or_else(|| "Closed via management".to_owned());
    let closed = amqp(node, call)?.close_connection(number, &reason);
    closed.map_err(no_such)?;
    Ok(json!({"connection": number}))
}

/// Answers when the backup is complete and on disk.
fn back_up(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let file: String = call.required(0, "file")?;
        let path = PathBuf::from(&file);
        match path.is_absolute() {
            true => Ok((amqp(node, call)?, path)),
            false => {
                let text = format!("expected an absolute path as 'file', got '{file}'");
                Err(errors::invalid_argument(&text))
            }
        }
    };
    let (operators, path) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let worker = call.worker.clone();
    let file = path.display().to_string();
    operators.back_up(path, move |made| {
        let answer = match made {
            Ok(bytes) => {
                info!("Router '{worker}': store backed up to {file}, {bytes} bytes");
                Ok(json!({"worker": worker, "file": file, "bytes": bytes}))
            }
            Err(why) => {
                warn!("Router '{worker}': no backup of the store: {why}");
                Err(errors::no_backup(&why))
            }
        };
        // The caller may have gone.
        let _ = reply.send(answer);
    });
    Ok(())
}

fn replicated_vhosts(node: &mut Node, call: &Call) -> Answer {
    let vhosts = amqp(node, call)?.replicated();
    Ok(vhosts.iter().map(replicated::about).collect())
}

/// Answers when another node has the vhost, or the deadline has passed.
fn move_vhost(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let vhost: String = call.required(0, "vhost")?;
        let to: Option<String> = call.optional(1, "to")?;
        let within = replicated::timeout(call.optional(2, "timeout_ms")?)?;
        Ok((amqp(node, call)?, vhost, to, within))
    };
    let (operators, vhost, to, within) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let (worker, name) = (call.worker.clone(), vhost.clone());
    operators.move_vhost(&vhost, to, within, move |moved| {
        let answer = match moved {
            Ok(moved) => {
                info!("Router '{worker}': vhost '{name}' moved to {}", moved.to);
                Ok(replicated::about_moved(&name, &moved))
            }
            Err(why) => {
                warn!("Router '{worker}': vhost '{name}' is not moved: {why}");
                Err(errors::not_moved(&format!("vhost '{name}': {why}")))
            }
        };
        // The caller may have gone.
        let _ = reply.send(answer);
    });
    Ok(())
}

/// Answers when the log is recovered; without `really`, answers with the plan.
fn recover_vhost(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let vhost: String = call.required(0, "vhost")?;
        let from: String = call.required(1, "from")?;
        let means = replicated::means(&from, call.optional(2, "store")?)?;
        let is_meant: Option<bool> = call.optional(3, "really")?;
        Ok((
            amqp(node, call)?,
            vhost,
            means,
            is_meant.unwrap_or_default(),
        ))
    };
    let (operators, vhost, means, is_meant) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let (worker, name) = (call.worker.clone(), vhost.clone());
    operators.recover_vhost(&vhost, means, is_meant, move |recovered| {
        let answer = match recovered {
            Ok(recovered) => Ok(replicated::about_recovered(&name, &recovered)),
            Err(why) => {
                warn!("Router '{worker}': vhost '{name}' is not recovered: {why}");
                Err(errors::not_recovered(&format!("vhost '{name}': {why}")))
            }
        };
        let _ = reply.send(answer);
    });
    Ok(())
}

/// The requested part of a list, from `offset` on.
fn part<I: Iterator<Item = Json>>(call: &Call, count: usize, all: impl Fn() -> I) -> Answer {
    let offset: Option<usize> = call.optional(1, "offset")?;
    let limit: Option<usize> = call.optional(2, "limit")?;
    let offset = offset.unwrap_or(0).min(count);
    let limit = limit.unwrap_or(PART_MAX).min(PART_MAX);
    Ok(all().skip(offset).take(limit).collect())
}

pub(super) fn vhost(call: &Call, index: usize) -> Result<String, Refusal> {
    let vhost: Option<String> = call.optional(index, "vhost")?;
    Ok(vhost.unwrap_or_else(|| DEFAULT_VHOST.to_owned()))
}

pub(super) fn amqp(node: &Node, call: &Call) -> Result<Operators, Refusal> {
    let router = router(node, call)?;
    router.router.amqp().ok_or_else(|| {
        let worker = call.worker.as_str();
        match router.is_amqp_stopped() {
            true => errors::not_running(&format!(
                "AMQP of router '{worker}' is stopped; `rabbitmqctl start_app` starts it"
            )),
            false => no_amqp(worker),
        }
    })
}

fn still_stopping(worker: &str) -> Refusal {
    errors::not_running(&format!(
        "AMQP of router '{worker}' is still stopping: try again"
    ))
}

fn no_amqp(worker: &str) -> Refusal {
    errors::no_such_object(&format!("router '{worker}' has no AMQP"))
}

fn no_such(error: OperatorError) -> Refusal {
    errors::no_such_object(&error.to_string())
}

fn refusal(error: OperatorError) -> Refusal {
    match error {
        OperatorError::Refused { why } => errors::invalid_argument(&why),
        error => no_such(error),
    }
}

fn about_vhost(vhost: &VhostStatus) -> Json {
    json!({
        "name": vhost.name,
        "queues": vhost.queues,
        "exchanges": vhost.exchanges,
        "bindings": vhost.bindings,
        "connections": vhost.connections,
        "channels": vhost.channels,
        "consumers": vhost.consumers,
        "messages_ready": vhost.messages_ready,
        "messages_unacked": vhost.messages_unacked,
        "memory_bytes": vhost.memory_bytes,
    })
}

fn about_queue(vhost: &str, queue: &QueueStatus) -> Json {
    json!({
        "vhost": vhost,
        "name": queue.name,
        "type": queue.kind,
        "durable": queue.durable,
        "exclusive": queue.exclusive,
        "auto_delete": queue.auto_delete,
        "arguments": queue.arguments,
        "messages_ready": queue.messages_ready,
        "messages_unacked": queue.messages_unacked,
        "dead_letters_kept": queue.dead_letters_kept,
        "consumers": queue.consumers,
        "bytes": queue.bytes,
        "policy": queue.policies.policy,
        "operator_policy": queue.policies.operator_policy,
        "effective_policy_definition": queue.policies.definition,
    })
}

fn about_exchange(vhost: &str, exchange: &ExchangeStatus) -> Json {
    json!({
        "vhost": vhost,
        "name": exchange.name,
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "messages_delayed": exchange.messages_delayed,
        "arguments": exchange.arguments,
        "policy": exchange.policies.policy,
        "operator_policy": exchange.policies.operator_policy,
        "effective_policy_definition": exchange.policies.definition,
    })
}

fn about_binding(vhost: &str, binding: &BindingStatus) -> Json {
    json!({
        "vhost": vhost,
        "source": binding.source,
        "destination": binding.destination,
        "destination_type": if binding.is_to_exchange { "exchange" } else { "queue" },
        "routing_key": binding.routing_key,
        "arguments": binding.arguments,
    })
}

fn about_connection(connection: &ConnectionStatus) -> Json {
    json!({
        "connection": connection.number,
        "name": connection.name,
        "user": connection.user,
        "vhost": connection.vhost,
        "peer": connection.peer,
        "client": connection.client,
        "channels": connection.channels,
        "state": connection.state,
        "since": date(connection.since),
    })
}
