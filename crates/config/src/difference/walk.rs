//! The walk over two trees: the changes, and the tree without those that need a restart.

use std::collections::HashMap;

use super::change::{Change, ChangeKind, shown};
use super::identity::{self, Item};
use crate::catalogue::{Effect, Fallback, Key, Kind, Table};
use crate::effects::Effects;
use crate::secrets::{is_secret, is_secret_key};
use crate::tree::{Entry, Node, Span, Value};
use crate::view::view_of;

/// Adds the changes between two objects. Returns the newer one, with the older values of what needs a restart.
pub(super) fn merged(
    old: &Node,
    new: &Node,
    table: &'static Table,
    changes: &mut Vec<Change>,
) -> Node {
    Walk { changes }.object(old, new, table, &Place::ROOT)
}

struct Walk<'a> {
    changes: &'a mut Vec<Change>,
}

/// The place of a value.
#[derive(Clone)]
struct Place {
    path: String,
    /// The effect of another value here.
    effect: Effect,
    /// The effect of keys within it that state none.
    within: Option<Effect>,
    is_secret: bool,
    /// The key that names the object, an item of a list.
    named_by: Option<&'static str>,
}

impl Place {
    const ROOT: Self = Self {
        path: String::new(),
        effect: Effect::Restart,
        within: None,
        is_secret: false,
        named_by: None,
    };

    fn key(&self, key: &Key) -> Self {
        let effects = Effects::of(key, self.within);
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{}", self.path, key.name),
            // A test holds that every key is decided.
            effect: effects.own.unwrap_or(Effect::Restart),
            within: effects.within,
            is_secret: is_secret_key(key.name),
            named_by: None,
        }
    }

    /// An item of a list or map: what is within it has the effect of the keys there.
    fn item(&self, name: &str) -> Self {
        let is_plain = |c: char| !c.is_control() && !matches!(c, '[' | ']');
        let name = match name.chars().all(is_plain) {
            true => name.to_owned(),
            false => crate::tree::quoted(name),
        };
        Self {
            path: format!("{}[{name}]", self.path),
            ..self.clone()
        }
    }
}

