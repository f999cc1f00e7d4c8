//! The effect of every key's change on a running node: of its own value, and of keys below it.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{CONFIG, Effect, Key, Kind, Table};

/// The effects of one key: of its own value, and of keys below it that state none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effects {
    pub(crate) own: Option<Effect>,
    pub(crate) within: Option<Effect>,
}

impl Effects {
    /// Those of a key of an object whose keys have the effect `above` unless they state another.
    pub(crate) fn of(key: &Key, above: Option<Effect>) -> Self {
        let own = key.effect.or(above);
        Self {
            own,
            within: key.within.or(own),
        }
    }
}

/// The effects of every key, by its table's path and its name: one for each effect that it has at some place. `None`
/// stands for a place where neither the key nor one above it decides.
pub fn effects() -> BTreeMap<(&'static str, &'static str), BTreeSet<Option<Effect>>> {
    let mut matrix = Matrix::default();
    matrix.add(&CONFIG, None);
    matrix.effects
}

#[derive(Default)]
struct Matrix {
    effects: BTreeMap<(&'static str, &'static str), BTreeSet<Option<Effect>>>,
    /// Tables with the effects from above that they were seen with.
    seen: BTreeSet<(&'static str, Option<Effect>)>,
}

impl Matrix {
    fn add(&mut self, table: &'static Table, above: Option<Effect>) {
        if !self.seen.insert((table.path, above)) {
            return;
        }
        for key in table.keys.iter().filter(|key| key.inert.is_none()) {
            let effects = Effects::of(key, above);
            let known = self.effects.entry((table.path, key.name)).or_default();
            known.insert(effects.own);
            tables(&key.kind, &mut |table| self.add(table, effects.within));
        }
    }
}

fn tables(kind: &Kind, each: &mut dyn FnMut(&'static Table)) {
    match kind {
        Kind::Object(table) => each(table),
        Kind::Tagged(tagged) => tagged.variants.iter().for_each(|(_, table)| each(table)),
        Kind::List { of, .. } | Kind::OneOrMore(of) | Kind::OrNull(of) | Kind::Map { of, .. } => {
            tables(of, each);
        }
        Kind::Either(one, other) => {
            tables(one, each);
            tables(other, each);
        }
        _ => {}
    }
}
