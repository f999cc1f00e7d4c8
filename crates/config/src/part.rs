//! Parts of a configuration that come as values while the node runs, not in a file.
//!
//! The tables of a file check them. Problems name the path to the value instead of line and column:
//! `/transport/endpoint/port: …`. A value comes from a program: `$VARIABLE` in it is ordinary text, and warnings are
//! dropped, since no operator would read them.

use crate::build::Builder;
use crate::catalogue::{
    CONTAINER_COMPONENT, JOINT, Kind, REALM, RLINK, ROLE, ROUTER_COMPONENT, TRANSPORT, WORKER,
};
use crate::check;
use crate::model::{Component, Joint, Json, RLink, Realm, Role, Transport, Worker};
use crate::problem::{Problem, Severity, failed};
use crate::tree::{self, Format, Node, Span, Value};
use crate::view::{View, view_of};

/// A worker, as in a file's `workers`. `id` takes precedence over the value's own.
pub fn worker_from_json(id: Option<&str>, json: &Json) -> Result<Worker, String> {
    let mut json = json.clone();
    if let (Some(id), Some(object)) = (id, json.as_object_mut()) {
        object.insert("id".into(), id.into());
    }
    let built = part(
        &json,
        &Kind::Tagged(&WORKER),
        "a worker",
        |builder, view| builder.worker(view),
    )?;
    built.ok_or_else(|| "/options/disabled: the worker is disabled".into())
}

/// A realm, as in a router worker's `realms`.
pub fn realm_from_json(json: &Json) -> Result<Realm, String> {
    part(json, &Kind::Object(&REALM), "a realm", |builder, view| {
        builder.realm(view)
    })
}

/// A link, as in a realm's `rlinks`. The caller checks that the realm has its role.
pub fn rlink_from_json(id: &str, json: &Json) -> Result<RLink, String> {
    part(json, &Kind::Object(&RLINK), "a link", |builder, view| {
        builder.rlink(view, id.to_owned())
    })
}

/// A joint, as in a router worker's `joints`. The caller checks realm, role, vhost, user and cycles.
pub fn joint_from_json(id: &str, json: &Json) -> Result<Joint, String> {
    part(json, &Kind::Tagged(&JOINT), "a joint", |builder, view| {
        builder.joint(view, id.to_owned())
    })
}

/// A role, as in a realm's `roles`.
pub fn role_from_json(json: &Json) -> Result<Role, String> {
    part(json, &Kind::Object(&ROLE), "a role", |builder, view| {
        builder.role(view)
    })
}

/// A transport, as in a router worker's `transports`. The caller checks its realms and roles.
pub fn transport_from_json(json: &Json) -> Result<Transport, String> {
    part(
        json,
        &Kind::Tagged(&TRANSPORT),
        "a transport",
        |builder, view| {
            let id = view.text("id").unwrap_or("transport1").to_owned();
            builder.transport(view, id, None)
        },
    )
}

/// A component, as in the `components` of a router or a container. The caller checks a router's realm and role.
pub fn component_from_json(json: &Json, within_router: bool) -> Result<Component, String> {
    let kind = if within_router {
        &ROUTER_COMPONENT
    } else {
        &CONTAINER_COMPONENT
    };
    part(json, &Kind::Tagged(kind), kind.name, |builder, view| {
        let id = view.text("id").unwrap_or("component1").to_owned();
        builder.component(view, id)
    })
}

/// Goes through text, so that a value passes the same checks as a file.
fn part<T>(
    json: &Json,
    kind: &Kind,
    subject: &str,
    build: impl FnOnce(&mut Builder<'_>, View<'_>) -> T,
) -> Result<T, String> {
    let mut problems = Vec::new();
    let Some(mut root) = tree::parse(&json.to_string(), Format::Json, &mut problems) else {
        return Err(told(&problems, None));
    };
    check::check(&mut root, kind, subject, None, &mut problems);
    if failed(&problems) {
        return Err(told(&problems, Some(&root)));
    }
    let view = view_of(&root, kind);
    let view = view.ok_or_else(|| format!("{subject} must be an object"))?;
    let built = build(&mut Builder::new(&mut problems), view);
    if failed(&problems) {
        return Err(told(&problems, Some(&root)));
    }
    Ok(built)
}

/// One line for each error.
fn told(problems: &[Problem], root: Option<&Node>) -> String {
    let errors = problems.iter();
    let mut errors: Vec<&Problem> = errors.filter(|p| p.severity == Severity::Error).collect();
    errors.sort_by_key(|problem| problem.span.start);
    let lines = errors.iter().map(|problem| {
        let mut line = String::new();
        if let Some(way) = root.and_then(|root| way_to(root, problem.span)) {
            line = if way.is_empty() { way } else { way + ": " };
        }
        line += &problem.message;
        for (note, _) in problem.notes.iter().filter(|(_, at)| at.is_none()) {
            line = format!("{line} ({note})");
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The path from `node` to the value or key at `span`, as a JSON pointer (RFC 6901).
fn way_to(node: &Node, span: Span) -> Option<String> {
    if node.span == span {
        return Some(String::new());
    }
    let step = |name: &str, way: String| {
        let name = name.replace('~', "~0").replace('/', "~1");
        format!("/{name}{way}")
    };
    match &node.value {
        Value::Object(entries) => entries.iter().find_map(|entry| {
            if entry.key_span == span {
                return Some(step(&entry.key, String::new()));
            }
            Some(step(&entry.key, way_to(&entry.node, span)?))
        }),
        Value::List(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(step(&index.to_string(), way_to(item, span)?))),
        _ => None,
    }
}
