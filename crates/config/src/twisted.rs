//! Endpoints described by a Twisted string (`tcp:8080:interface=127.0.0.1`), converted to endpoints with keys.

use crate::problem::Problem;
use crate::tree::{Entry, Node, Span, Value, quoted};

/// Replaces every endpoint whose string has an equivalent with keys. The checks refuse the others.
pub(crate) fn replace(node: &mut Node, problems: &mut Vec<Problem>) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| replace(item, problems)),
        Value::Object(entries) => {
            for entry in entries {
                if entry.key == "endpoint"
                    && let Some(endpoint) = endpoint(&entry.node, problems)
                {
                    entry.node = endpoint;
                }
                replace(&mut entry.node, problems);
            }
        }
        _ => {}
    }
}

fn endpoint(node: &Node, problems: &mut Vec<Problem>) -> Option<Node> {
    let text = |key| match &node.entry(key)?.node.value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    if text("type") != Some("twisted") {
        return None;
    }
    let key = match node.entry("server_string") {
        Some(_) => "server_string",
        None => "client_string",
    };
    let description = text(key)?;
    let at = node.entry(key)?.node.span;
    let keys = match key {
        "server_string" => server(&Description::parse(description)),
        _ => client(&Description::parse(description)),
    }?;
    let shown: Vec<String> = keys.iter().map(|(key, value)| shown(key, value)).collect();
    let message = format!(
        "{} is taken to be the endpoint {{{}}}",
        quoted(description),
        shown.join(", ")
    );
    problems.push(Problem::warning(at, message));
    Some(object(keys, at, node.span))
}

type Keys = Vec<(&'static str, Value)>;

fn object(keys: Keys, at: Span, span: Span) -> Node {
    let entry = |(key, value): (&str, Value)| Entry {
        key: key.to_owned(),
        key_span: at,
        node: Node::new(at, value),
    };
    Node::new(span, Value::Object(keys.into_iter().map(entry).collect()))
}

fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::Integer(number) => format!("\"{key}\": {number}"),
        Value::Text(text) => format!("\"{key}\": {}", quoted(text)),
        _ => format!("\"{key}\": …"),
    }
}

/// `tcp:PORT:interface=ADDRESS:backlog=NUMBER` or `unix:PATH`.
fn server(said: &Description) -> Option<Keys> {
    match said.kind.as_str() {
        "tcp" if said.has_only(1, &["port", "interface", "backlog"]) => {
            let mut keys = vec![("type", Value::Text("tcp".into()))];
            keys.push(("port", Value::Integer(said.at(0, "port")?.parse().ok()?)));
            let interface = said.named("interface");
            keys.extend(interface.map(|address| ("interface", Value::Text(address.to_owned()))));
            if let Some(backlog) = said.named("backlog") {
                keys.push(("backlog", Value::Integer(backlog.parse().ok()?)));
            }
            Some(keys)
        }
        "unix" if said.has_only(1, &["address", "lockfile"]) => Some(vec![
            ("type", Value::Text("unix".into())),
            ("path", Value::Text(said.at(0, "address")?.to_owned())),
        ]),
        _ => None,
    }
}

/// `tcp:HOST:PORT:timeout=SECONDS` or `unix:PATH:timeout=SECONDS`.
fn client(said: &Description) -> Option<Keys> {
    let mut keys = match said.kind.as_str() {
        "tcp" if said.has_only(2, &["host", "port", "timeout"]) => vec![
            ("type", Value::Text("tcp".into())),
            ("host", Value::Text(said.at(0, "host")?.to_owned())),
            ("port", Value::Integer(said.at(1, "port")?.parse().ok()?)),
        ],
        "unix" if said.has_only(1, &["path", "timeout", "lockfile"]) => vec![
            ("type", Value::Text("unix".into())),
            ("path", Value::Text(said.at(0, "path")?.to_owned())),
        ],
        _ => return None,
    };
    if let Some(timeout) = said.named("timeout") {
        keys.push(("timeout", Value::Integer(timeout.parse().ok()?)));
    }
    Some(keys)
}

/// The parts of a string between colons. A backslash makes a colon part of the text.
struct Description {
    kind: String,
    placed: Vec<String>,
    named: Vec<(String, String)>,
}

impl Description {
    fn parse(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let next = match character {
                '\\' => characters.next(),
                ':' => None,
                _ => Some(character),
            };
            match (next, parts.last_mut()) {
                (Some(next), Some(part)) => part.push(next),
                _ => parts.push(String::new()),
            }
        }
        let mut parts = parts.into_iter();
        let mut said = Self {
            kind: parts.next().unwrap_or_default(),
            placed: Vec::new(),
            named: Vec::new(),
        };
        for part in parts {
            match part.split_once('=') {
                Some((name, value)) => said.named.push((name.to_owned(), value.to_owned())),
                None => said.placed.push(part),
            }
        }
        said
    }

    fn has_only(&self, placed_max: usize, names: &[&str]) -> bool {
        let mut named = self.named.iter();
        self.placed.len() <= placed_max && named.all(|(name, _)| names.contains(&name.as_str()))
    }

    fn named(&self, name: &str) -> Option<&str> {
        let mut named = self.named.iter();
        let found = named.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// An argument by name, or else by position.
    fn at(&self, place: usize, name: &str) -> Option<&str> {
        let placed = self.placed.get(place).map(String::as_str);
        self.named(name).or(placed)
    }
}
