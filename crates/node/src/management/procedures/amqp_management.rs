//! Procedures of router workers with AMQP: RabbitMQ's management API, as its administrator.

use crosstie_config::Json;
use crosstie_router::Transfer;
use serde_json::json;
use tracing::info;

use super::amqp::{PART_MAX, amqp, vhost};
use super::router::router;
use super::{Deferred, Procedure, later};
use crate::management::errors;
use crate::management::request::{Call, Reply};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 4] = [
    later("crossbar.worker..get_amqp_management", management),
    later("crossbar.worker..get_amqp_monitoring", monitoring),
    later(
        "crossbar.worker..request_amqp_management",
        request_management,
    ),
    later("crossbar.worker..move_amqp_messages", move_messages),
];

/// A GET of the management API, as its administrator.
fn management(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let path: String = call.required(0, "path")?;
        let offset: Option<usize> = call.optional(1, "offset")?;
        amqp(node, call)?;
        Ok((&router(node, call)?.router, path, offset.unwrap_or(0)))
    };
    let (router, path, offset) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    router.read_management(path, offset, PART_MAX, move |status, body| {
        let body = serde_json::from_slice::<Json>(&body).unwrap_or_default();
        // The caller may have gone.
        let _ = reply.send(Ok(json!({"status": status, "body": body})));
    });
    Ok(())
}

/// The same of objects that have no secrets.
fn monitoring(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let path: String = match call.required(0, "path") {
        Ok(path) => path,
        Err(error) => return Err((reply, error)),
    };
    let name = path.split(['/', '?']).next().unwrap_or_default();
    if !MONITORED.contains(&name) {
        let expected = MONITORED.join(", ");
        let text = format!("argument 0, 'path': expected one below {expected}, got '{path}'");
        return Err((reply, errors::invalid_argument(&text)));
    }
    management(node, call, reply)
}

/// The first segments of paths without secrets.
const MONITORED: [&str; 12] = [
    "overview",
    "nodes",
    "vhosts",
    "queues",
    "exchanges",
    "bindings",
    "connections",
    "channels",
    "consumers",
    "policies",
    "operator-policies",
    "vhost-limits",
];

/// A request of the management API with another method, as its administrator.
fn request_management(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let method: String = call.required(0, "method")?;
        let path: String = call.required(1, "path")?;
        let body: Option<Json> = call.optional(2, "body")?;
        if !["PUT", "POST", "DELETE"].contains(&method.as_str()) {
            let text =
                format!("argument 0, 'method': expected PUT, POST or DELETE, got '{method}'");
            return Err(errors::invalid_argument(&text));
        }
        amqp(node, call)?;
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        Ok((&router(node, call)?.router, method, path, body))
    };
    let (router, method, path, body) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    info!("Router '{}': {method} /api/{path}", call.worker);
    router.operate_management(method, path, body, move |status, body| {
        let body = serde_json::from_slice::<Json>(&body).unwrap_or_default();
        // The caller may have gone.
        let _ = reply.send(Ok(json!({"status": status, "body": body})));
    });
    Ok(())
}

/// Maximum number of messages of one call. A caller repeats it for more.
const MESSAGES_MAX: usize = 1_000;

/// Moves messages from one queue to another. Answers when they are there.
fn move_messages(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let order = Transfer {
            from: call.required(0, "queue")?,
            to: call.required(1, "to")?,
            vhost: vhost(call, 2)?,
            limit: call
                .optional(3, "limit")?
                .unwrap_or(MESSAGES_MAX)
                .min(MESSAGES_MAX),
        };
        amqp(node, call)?;
        Ok((&router(node, call)?.router, order))
    };
    let (router, order) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let (worker, of) = (call.worker.clone(), order.clone());
    router.transfer_messages(order, move |outcome| {
        let Transfer {
            vhost, from, to, ..
        } = of;
        let moved = outcome.as_ref().map_or_else(|why| why.moved, |done| done.moved);
        if moved > 0 {
            info!(
                "Router '{worker}': {moved} messages of queue '{from}' in vhost '{vhost}' moved to '{to}'"
            );
        }
        let answer = match outcome {
            Ok(done) => Ok(json!({
                "queue": from, "to": to, "vhost": vhost, "moved": moved, "left": done.left
            })),
            Err(why) if why.is_missing => Err(errors::no_such_object(&why.why)),
            Err(why) => {
                let text = format!("{moved} messages were moved, and no more: {}", why.why);
                Err(errors::not_moved(&text))
            }
        };
        // The caller may have gone.
        let _ = reply.send(answer);
    });
    Ok(())
}
