//! An index of a headers exchange's bindings by the fields of messages.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::{TableBuf, Value};
use crosstie_collections::{GrowingMap, Key, Slab};
use rustc_hash::FxBuildHasher;

use super::destinations::{Destinations, Target};
use super::headers::{Hashed, Headers, HeadersPattern, is_asked};
use super::heaviest::Heaviest;

/// All patterns of one exchange, so that a message is compared only with those that share a field with it. A field that
/// suffices by itself (each of a pattern that any may match, the only one of a pattern that all must match) leads to
/// targets at once. A pattern that requires several fields is filed under one of them, the one with the fewest others,
/// and then compared.
///
/// A message has each name once, with one value: of all values of a name in patterns, it meets one. The cost of the
/// heaviest value of each name, summed over all names, is therefore a bound that no message exceeds.
#[derive(Debug)]
pub(super) struct HeadersIndex {
    hasher: RandomState,
    names: GrowingMap<Box<str>, Name, RandomState>,
    pattern_keys: GrowingMap<Arc<HeadersPattern>, PatternKey, RandomState>,
    patterns: Slab<OfPattern, Pattern>,
    /// The targets of patterns without fields.
    all: Destinations,
    steps: u64,
    /// Number of fields in buckets.
    nodes: usize,
}

#[derive(Debug)]
enum OfPattern {}
type PatternKey = Key<OfPattern>;

/// A pattern that requires several fields.
#[derive(Debug)]
struct Pattern {
    pattern: Arc<HeadersPattern>,
    /// Number of its required fields.
    fields: u64,
    /// The index of the field that it is filed under.
    place: usize,
    destinations: Destinations,
}

#[derive(Debug, Default)]
struct Name {
    /// By hash of the value.
    values: GrowingMap<u64, Bucket, FxBuildHasher>,
    /// For any value.
    any_value: Bucket,
    /// The weights of `values`.
    heaviest: Heaviest,
}

#[derive(Debug, Default)]
struct Bucket {
    /// Fields that suffice by themselves. There are several only if different values compare as equal, as numbers of
    /// several types may, or have one hash.
    fields: Vec<(TableBuf, Destinations)>,
    patterns: Vec<PatternKey>,
    /// The steps of comparing a message with all of them.
    weight: u64,
}

/// The steps of looking up a field and comparing the result: about three look-ups with slow memory.
const FIELD_STEPS: u64 = 4;

