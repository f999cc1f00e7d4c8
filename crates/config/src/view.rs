//! A checked object, read by key, with the tables' defaults for missing keys.
//!
//! The tree has passed the tables' checks, so that each value has the kind of its key. A key that the table does not
//! have is a mistake in this crate; the tests read every key.

use std::collections::BTreeMap;

use crate::catalogue::{Fallback, Key, Kind, Table};
use crate::model::Json;
use crate::tree::{Entry, Node, Span, Value};

/// An object of the tree, or an empty one in place of a missing object.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) span: Span,
    entries: &'a [Entry],
    table: &'static Table,
}

impl<'a> View<'a> {
    pub(crate) fn new(node: &'a Node, table: &'static Table) -> Self {
        let entries = match &node.value {
            Value::Object(entries) => entries.as_slice(),
            _ => &[],
        };
        Self {
            span: node.span,
            entries,
            table,
        }
    }

    /// The view of a missing object.
    pub(crate) fn empty(table: &'static Table) -> Self {
        Self {
            span: Span::default(),
            entries: &[],
            table,
        }
    }

    pub(crate) fn given(&self, name: &str) -> Option<&'a Node> {
        debug_assert!(
            self.table.key(name).is_some(),
            "{} has no {name}",
            self.table.name
        );
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(&entry.node)
    }

    /// Every given key that has an effect, with its position.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'a str, Span)> + use<'a> {
        let (entries, table) = (self.entries, self.table);
        let is_inert = |name: &str| table.key(name).is_some_and(|key| key.inert.is_some());
        let given = entries
            .iter()
            .map(|entry| (entry.key.as_str(), entry.node.span));
        given.filter(move |(name, _)| !is_inert(name))
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    /// Whether the table has the key at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.key(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The object as given, without the keys that have no effect or only one valid value.
    pub(crate) fn to_json(self) -> Json {
        effective(self.entries, self.table)
    }

    /// The position of the value, or else of the object.
    pub(crate) fn span_of(&self, name: &str) -> Span {
        self.given(name).map_or(self.span, |node| node.span)
    }

    pub(crate) fn boolean(&self, name: &str) -> bool {
        match (
            self.given(name).map(|node| &node.value),
            self.fallback(name),
        ) {
            (Some(Value::Boolean(value)), _) => *value,
            (_, Some(Fallback::Boolean(value))) => value,
            _ => false,
        }
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        match (
            self.given(name).map(|node| &node.value),
            self.fallback(name),
        ) {
            (Some(Value::Integer(value)), _) => Some(*value),
            (_, Some(Fallback::Integer(value))) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        match (
            self.given(name).map(|node| &node.value),
            self.fallback(name),
        ) {
            (Some(Value::Text(text)), _) => Some(text),
            (_, Some(Fallback::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; a single value is a list of one.
    pub(crate) fn items(&self, name: &str) -> &'a [Node] {
        match self.given(name) {
            None => &[],
            Some(Node {
                value: Value::List(items),
                ..
            }) => items,
            Some(node) => std::slice::from_ref(node),
        }
    }

    /// The integers of a list.
    pub(crate) fn integers(&self, name: &str) -> impl Iterator<Item = i64> + use<'a> {
        self.items(name)
            .iter()
            .filter_map(|item| match &item.value {
                Value::Integer(integer) => Some(*integer),
                _ => None,
            })
    }

    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.items(name)
            .iter()
            .filter_map(|item| match &item.value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })
    }

    /// Any value as JSON; null if missing.
    pub(crate) fn json(&self, name: &str) -> Json {
        self.given(name).map_or(Json::Null, Node::to_json)
    }

    /// The entries of a map of texts.
    pub(crate) fn variables(&self, name: &str) -> Vec<(String, String)> {
        let Some(Value::Object(entries)) = self.given(name).map(|node| &node.value) else {
            return Vec::new();
        };
        let texts = entries.iter().filter_map(|entry| match &entry.node.value {
            Value::Text(text) => Some((entry.key.clone(), text.clone())),
            _ => None,
        });
        texts.collect()
    }

    /// The entries of a map of lists of texts.
    pub(crate) fn lists(&self, name: &str) -> BTreeMap<String, Vec<String>> {
        let Some(Value::Object(entries)) = self.given(name).map(|node| &node.value) else {
            return BTreeMap::new();
        };
        let lists = entries.iter().filter_map(|entry| match &entry.node.value {
            Value::List(items) => {
                let texts = items.iter().filter_map(|item| match &item.value {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                });
                Some((entry.key.clone(), texts.collect()))
            }
            _ => None,
        });
        lists.collect()
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        let node = self.given(name)?;
        match self.table.key(name)?.kind {
            Kind::Object(table) => Some(View::new(node, table)),
            ref kind => view_of(node, kind),
        }
    }

    /// The object, or an empty one with the defaults.
    pub(crate) fn section(&self, name: &str) -> Self {
        let empty = match self.table.key(name).map(|key| key.kind) {
            Some(Kind::Object(table)) => table,
            _ => self.table,
        };
        self.object(name).unwrap_or(View {
            span: self.span,
            entries: &[],
            table: empty,
        })
    }

    /// The objects of a list.
    pub(crate) fn objects(&self, name: &str) -> impl Iterator<Item = Self> + use<'a> {
        let of = match self.table.key(name).map(|key| key.kind) {
            Some(Kind::List { of, .. }) => Some(of),
            _ => None,
        };
        let items = self.items(name).iter();
        items.filter_map(move |item| view_of(item, of?))
    }

    /// The keys and objects of a map.
    pub(crate) fn map(&self, name: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let of = match self.table.key(name).map(|key| key.kind) {
            Some(Kind::Map { of, .. }) => Some(of),
            _ => None,
        };
        let entries: &[Entry] = match self.given(name) {
            Some(Node {
                value: Value::Object(entries),
                ..
            }) => entries,
            _ => &[],
        };
        let entries = entries.iter();
        entries.filter_map(move |entry| Some((entry.key.as_str(), view_of(&entry.node, of?)?)))
    }

    fn fallback(&self, name: &str) -> Option<Fallback> {
        self.table.key(name).map(|key: &Key| key.fallback)
    }
}

pub(crate) fn view_of<'a>(node: &'a Node, kind: &Kind) -> Option<View<'a>> {
    match kind {
        Kind::Object(table) => Some(View::new(node, table)),
        Kind::Tagged(tagged) => {
            let tag = node.entry("type")?;
            let Value::Text(name) = &tag.node.value else {
                return None;
            };
            let variant = tagged.variants.iter().find(|(known, _)| known == name);
            variant.map(|(_, table)| View::new(node, table))
        }
        Kind::Either(_, other) => match node.value {
            Value::Object(_) => view_of(node, other),
            _ => None,
        },
        _ => None,
    }
}

fn effective(entries: &[Entry], table: &'static Table) -> Json {
    let entries = entries.iter().filter_map(|entry| {
        let key = table.key(&entry.key)?;
        if key.inert.is_some() || matches!(key.kind, Kind::Always(..) | Kind::Only(..)) {
            return None;
        }
        let value = match (&entry.node.value, view_of(&entry.node, &key.kind)) {
            (Value::Object(_), Some(view)) => view.to_json(),
            _ => entry.node.to_json(),
        };
        Some((entry.key.clone(), value))
    });
    Json::Object(entries.collect())
}
