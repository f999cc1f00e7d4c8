//! Conversion of earlier forms of the format, in the tree and before all checks: version 1, former names of web
//! services, and Twisted's endpoint strings.
//!
//! Version 1 has a permission's actions beside its pattern (`call`, `register`, `publish`, `subscribe`); version 2 has
//! them in `allow`. Nothing else differs. A file of version 1 may have no `version`.

use crate::problem::Problem;
use crate::tree::{Entry, Node, Span, Value};
use crate::twisted;

/// The version of the format that all other code reads.
const VERSION: i64 = 2;

const ACTIONS: [&str; 4] = ["call", "register", "publish", "subscribe"];

/// Keys of a permission in version 2 that no earlier version has.
const LATER: [&str; 4] = ["allow", "match", "disclose", "cache"];

/// Brings a file to version 2.
pub(crate) fn renew(root: &mut Node, problems: &mut Vec<Problem>) {
    twisted::replace(root, problems);
    for worker in items(root, "workers") {
        for transport in items(worker, "transports") {
            rename_pushers(transport, problems);
        }
    }
    let version = root.entry("version").map(|entry| entry.node.clone());
    match version.as_ref().map(|version| &version.value) {
        None | Some(Value::Integer(1)) => {}
        Some(_) => return,
    }
    let mut converted = 0;
    for_each_permission(root, &mut |permission| {
        converted += usize::from(convert(permission))
    });
    let at = version.as_ref().map_or(root.span, |version| version.span);
    let permissions = match converted {
        1 => "the permission of it is".to_owned(),
        count => format!("the {count} permissions of it are"),
    };
    let message = match (version.is_some(), converted) {
        (true, 0) => {
            "\"version\" 1 is taken as version 2: the file has nothing that differs".to_owned()
        }
        (true, _) => format!("\"version\" 1 is taken as version 2: {permissions} converted"),
        // The builder warns about a file without a version.
        (false, 0) => return,
        (false, _) => format!("\"version\" is missing and taken to be 1: {permissions} converted"),
    };
    set_version(root, at);
    let note = "`crosstie convert` writes the file anew, in version 2";
    problems.push(Problem::warning(at, message).note(note));
}

/// The former name of the web service `publisher` is `pusher`.
fn rename_pushers(node: &mut Node, problems: &mut Vec<Problem>) {
    let Value::Object(entries) = &mut node.value else {
        return;
    };
    for entry in entries {
        match (entry.key.as_str(), &mut entry.node.value) {
            ("web", _) => rename_pushers(&mut entry.node, problems),
            ("paths", Value::Object(services)) => {
                for service in services {
                    rename_pushers(&mut service.node, problems);
                    rename_pusher(&mut service.node, problems);
                }
            }
            _ => {}
        }
    }
}

fn rename_pusher(service: &mut Node, problems: &mut Vec<Problem>) {
    let Value::Object(entries) = &mut service.value else {
        return;
    };
    let kind = entries.iter_mut().find(|entry| entry.key == "type");
    if let Some(kind) = kind
        && kind.node.value == Value::Text("pusher".into())
    {
        kind.node.value = Value::Text("publisher".into());
        let message = "\"pusher\" is taken to be \"publisher\", which is its name now";
        problems.push(Problem::warning(kind.node.span, message.into()));
    }
}

fn set_version(root: &mut Node, span: Span) {
    let Value::Object(entries) = &mut root.value else {
        return;
    };
    let node = Node::new(span, Value::Integer(VERSION));
    match entries.iter_mut().find(|entry| entry.key == "version") {
        Some(entry) => entry.node = node,
        None => entries.insert(0, Entry::new("version".into(), span, node)),
    }
}

fn for_each_permission(root: &mut Node, visit: &mut impl FnMut(&mut Node)) {
    for worker in items(root, "workers") {
        for realm in items(worker, "realms") {
            for role in items(realm, "roles") {
                items(role, "permissions").iter_mut().for_each(&mut *visit);
            }
        }
    }
}

fn items<'n>(node: &'n mut Node, key: &str) -> &'n mut [Node] {
    let Value::Object(entries) = &mut node.value else {
        return &mut [];
    };
    let entry = entries.iter_mut().find(|entry| entry.key == key);
    match entry.map(|entry| &mut entry.node.value) {
        Some(Value::List(items)) => items,
        _ => &mut [],
    }
}

/// Moves a permission's actions into `allow`. Returns whether the permission was of version 1.
fn convert(permission: &mut Node) -> bool {
    let span = permission.span;
    let Value::Object(entries) = &mut permission.value else {
        return false;
    };
    let has = |names: &[&str]| {
        entries
            .iter()
            .any(|entry| names.contains(&entry.key.as_str()))
    };
    if has(&LATER) || !has(&ACTIONS) {
        return false;
    }
    let (actions, mut others): (Vec<Entry>, Vec<Entry>) = std::mem::take(entries)
        .into_iter()
        .partition(|entry| ACTIONS.contains(&entry.key.as_str()));
    let key_span = actions.first().map_or(span, |action| action.key_span);
    others.push(Entry::new(
        "allow".into(),
        key_span,
        Node::new(key_span, Value::Object(actions)),
    ));
    *entries = others;
    true
}