impl HeadersIndex {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            hasher: hasher.clone(),
            names: GrowingMap::with_hasher(hasher.clone()),
            pattern_keys: GrowingMap::with_hasher(hasher.clone()),
            patterns: Slab::new(),
            all: Destinations::None,
            steps: 0,
            nodes: 0,
        }
    }

    pub(super) fn insert(&mut self, pattern: HeadersPattern, target: Target) {
        if pattern.is_any || pattern.asked.as_table().iter().nth(1).is_none() {
            if !pattern.is_any && pattern.asked.as_table().is_empty() {
                self.all.insert(target);
            }
            for (name, value) in pattern.asked.as_table().iter() {
                self.change(name, value, |bucket| bucket.insert(name, value, target));
            }
        } else if let Some(key) = self.pattern_keys.get(&pattern)
            && let Some(known) = self.patterns.find_mut(*key)
        {
            known.destinations.insert(target);
        } else {
            self.insert_pattern(Arc::new(pattern), target);
        }
    }

    pub(super) fn remove(&mut self, pattern: &HeadersPattern, target: Target) {
        if pattern.is_any || pattern.asked.as_table().iter().nth(1).is_none() {
            if !pattern.is_any && pattern.asked.as_table().is_empty() {
                self.all.remove(target);
            }
            for (name, value) in pattern.asked.as_table().iter() {
                self.change(name, value, |bucket| bucket.remove(name, value, target));
            }
            return;
        }
        let Some(key) = self.pattern_keys.get(pattern).copied() else {
            return;
        };
        let Some(known) = self.patterns.find_mut(key) else {
            return;
        };
        known.destinations.remove(target);
        if known.destinations.is_empty() {
            self.remove_pattern(key);
        }
    }

    /// Finds every target of a pattern that the headers match, some more than once. Returns the number of fields looked
    /// up.
    pub(super) fn each(&self, headers: &Headers<'_>, found: &mut impl FnMut(Target)) -> u64 {
        self.all.each(found);
        if self.names.is_empty() {
            return 0;
        }
        let mut steps = 0;
        headers.each(|name, value| {
            steps += 1;
            let Some(known) = self.names.get(name) else {
                return;
            };
            let same = known.values.get(&self.hash(value));
            for bucket in same.into_iter().chain([&known.any_value]) {
                steps += bucket.weight;
                for (field, destinations) in &bucket.fields {
                    let mut field = field.as_table().iter();
                    if field.any(|(_, asked)| is_asked(asked, value)) {
                        destinations.each(found);
                    }
                }
                for key in &bucket.patterns {
                    if let Some(known) = self.patterns.find(*key)
                        && known.pattern.matches(headers)
                    {
                        known.destinations.each(found);
                    }
                }
            }
        });
        steps
    }

    /// The maximum steps of a message, beside one for each of its headers.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes
    }

    fn insert_pattern(&mut self, pattern: Arc<HeadersPattern>, target: Target) {
        let asked = pattern.asked.as_table();
        let mut fields = 0;
        let mut lightest: Option<(u64, usize)> = None;
        for (place, (name, value)) in asked.iter().enumerate() {
            fields += 1;
            // Many messages have the same name: it is used only for patterns that require nothing else.
            let weight = match value {
                Value::Void => u64::MAX,
                value => self.weight(name, value),
            };
            if lightest.is_none_or(|(least, _)| weight < least) {
                lightest = Some((weight, place));
            }
        }
        let place = lightest.map_or(0, |(_, place)| place);
        let mut destinations = Destinations::None;
        destinations.insert(target);
        let key = self.patterns.insert(Pattern {
            pattern: pattern.clone(),
            fields,
            place,
            destinations,
        });
        if let Some((name, value)) = asked.iter().nth(place) {
            self.change(name, value, |bucket| {
                bucket.patterns.push(key);
                bucket.weight += fields * FIELD_STEPS;
            });
        }
        self.pattern_keys.insert(pattern, key);
    }

    fn remove_pattern(&mut self, key: PatternKey) {
        let Some(gone) = self.patterns.remove(key) else {
            return;
        };
        self.pattern_keys.remove(&gone.pattern);
        if let Some((name, value)) = gone.pattern.asked.as_table().iter().nth(gone.place) {
            self.change(name, value, |bucket| {
                bucket.patterns.retain(|known| *known != key);
                bucket.weight -= gone.fields * FIELD_STEPS;
            });
        }
    }

    /// The weight of everything filed under a field.
    fn weight(&self, name: &str, value: Value<'_>) -> u64 {
        let known = self.names.get(name);
        let bucket = known.and_then(|known| known.values.get(&self.hash(value)));
        bucket.map_or(0, |bucket| bucket.weight)
    }

    /// Changes a bucket, and updates the weights.
    fn change(&mut self, name: &str, value: Value<'_>, change: impl FnOnce(&mut Bucket)) {
        let hash = self.hash(value);
        if !self.names.contains_key(name) {
            self.names.insert(name.into(), Name::default());
        }
        let Some(known) = self.names.get_mut(name) else {
            return;
        };
        self.steps -= known.weight();
        let bucket = match value {
            Value::Void => &mut known.any_value,
            _ => known.values.get_or_insert_with(hash, Bucket::default),
        };
        let (weight_before, nodes_before) = (bucket.weight, bucket.node_count());
        change(bucket);
        let weight = bucket.weight;
        self.nodes = self.nodes - nodes_before + bucket.node_count();
        let is_gone = bucket.node_count() == 0;
        if value != Value::Void {
            known.heaviest.remove(weight_before);
            match is_gone {
                true => drop(known.values.remove(&hash)),
                false => known.heaviest.add(weight),
            }
        }
        self.steps += known.weight();
        if is_gone && known.values.is_empty() && known.any_value.node_count() == 0 {
            self.names.remove(name);
        }
    }

    fn hash(&self, value: Value<'_>) -> u64 {
        self.hasher.hash_one(Hashed(value))
    }
}

impl Name {
    fn weight(&self) -> u64 {
        self.heaviest.max() + self.any_value.weight
    }
}

impl Bucket {
    fn insert(&mut self, name: &str, value: Value<'_>, target: Target) {
        let field = TableBuf::new().with(name, value);
        if let Some((_, known)) = self.fields.iter_mut().find(|(known, _)| *known == field) {
            known.insert(target);
            return;
        }
        let mut destinations = Destinations::None;
        destinations.insert(target);
        self.fields.push((field, destinations));
        self.weight += FIELD_STEPS;
    }

    fn remove(&mut self, name: &str, value: Value<'_>, target: Target) {
        let field = TableBuf::new().with(name, value);
        let known = self.fields.iter().position(|(known, _)| *known == field);
        let Some(place) = known else {
            return;
        };
        let (_, destinations) = &mut self.fields[place];
        destinations.remove(target);
        if destinations.is_empty() {
            self.fields.swap_remove(place);
            self.weight -= FIELD_STEPS;
        }
    }

    fn node_count(&self) -> usize {
        self.fields.len() + self.patterns.len()
    }
}
