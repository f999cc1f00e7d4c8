//! Parts of a definitions file that Crosstie does not import, each with the reason. The reasons describe the effect
//! of the difference.

use super::value::Value;
use crate::model::{Json, Skipped};

/// Keys of the file that are read, or that declare nothing.
const KNOWN: &[&str] = &[
    "bindings",
    "exchanges",
    "explanation",
    "global_parameters",
    "left_out",
    "original_cluster_name",
    "original_vhost_name",
    "parameters",
    "permissions",
    "policies",
    "product_name",
    "product_version",
    "queues",
    "rabbit_version",
    "rabbitmq_definition_format",
    "rabbitmq_version",
    "topic_permissions",
    "users",
    "vhosts",
];

/// Lists that belong to no single vhost.
const OF_ALL: &[&str] = &[
    "global_parameters",
    "permissions",
    "topic_permissions",
    "users",
    "vhosts",
];

/// Unknown keys, and lists that are skipped as a whole.
pub(super) fn in_file(file: &Value<'_>, is_for_one: bool) -> Result<Vec<Skipped>, String> {
    let mut skipped = Vec::new();
    if is_for_one {
        for key in OF_ALL {
            if !file.objects(key)?.is_empty() {
                let why = "these definitions are for a single vhost";
                skipped.push(skip(format!("'{key}'"), why));
            }
        }
    }
    for key in file.keys().filter(|key| !KNOWN.contains(key)) {
        skipped.push(skip(format!("'{key}'"), "it is not known"));
    }
    Ok(skipped)
}

/// Keys of a vhost that are not imported.
pub(super) fn of_vhost(vhost: &Value<'_>, name: &str) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    let metadata = vhost.get("metadata");
    let within = metadata.and_then(|metadata| metadata.get("default_queue_type"));
    let default = vhost.get("default_queue_type").or(within);
    if let Some(kind) = default.and_then(Json::as_str)
        && !["classic", "undefined"].contains(&kind)
    {
        skipped.push(skip(
            format!("default queue type '{kind}' of vhost '{name}'"),
            "a queue is of the type that its declaration names, or else classic",
        ));
    }
    if vhost.get("tracing").and_then(Json::as_bool) == Some(true) {
        skipped.push(skip(
            format!("tracing of vhost '{name}'"),
            "tracing ends with the node: `rabbitmqctl trace_on` begins it",
        ));
    }
    skipped
}

/// The reason for skipping a queue of this type with these arguments, if any.
pub(super) fn reason_for_queue(kind: Option<&str>, arguments: &[(String, Json)]) -> Option<String> {
    let argument = |name: &str| arguments.iter().find(|(known, _)| known == name);
    let named = argument("x-queue-type").and_then(|(_, kind)| kind.as_str());
    match named.or(kind) {
        None
        | Some(
            "classic"
            | "quorum"
            | "stream"
            | "rabbit_classic_queue"
            | "rabbit_quorum_queue"
            | "rabbit_stream_queue",
        ) => {}
        Some(other) => return Some(format!("there are no queues of type '{other}'")),
    }
    None
}

/// The reason for skipping an exchange of this type, if any.
pub(super) fn reason_for_exchange(kind: &str) -> Option<String> {
    const KNOWN: [&str; 9] = [
        "direct",
        "fanout",
        "topic",
        "headers",
        "x-consistent-hash",
        "x-modulus-hash",
        "x-random",
        "x-recent-history",
        "x-delayed-message",
    ];
    if KNOWN.contains(&kind) {
        return None;
    }
    Some(format!("exchanges of type '{kind}' come from a plugin"))
}

pub(super) fn skip(what: String, why: impl Into<String>) -> Skipped {
    Skipped {
        what,
        why: why.into(),
        is_wider: false,
    }
}

/// A parameter that nothing here reads.
pub(super) fn parameter(parameter: &Value<'_>) -> Result<Skipped, String> {
    let component = parameter.text("component")?;
    let home = at_home(parameter)?;
    Ok(match component {
        "shovel" => skip(format!("shovel {home}"), "there are no shovels"),
        "federation-upstream" | "federation-upstream-set" => skip(
            format!("{component} {home}"),
            "there are no links between brokers",
        ),
        other => skip(
            format!("parameter {home} of '{other}'"),
            "no plugin is there that would read it",
        ),
    })
}

/// `'ha' in vhost '/'`.
fn at_home(value: &Value<'_>) -> Result<String, String> {
    let name = value.text("name")?;
    let vhost = value.optional_text("vhost")?.unwrap_or_default();
    Ok(format!("'{name}' in vhost '{vhost}'"))
}
