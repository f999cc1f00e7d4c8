//! A file of principals, wrapped as the object of its method, so that it passes the same checks.

use crosstie_auth::wamp::{Method, Methods};

use crate::tree::{Entry, Node, Span, Value};

/// The methods with principals, with the keys of principals and of a file of principals.
pub(crate) const KEYS: [(Method, &str, &str); 4] = [
    (Method::Ticket, "principals", "principals_file"),
    (Method::WampCra, "users", "users_file"),
    (Method::Scram, "principals", "principals_file"),
    (Method::Cryptosign, "principals", "principals_file"),
];

/// A method's object with the content of a file as its principals.
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
    if let Some(role) = methods.default_role(method) {
        entries.push(entry("default-role", text(role)));
    }
    Node::new(span, Value::Object(entries))
}
