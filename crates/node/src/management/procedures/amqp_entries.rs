//! Procedures of router workers with AMQP: users, vhosts, permissions, policies, limits and parameters.
//!
//! An entry is an object with its `kind` and its names; the body of a `put` is that of RabbitMQ's HTTP API.

use std::sync::Arc;

use crosstie_config::Json;
use crosstie_router::amqp::{
    Change, Entry, Metadata, Operators, Origin, Outcome, PolicyKind, Refusal as Refused,
    RefusalKind,
};
use serde_json::{Map, json};
use tracing::info;

use super::amqp::{self, amqp};
use super::{Deferred, Procedure, later, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 3] = [
    now("crossbar.worker..get_amqp_entries", entries),
    later("crossbar.worker..put_amqp_entry", put),
    later("crossbar.worker..delete_amqp_entry", delete),
];

fn entries(node: &mut Node, call: &Call) -> Answer {
    let kind: String = call.required(0, "kind")?;
    let vhost: Option<String> = call.optional(1, "vhost")?;
    let name: Option<String> = call.optional(2, "name")?;
    let operators = amqp(node, call)?;
    let metadata = operators.metadata();
    let offset: Option<usize> = call.optional(3, "offset")?;
    let (vhost, name) = (vhost.as_deref(), name.as_deref());
    let all = match kind.as_str() {
        "user" => users(&metadata, name),
        "vhost" => vhosts(&operators, &metadata, name),
        "permission" => metadata.list_permissions(vhost, name),
        "topic-permission" => metadata.list_topic_permissions(vhost, name),
        "policy" => metadata.list_policies(PolicyKind::User, vhost),
        "operator-policy" => metadata.list_policies(PolicyKind::Operator, vhost),
        "vhost-limits" => metadata.list_vhost_limits(vhost),
        "user-limits" => metadata.list_user_limits(name),
        "parameter" => metadata.list_parameters(None, vhost),
        "global-parameter" => metadata.list_global_parameters(name),
        other => return Err(no_kind(other)),
    };
    let part = all
        .into_iter()
        .skip(offset.unwrap_or(0))
        .take(amqp::PART_MAX);
    Ok(part.collect())
}

/// Answers when the store has the entry.
fn put(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let change = || {
        let entry = entry(&call.required(0, "entry")?)?;
        let body: Json = call.required(1, "body")?;
        let change = Change::put(entry.clone(), &body, None);
        Ok((
            entry.clone(),
            change.map_err(|refused| refusal(&entry, refused))?,
        ))
    };
    act(node, call, reply, change)
}

/// Answers when the store has not got it any more.
fn delete(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let change = || {
        let entry = entry(&call.required(0, "entry")?)?;
        Ok((entry.clone(), Change::Delete(entry)))
    };
    act(node, call, reply, change)
}