impl Walk<'_> {
    fn object(&mut self, old: &Node, new: &Node, table: &'static Table, at: &Place) -> Node {
        let mut entries = Vec::new();
        for key in table.keys {
            let (was, is) = (old.entry(key.name), new.entry(key.name));
            let (was, is) = (was.map(|entry| &entry.node), is.map(|entry| &entry.node));
            // Items are matched by their names, given or made from the position.
            let names_it = at.named_by == Some(key.name);
            let node = match names_it || key.inert.is_some() {
                true => is.cloned(),
                false => self.value(was, is, key, &at.key(key)),
            };
            entries.extend(node.map(|node| Entry {
                key: key.name.to_owned(),
                key_span: Span::default(),
                node,
            }));
        }
        of(Value::Object(entries), new)
    }

    /// The value of a key.
    fn value(
        &mut self,
        old: Option<&Node>,
        new: Option<&Node>,
        key: &Key,
        at: &Place,
    ) -> Option<Node> {
        let default = default(key.fallback);
        let is_default = |node: Option<&Node>| match (node, &default) {
            (None, _) => true,
            (Some(node), Some(default)) => node.value == *default,
            (Some(_), None) => false,
        };
        match (old, new) {
            (None, None) => None,
            _ if is_default(old) && is_default(new) => new.cloned(),
            (Some(old), Some(new)) => Some(self.both(old, new, &key.kind, at)),
            // A key of a section that is not given has its default, too.
            (was, is) if matches!(key.kind, Kind::Object(_)) => {
                let missing = of(Value::Object(Vec::new()), was.or(is)?);
                let count = self.changes.len();
                let node = self.both(
                    was.unwrap_or(&missing),
                    is.unwrap_or(&missing),
                    &key.kind,
                    at,
                );
                let is_empty = matches!(&node.value, Value::Object(entries) if entries.is_empty());
                match self.changes.len() == count {
                    true if means_defaults(key.fallback) => is.cloned(),
                    true => self.one(was, is, at),
                    false => (!is_empty).then_some(node),
                }
            }
            (was, is) => self.one(was, is, at),
        }
    }

    fn both(&mut self, old: &Node, new: &Node, kind: &Kind, at: &Place) -> Node {
        match (kind, &old.value, &new.value) {
            (Kind::Object(table), Value::Object(_), Value::Object(_)) => {
                self.object(old, new, table, at)
            }
            (Kind::Tagged(_), ..) => match (view_of(old, kind), view_of(new, kind)) {
                (Some(was), Some(is)) if was.table().path == is.table().path => {
                    self.object(old, new, is.table(), at)
                }
                _ => self.whole(old, new, at),
            },
            (Kind::Either(_, other), Value::Object(_), Value::Object(_))
            | (Kind::Either(_, other), Value::List(_), Value::List(_))
            | (Kind::OneOrMore(other) | Kind::OrNull(other), Value::Object(_), Value::Object(_)) => {
                self.both(old, new, other, at)
            }
            (
                Kind::List { of: kind, .. } | Kind::OneOrMore(kind),
                Value::List(was),
                Value::List(is),
            ) if identity::is_of_objects(kind) => {
                let (was, is) = identity::items(kind, was, is);
                let named_by = was.iter().chain(&is).find_map(|item| item.named_by);
                let items = self.items(
                    &was,
                    &is,
                    kind,
                    &Place {
                        named_by,
                        ..at.clone()
                    },
                );
                of(
                    Value::List(items.into_iter().map(|(_, node)| node).collect()),
                    new,
                )
            }
            (Kind::Map { of: kind, .. }, Value::Object(was), Value::Object(is)) => {
                let (was, is) = (entries(was), entries(is));
                let items = self.items(&was, &is, kind, at).into_iter();
                let entry = |(key, node)| Entry {
                    key,
                    key_span: Span::default(),
                    node,
                };
                of(Value::Object(items.map(entry).collect()), new)
            }
            _ => self.whole(old, new, at),
        }
    }

    /// Items of a list or map, matched by their names.
    fn items(
        &mut self,
        old: &[Item<'_>],
        new: &[Item<'_>],
        kind: &Kind,
        at: &Place,
    ) -> Vec<(String, Node)> {
        let known: HashMap<&str, &Node> = old.iter().map(|i| (&*i.name, i.node)).collect();
        let mut merged = Vec::with_capacity(new.len());
        for Item { name, node, .. } in new {
            let was = known.get(name.as_str());
            // Most are, of ten thousand.
            if was.is_some_and(|was| was.is_same(node)) {
                merged.push((name.clone(), (*node).clone()));
                continue;
            }
            let mut place = at.item(name);
            place.is_secret = is_secret(name) || at.is_secret;
            let node = match was {
                Some(was) => Some(self.both(was, node, kind, &place)),
                None => self.one(None, Some(node), &place),
            };
            merged.extend(node.map(|node| (name.clone(), node)));
        }
        let is_there: HashMap<&str, &Node> = new.iter().map(|i| (&*i.name, i.node)).collect();
        for Item { name, node, .. } in old {
            if !is_there.contains_key(name.as_str()) {
                let mut place = at.item(name);
                place.is_secret = is_secret(name) || at.is_secret;
                let stays = self.one(Some(node), None, &place);
                merged.extend(stays.map(|node| (name.clone(), node)));
            }
        }
        merged
    }

    /// A value that is compared as a whole.
    fn whole(&mut self, old: &Node, new: &Node, at: &Place) -> Node {
        let is_same = old.is_same(new) || old.to_json() == new.to_json();
        let changed = (!is_same).then(|| self.one(Some(old), Some(new), at));
        changed.flatten().unwrap_or_else(|| new.clone())
    }

    /// Adds a change. Returns the value that applies without a restart.
    fn one(&mut self, old: Option<&Node>, new: Option<&Node>, at: &Place) -> Option<Node> {
        let kind = match (old, new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        let shown = |node: Option<&Node>| node.and_then(|node| shown(node, at.is_secret));
        self.changes.push(Change {
            path: at.path.clone(),
            kind,
            effect: at.effect,
            from: shown(old),
            to: shown(new),
        });
        match at.effect {
            Effect::Restart => old.cloned(),
            _ => new.cloned(),
        }
    }
}

/// A value at the place of another.
fn of(value: Value, node: &Node) -> Node {
    Node::new(node.span, value)
}

fn entries(entries: &[Entry]) -> Vec<Item<'_>> {
    let item = |entry| {
        let Entry { key, node, .. }: &Entry = entry;
        Item {
            name: key.clone(),
            node,
            named_by: None,
        }
    };
    entries.iter().map(item).collect()
}

fn default(fallback: Fallback) -> Option<Value> {
    match fallback {
        Fallback::Boolean(value) => Some(Value::Boolean(value)),
        Fallback::Integer(value) => Some(Value::Integer(value)),
        Fallback::Text(text) => Some(Value::Text(text.to_owned())),
        Fallback::Required | Fallback::Words(_) => None,
    }
}

/// Whether an empty object is the same as none.
fn means_defaults(fallback: Fallback) -> bool {
    let Fallback::Words(words) = fallback else {
        return false;
    };
    words.starts_with("the defaults") || words.starts_with("the node's")
}
