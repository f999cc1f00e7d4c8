//! All bindings of a vhost, each once.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::{Table, TableBuf};
use crosstie_collections::{GrowingMap, Key, Slab};

use super::ExchangeKey;
use super::destinations::Target;

#[derive(Debug)]
pub(super) enum OfBinding {}
pub(super) type BindingKey = Key<OfBinding>;

/// The identity of a binding.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Binding {
    pub(super) source: ExchangeKey,
    pub(super) target: Target,
    pub(super) routing_key: Arc<str>,
    /// Sorted by name: another order in the request does not make another binding.
    pub(super) arguments: TableBuf,
}

#[derive(Debug)]
pub(super) struct Bindings {
    by_key: Slab<OfBinding, Arc<Binding>>,
    keys: GrowingMap<Arc<Binding>, BindingKey, RandomState>,
}

impl Bindings {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            by_key: Slab::new(),
            keys: GrowingMap::with_hasher(hasher.clone()),
        }
    }

    /// Adds a binding; `None`: it exists already.
    pub(super) fn insert(&mut self, binding: &Arc<Binding>) -> Option<BindingKey> {
        if self.keys.contains_key(binding) {
            return None;
        }
        let key = self.by_key.insert(binding.clone());
        self.keys.insert(binding.clone(), key);
        Some(key)
    }

    pub(super) fn remove(&mut self, key: BindingKey) -> Option<Arc<Binding>> {
        let binding = self.by_key.remove(key)?;
        self.keys.remove(&binding);
        Some(binding)
    }

    pub(super) fn find(&self, binding: &Binding) -> Option<BindingKey> {
        self.keys.get(binding).copied()
    }

    pub(super) fn get(&self, key: BindingKey) -> Option<&Binding> {
        self.by_key.find(key).map(|binding| &**binding)
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Size of the table, free places included.
    pub(super) fn places(&self) -> usize {
        self.by_key.places()
    }

    /// The bindings at that many places, from `place` on.
    pub(super) fn part(&self, place: usize, places_max: usize) -> impl Iterator<Item = &Binding> {
        let part = self.by_key.part(place, places_max);
        part.map(|(_, binding)| &**binding)
    }
}

impl Binding {
    /// Bytes of its definition, without the names of its ends.
    pub(super) fn bytes(&self) -> usize {
        self.routing_key.len() + self.arguments.as_table().bytes().len()
    }

    pub(super) fn new(
        source: ExchangeKey,
        target: Target,
        routing_key: &str,
        arguments: Table<'_>,
    ) -> Self {
        let mut fields: Vec<_> = arguments.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        let arguments = fields.into_iter().fold(TableBuf::new(), |sorted, field| {
            let (name, value) = field;
            sorted.with(name, value)
        });
        Self {
            source,
            target,
            routing_key: routing_key.into(),
            arguments,
        }
    }
}
