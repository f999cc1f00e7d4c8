//! A file of principals, as the object of the method whose they are: so it passes the same checks.

use std::sync::Arc;

use crosstie_auth::wamp::{Cryptosign, Method, Methods, Scram, Ticket, WampCra};

use crate::tree::{Entry, Node, Span, Value};

/// The methods that have principals, with the key under which they stand and that of a file with them.
pub(crate) const KEYS: [(Method, &str, &str); 4] = [
    (Method::Ticket, "principals", "principals_file"),
    (Method::WampCra, "users", "users_file"),
    (Method::Scram, "principals", "principals_file"),
    (Method::Cryptosign, "principals", "principals_file"),
];

/// A method's object whose principals are what a file holds.
pub(crate) fn wrapped(methods: &Methods, method: Method, file: Node) -> Node {
    let span = file.span;
    let entry = |key: &str, node| Entry {
        key: key.to_owned(),
        key_span: span,
        node,
    };
    let text = |text: &str| Node {
        span: Span::default(),
        value: Value::Text(text.to_owned()),
    };
    let key = KEYS.iter().find(|(of, ..)| *of == method);
    let key = key.map_or("principals", |(_, here, _)| here);
    let mut entries = vec![entry("type", text("static")), entry(key, file)];
    if let Some(role) = default_role(methods, method) {
        entries.push(entry("default-role", text(role)));
    }
    Node {
        span,
        value: Value::Object(entries),
    }
}

fn default_role(methods: &Methods, method: Method) -> Option<&str> {
    let role: Option<&Arc<str>> = match method {
        Method::Ticket => match &methods.ticket {
            Some(Ticket::Static { default_role, .. }) => default_role.as_ref(),
            _ => None,
        },
        Method::WampCra => match &methods.wampcra {
            Some(WampCra::Static { default_role, .. }) => default_role.as_ref(),
            _ => None,
        },
        Method::Scram | Method::WampScram => match &methods.scram {
            Some(Scram::Static { default_role, .. }) => default_role.as_ref(),
            _ => None,
        },
        Method::Cryptosign => match &methods.cryptosign {
            Some(Cryptosign::Static { default_role, .. }) => default_role.as_ref(),
            _ => None,
        },
        _ => None,
    };
    role.map(|role| &**role)
}
