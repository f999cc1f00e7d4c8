//! Procedures of router workers with AMQP: RabbitMQ's definitions, exported and imported.

use crosstie_config::Json;
use crosstie_router::amqp::RefusalKind;
use serde_json::json;
use tracing::info;

use super::amqp::amqp;
use super::amqp_entries::refused_for;
use super::{Deferred, Procedure, later, now};
use crate::management::errors;
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 2] = [
    now("crossbar.worker..get_amqp_definitions", definitions),
    later("crossbar.worker..import_amqp_definitions", import),
];

fn definitions(node: &mut Node, call: &Call) -> Answer {
    let vhost: Option<String> = call.optional(0, "vhost")?;
    let operators = amqp(node, call)?;
    match vhost {
        None => Ok(operators.export()),
        Some(vhost) => {
            let exported = operators.export_vhost(&vhost);
            exported.map_err(|error| errors::no_such_object(&error.to_string()))
        }
    }
}

/// Answers when the store has everything.
fn import(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let json: Json = call.required(0, "definitions")?;
        let vhost: Option<String> = call.optional(1, "vhost")?;
        let is_check: Option<bool> = call.optional(2, "dry_run")?;
        Ok((json, vhost, is_check.unwrap_or_default(), amqp(node, call)?))
    };
    let (json, vhost, is_check, operators) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let worker = call.worker.clone();
    let json = json.to_string().into_bytes();
    operators.import_later(json, vhost, is_check, move |imported| {
        let answer = match imported {
            Ok(skipped) => {
                let outcome = if is_check { "checked" } else { "imported" };
                info!("Router '{worker}': definitions {outcome}");
                let skipped = skipped.into_iter();
                let skipped = skipped.map(|one| json!({"what": one.what, "reason": one.why}));
                let skipped: Vec<_> = skipped.collect();
                Ok(json!({"worker": worker, "outcome": outcome, "skipped": skipped}))
            }
            Err(refused) if refused.kind == RefusalKind::NoVhost => {
                Err(errors::no_such_object("there is no such vhost"))
            }
            Err(refused) => Err(refused_for("the definitions", refused)),
        };
        // The caller may have gone.
        let _ = reply.send(answer);
    });
    Ok(())
}
