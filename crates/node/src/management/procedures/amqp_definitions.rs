//! Procedures of router workers with AMQP: RabbitMQ's definitions, exported and imported.

use crosstie_config::Json;
use crosstie_router::amqp::RefusalKind;
use serde_json::json;
use tracing::info;

use super::amqp::amqp;
use super::amqp_entries::refused_for;
use super::{Deferred, Procedure, later};
use crate::management::errors;
use crate::management::request::{Call, Reply};
use crate::node::Node;

/// Maximum bytes of an export: a message to the caller has 16 MiB.
const EXPORT_BYTES_MAX: usize = 16_000_000;

pub(super) static PROCEDURES: [Procedure; 2] = [
    later("crossbar.worker..get_amqp_definitions", definitions),
    later("crossbar.worker..import_amqp_definitions", import),
];

/// Answers once all lists are read, which a thread of its own does.
fn definitions(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || {
        let vhost: Option<String> = call.optional(0, "vhost")?;
        Ok((vhost, amqp(node, call)?))
    };
    let (vhost, operators) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    operators.export_later(vhost, move |exported| {
        let exported = exported.map_err(|error| errors::no_such_object(&error.to_string()));
        let exported = exported.and_then(|exported| match exported.to_string().len() {
            0..=EXPORT_BYTES_MAX => Ok(exported),
            bytes => Err(errors::not_supported(&format!(
                "expected definitions of at most {EXPORT_BYTES_MAX} bytes, got {bytes}: the management API has them"
            ))),
        });
        // The caller may have gone.
        let _ = reply.send(exported);
    });
    Ok(())
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