fn act(
    node: &Node,
    call: &Call,
    reply: Reply,
    change: impl FnOnce() -> Result<(Entry, Change), Refusal>,
) -> Deferred {
    let asked = change().and_then(|asked| Ok((amqp(node, call)?, asked)));
    let (operators, (entry, change)) = match asked {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    let worker = call.worker.clone();
    operators.change_later(change, move |changed| {
        let answer = match changed {
            Ok(outcome) => {
                let done = match outcome {
                    Outcome::Created => "created",
                    Outcome::Deleted => "deleted",
                    Outcome::Replaced => "changed",
                };
                info!("Router '{worker}': {} {done}", describe(&entry));
                Ok(json!({"worker": worker, "outcome": done}))
            }
            Err(refused) => Err(refusal(&entry, refused)),
        };
        // The caller may have gone.
        let _ = reply.send(answer);
    });
    Ok(())
}

fn refusal(entry: &Entry, refused: Refused) -> Refusal {
    refused_for(&describe(entry), refused)
}

pub(super) fn refused_for(what: &str, refused: Refused) -> Refusal {
    match refused.kind {
        RefusalKind::Absent => errors::no_such_object(&format!("there is no {what}")),
        RefusalKind::NoVhost => {
            errors::no_such_object(&format!("{what}: the vhost does not exist"))
        }
        RefusalKind::Configured => errors::read_only(&refused.reason),
        RefusalKind::Elsewhere | RefusalKind::NotStored => errors::not_stored(&refused.reason),
        RefusalKind::Unsupported => errors::not_supported(&refused.reason),
        _ => errors::invalid_argument(refused.reason.trim_end()),
    }
}

/// The entry of an object with `kind` and names.
fn entry(object: &Json) -> Result<Entry, Refusal> {
    let empty = Map::new();
    let names = object.as_object().unwrap_or(&empty);
    let optional = |key: &str| match names.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(errors::invalid_argument(&format!(
            "'{key}' of an entry: expected a text, got {other}"
        ))),
    };
    let required = |key: &str| {
        let found = optional(key)?;
        let missing = || errors::invalid_argument(&format!("expected '{key}' in an entry"));
        found.map(Arc::from).ok_or_else(missing)
    };
    let kind = required("kind")?;
    Ok(match &*kind {
        "user" => Entry::User(required("name")?),
        "vhost" => Entry::Vhost(required("name")?),
        "permission" => Entry::Permission {
            vhost: required("vhost")?,
            user: required("user")?,
        },
        "topic-permission" => Entry::TopicPermission {
            vhost: required("vhost")?,
            user: required("user")?,
            exchange: optional("exchange")?.map(Arc::from),
        },
        "policy" | "operator-policy" => Entry::Policy {
            kind: match &*kind {
                "policy" => PolicyKind::User,
                _ => PolicyKind::Operator,
            },
            vhost: required("vhost")?,
            name: required("name")?,
        },
        "vhost-limits" => Entry::VhostLimits {
            vhost: required("vhost")?,
            name: optional("name")?,
        },
        "user-limits" => Entry::UserLimits {
            user: required("user")?,
            name: optional("name")?,
        },
        "global-parameter" => Entry::GlobalParameter(required("name")?),
        other => return Err(no_kind(other)),
    })
}

fn no_kind(found: &str) -> Refusal {
    errors::invalid_argument(&format!(
        "kind: expected user, vhost, permission, topic-permission, policy, operator-policy, vhost-limits, user-limits, \
         parameter (to be listed) or global-parameter, got '{found}'"
    ))
}

fn describe(entry: &Entry) -> String {
    let all = |name: &Option<String>, of: String| match name {
        Some(name) => format!("limit '{name}' of {of}"),
        None => format!("limits of {of}"),
    };
    match entry {
        Entry::User(name) => format!("user '{name}'"),
        Entry::Vhost(name) => format!("vhost '{name}'"),
        Entry::Permission { vhost, user } => {
            format!("permission of user '{user}' in vhost '{vhost}'")
        }
        Entry::TopicPermission { vhost, user, .. } => {
            format!("topic permission of user '{user}' in vhost '{vhost}'")
        }
        Entry::VhostLimits { vhost, name } => all(name, format!("vhost '{vhost}'")),
        Entry::UserLimits { user, name } => all(name, format!("user '{user}'")),
        Entry::GlobalParameter(name) => format!("global parameter '{name}'"),
        Entry::Policy { kind, vhost, name } => {
            let kind = match kind {
                PolicyKind::Operator => "operator policy",
                PolicyKind::User => "policy",
            };
            format!("{kind} '{name}' in vhost '{vhost}'")
        }
    }
}

/// The users, each with the key of the configuration that names it.
fn users(metadata: &Metadata, name: Option<&str>) -> Vec<Json> {
    let mut users = metadata.list_users(name);
    for user in &mut users {
        let origin = metadata.user_origin(user["name"].as_str().unwrap_or_default());
        user["configuration"] = key_of(origin);
    }
    users
}

fn vhosts(operators: &Operators, metadata: &Metadata, name: Option<&str>) -> Vec<Json> {
    let open = operators.open_vhosts();
    let is_traced = |name: &str| {
        let mut open = open.iter();
        open.any(|vhost| **vhost.name() == *name && vhost.is_traced())
    };
    let vhosts = metadata
        .vhosts()
        .filter(|vhost| name.is_none_or(|name| ***vhost == *name));
    vhosts
        .map(|vhost| {
            let mut row = metadata.vhost_json(vhost, is_traced(vhost));
            row["configuration"] = key_of(metadata.vhost_origin(vhost));
            row
        })
        .collect()
}

fn key_of(origin: Option<Origin>) -> Json {
    match origin {
        Some(Origin::Configured(key)) => key.into(),
        _ => Json::Null,
    }
}
