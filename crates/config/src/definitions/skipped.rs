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

/// Names of the cluster and its nodes, which every file of newer versions has.
const ABOUT_CLUSTERS: &[&str] = &["cluster_name", "cluster_tags", "internal_cluster_id"];

/// Lists that are skipped as a whole, and unknown keys.
pub(super) fn in_file(file: &Value<'_>) -> Result<Vec<Skipped>, String> {
    let mut skipped = Vec::new();
    for parameter in file.objects("parameters")? {
        skipped.extend(self::parameter(&parameter)?);
    }
    for parameter in file.objects("global_parameters")? {
        let name = parameter.text("name")?;
        if !ABOUT_CLUSTERS.contains(&name) {
            let what = format!("global parameter '{name}'");
            skipped.push(skip(what, "no plugin is there that would read it"));
        }
    }
    for permission in file.objects("topic_permissions")? {
        skipped.push(topic_permission(&permission)?);
    }
    for key in file.keys().filter(|key| !KNOWN.contains(key)) {
        skipped.push(skip(format!("'{key}'"), "it is not known"));
    }
    Ok(skipped)
}

/// Without one, a user may use every routing key.
fn topic_permission(permission: &Value<'_>) -> Result<Skipped, String> {
    let (user, vhost) = (permission.text("user")?, permission.text("vhost")?);
    let exchange = permission.optional_text("exchange")?.unwrap_or_default();
    let what =
        format!("topic permission of user '{user}' on exchange '{exchange}' in vhost '{vhost}'");
    let is_all = |key| Ok::<_, String>(permission.optional_text(key)? == Some(".*"));
    let why =
        "routing keys are not restricted: a user who may write to an exchange may use every one";
    Ok(Skipped {
        is_wider: !(is_all("write")? && is_all("read")?),
        ..skip(what, why)
    })
}

/// Keys of a user that are not imported.
pub(super) fn of_user(user: &Value<'_>, name: &str) -> Option<Skipped> {
    let limits = user.get("limits");
    has_any(limits).then(|| Skipped {
        is_wider: has_zero(limits),
        ..skip(
            format!("limits of user '{name}'"),
            "there are no bounds by user; transports have `max_connections`",
        )
    })
}

/// Keys of a vhost that are not imported.
pub(super) fn of_vhost(vhost: &Value<'_>, name: &str) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    let limits = vhost.get("limits");
    if has_any(limits) {
        skipped.push(limits_of_vhost(name, limits));
    }
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
            "messages are not traced",
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

fn limits_of_vhost(name: &str, limits: Option<&Json>) -> Skipped {
    Skipped {
        is_wider: has_zero(limits),
        ..skip(
            format!("limits of vhost '{name}'"),
            "the bounds are those of the configuration's `limits`",
        )
    }
}

/// Whether a limit is 0, which disables a user or a vhost in RabbitMQ.
fn has_zero(limits: Option<&Json>) -> bool {
    let limits = limits.and_then(Json::as_object);
    limits.is_some_and(|limits| limits.values().any(|limit| limit.as_i64() == Some(0)))
}

/// `None`: it is read.
fn parameter(parameter: &Value<'_>) -> Result<Option<Skipped>, String> {
    let component = parameter.text("component")?;
    let home = at_home(parameter)?;
    Ok(Some(match component {
        "operator_policy" => return Ok(None),
        "vhost-limits" => {
            let vhost = parameter.text("vhost")?;
            limits_of_vhost(vhost, parameter.get("value"))
        }
        "shovel" => skip(format!("shovel {home}"), "there are no shovels"),
        "federation-upstream" | "federation-upstream-set" => skip(
            format!("{component} {home}"),
            "there are no links between brokers",
        ),
        other => skip(
            format!("parameter {home} of '{other}'"),
            "no plugin is there that would read it",
        ),
    }))
}

/// `'ha' in vhost '/'`.
fn at_home(value: &Value<'_>) -> Result<String, String> {
    let (name, vhost) = (value.text("name")?, value.text("vhost")?);
    Ok(format!("'{name}' in vhost '{vhost}'"))
}

/// Whether it holds anything at all, as a list or an object.
fn has_any(json: Option<&Json>) -> bool {
    match json {
        Some(Json::Array(items)) => !items.is_empty(),
        Some(Json::Object(entries)) => !entries.is_empty(),
        _ => false,
    }
}
