//! The identity of items of a list: by an id or a name, or by position.

use std::collections::HashSet;

use crate::catalogue::{Fallback, Key, Kind, Table};
use crate::tree::{Node, Value};
use crate::view::view_of;

/// The keys that tell items of a list apart, the first that a table has.
const NAMES: &[&str] = &["id", "name", "uri", "user"];

/// An item of a list, by its identity.
pub(super) struct Item<'a> {
    pub(super) name: String,
    pub(super) node: &'a Node,
    /// The key of its id or name.
    pub(super) named_by: Option<&'static str>,
}

/// The items of both lists with names that are unique in each; with their positions for names otherwise.
pub(super) fn items<'a>(
    of: &Kind,
    old: &'a [Node],
    new: &'a [Node],
) -> (Vec<Item<'a>>, Vec<Item<'a>>) {
    match (named(of, old), named(of, new)) {
        (Some(old), Some(new)) => (old, new),
        _ => (by_position(old), by_position(new)),
    }
}

/// Whether the kind is of objects, which may be matched.
pub(super) fn is_of_objects(kind: &Kind) -> bool {
    match kind {
        Kind::Object(_) | Kind::Tagged(_) => true,
        Kind::Either(one, other) => is_of_objects(one) || is_of_objects(other),
        _ => false,
    }
}

fn by_position(nodes: &[Node]) -> Vec<Item<'_>> {
    let items = nodes.iter().enumerate();
    let item = |(index, node): (usize, _)| Item {
        name: index.to_string(),
        node,
        named_by: None,
    };
    items.map(item).collect()
}

/// `None` if two items have the same name, or one has none.
fn named<'a>(of: &Kind, nodes: &'a [Node]) -> Option<Vec<Item<'a>>> {
    let given: HashSet<&str> = nodes.iter().filter_map(|node| text(node, "id")).collect();
    let mut seen: HashSet<String> = HashSet::new();
    let mut items = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let key = key_of(view_of(node, of)?.table())?;
        let is_taken = |made: &str| given.contains(made) || seen.contains(made);
        let name = name(key, node, index, is_taken)?;
        if !seen.insert(name.clone()) {
            return None;
        }
        let named_by = Some(key.name);
        items.push(Item {
            name,
            node,
            named_by,
        });
    }
    Some(items)
}

fn name(key: &Key, node: &Node, index: usize, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    if let Some(name) = text(node, key.name) {
        // A permission of another kind may have the same URI.
        return Some(match text(node, "match") {
            Some(policy) if key.name == "uri" => format!("{name} ({policy})"),
            _ => name.to_owned(),
        });
    }
    let prefix = made_from(key)?;
    let mut numbers = index + 1..;
    numbers.find_map(|number| {
        let made = format!("{prefix}{number}");
        (!is_taken(&made)).then_some(made)
    })
}

/// The key that names the items.
fn key_of(table: &'static Table) -> Option<&'static Key> {
    let mut keys = NAMES.iter().filter_map(|name| table.key(name));
    keys.find(|key| key.inert.is_none())
}

/// The beginning of ids that are made from positions: `worker` of "`worker1`, `worker2`, … by position".
fn made_from(key: &Key) -> Option<&'static str> {
    let Fallback::Words(words) = key.fallback else {
        return None;
    };
    let (first, _) = words.strip_prefix('`')?.split_once('`')?;
    first
        .strip_suffix('1')
        .filter(|_| words.ends_with("by position"))
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    match &node.entry(key)?.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
