//! Definitions of procedures, topics and errors by sessions, for others to query (WAMP advanced profile, "Interface
//! Reflection").
//!
//! Several sessions may define one URI, as the callees of a shared registration do. The latest definition is returned;
//! when its session leaves, the one before. So no session removes another's definition for good, and the order of
//! joining does not matter.

use std::collections::BTreeMap;

use crate::identity::SessionIndex;

crosstie_collections::named! {
    /// The kinds of URIs that can be defined.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Kind {
        Procedure = "procedure",
        Topic = "topic",
        Error = "error",
    }
}

impl Kind {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Approximate memory of a definition beside its description and its URI, which is stored twice.
const DEFINITION_BYTES: usize = 256;

/// All definitions of a realm.
#[derive(Debug, Default)]
pub(crate) struct Reflection {
    /// By number, with the defining session; no entry is empty.
    defined: BTreeMap<(Kind, Box<str>), BTreeMap<u64, Described>>,
    owners: BTreeMap<SessionIndex, Own>,
    /// Number of definitions over all sessions.
    count: usize,
    /// Later ones have higher numbers.
    number_last: u64,
    /// Whether the realm is on several nodes.
    pub(crate) has_nodes: bool,
}

#[derive(Debug)]
struct Described {
    owner: SessionIndex,
    /// In CBOR.
    description: Box<[u8]>,
}

/// A session's definitions.
#[derive(Debug, Default)]
struct Own {
    numbers: BTreeMap<(Kind, Box<str>), u64>,
    bytes: usize,
}

/// A removed definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undefined {
    pub(crate) kind: Kind,
    pub(crate) uri: Box<str>,
    /// No session defines it any more.
    pub(crate) is_gone: bool,
    /// The memory that it freed.
    pub(crate) bytes: usize,
}

impl Reflection {
    /// Memory that a definition would take.
    pub(crate) fn weight(uri: &str, description: &[u8]) -> usize {
        DEFINITION_BYTES + 2 * uri.len() + description.len()
    }

    /// Adds a session's definition, and replaces its own earlier one; returns whether it is the only one.
    pub(crate) fn define(
        &mut self,
        owner: SessionIndex,
        kind: Kind,
        uri: &str,
        description: Box<[u8]>,
    ) -> bool {
        self.undefine(owner, kind, uri);
        let key = (kind, Box::from(uri));
        self.number_last += 1;
        let own = self.owners.entry(owner).or_default();
        own.bytes += Self::weight(uri, &description);
        own.numbers.insert(key.clone(), self.number_last);
        self.count += 1;
        let all = self.defined.entry(key).or_default();
        let is_new = all.is_empty();
        all.insert(self.number_last, Described { owner, description });
        is_new
    }

    /// Removes a session's definition, if it has one.
    pub(crate) fn undefine(
        &mut self,
        owner: SessionIndex,
        kind: Kind,
        uri: &str,
    ) -> Option<Undefined> {
        let key = (kind, Box::from(uri));
        let own = self.owners.get_mut(&owner)?;
        let number = own.numbers.remove(&key)?;
        let all = self.defined.get_mut(&key)?;
        let described = all.remove(&number)?;
        let is_gone = all.is_empty();
        if is_gone {
            self.defined.remove(&key);
        }
        let bytes = Self::weight(uri, &described.description);
        own.bytes -= bytes;
        self.count -= 1;
        if own.numbers.is_empty() {
            self.owners.remove(&owner);
        }
        Some(Undefined {
            kind,
            uri: key.1,
            is_gone,
            bytes,
        })
    }

    /// Removes any one of a session's definitions.
    pub(crate) fn undefine_next(&mut self, owner: SessionIndex) -> Option<Undefined> {
        let own = self.owners.get(&owner)?;
        let (kind, uri) = own.numbers.first_key_value()?.0.clone();
        self.undefine(owner, kind, &uri)
    }

    /// The latest definition, in CBOR.
    pub(crate) fn describe(&self, kind: Kind, uri: &str) -> Option<&[u8]> {
        let all = self.defined.get(&(kind, Box::from(uri)))?;
        let (_, last) = all.last_key_value()?;
        Some(&last.description)
    }

    /// The URIs of a kind, in their order.
    pub(crate) fn uris(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let from = self.defined.range((kind, Box::from(""))..);
        let of_kind = from.take_while(move |((found, _), _)| *found == kind);
        of_kind.map(|((_, uri), _)| &**uri)
    }

    /// Number and bytes of a session's definitions, without the one that would be replaced.
    pub(crate) fn held(&self, owner: SessionIndex, kind: Kind, uri: &str) -> (usize, usize) {
        let Some(own) = self.owners.get(&owner) else {
            return (0, 0);
        };
        let key = (kind, Box::from(uri));
        let Some(number) = own.numbers.get(&key) else {
            return (own.numbers.len(), own.bytes);
        };
        let before = self.defined.get(&key).and_then(|all| all.get(number));
        let replaced = before.map_or(0, |before| Self::weight(uri, &before.description));
        (own.numbers.len() - 1, own.bytes - replaced)
    }

    /// Bytes of a session's definitions.
    pub(crate) fn bytes_of(&self, owner: SessionIndex) -> usize {
        self.owners.get(&owner).map_or(0, |own| own.bytes)
    }

    /// Number of definitions, each session's counted.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Asserts that both tables agree. Walks everything.
    pub(crate) fn check_invariants(&self) {
        let mut count = 0;
        for (key, all) in &self.defined {
            assert!(!all.is_empty(), "{key:?} is defined by nobody");
            for (number, described) in all {
                count += 1;
                assert_eq!(self.owners[&described.owner].numbers.get(key), Some(number));
            }
        }
        let numbers = self.owners.values().map(|own| own.numbers.len());
        assert_eq!((count, numbers.sum::<usize>()), (self.count, self.count));
        for own in self.owners.values() {
            let weight = |((kind, uri), number): (&(Kind, Box<str>), &u64)| {
                let described = &self.defined[&(*kind, uri.clone())][number];
                Self::weight(uri, &described.description)
            };
            assert_eq!(own.bytes, own.numbers.iter().map(weight).sum::<usize>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    type Said = (SessionIndex, Kind, &'static str, Vec<u8>);

    /// Sessions define and undefine at random; the result is compared with a list of all definitions.
    #[test]
    fn the_latest_remaining_definition_is_returned() {
        let mut random = Random::new(7);
        let mut reflection = Reflection::default();
        let mut said: Vec<Said> = Vec::new();
        for step in 0..5_000_u32 {
            let mut draw = |most: usize| random.below(most);
            let owner = SessionIndex(draw(4) as u32);
            let kind = Kind::ALL[draw(3)];
            let uri = ["com.a", "com.b", "org.c"][draw(3)];
            let is_others = |(by, of, about, _): &Said| (*by, *of, *about) != (owner, kind, uri);
            match draw(8) {
                0 => {
                    while reflection.undefine_next(owner).is_some() {}
                    said.retain(|(by, ..)| *by != owner);
                }
                1..3 => {
                    let had = said.iter().any(|each| !is_others(each));
                    said.retain(is_others);
                    let gone = !said
                        .iter()
                        .any(|(_, of, about, _)| (*of, *about) == (kind, uri));
                    let undefined = reflection.undefine(owner, kind, uri);
                    assert_eq!(
                        undefined.map(|undefined| undefined.is_gone),
                        had.then_some(gone)
                    );
                }
                _ => {
                    let description = step.to_be_bytes().to_vec();
                    said.retain(is_others);
                    let is_new = !said
                        .iter()
                        .any(|(_, of, about, _)| (*of, *about) == (kind, uri));
                    let boxed = description.clone().into();
                    assert_eq!(reflection.define(owner, kind, uri, boxed), is_new);
                    said.push((owner, kind, uri, description));
                }
            }
            reflection.check_invariants();
            assert_eq!(reflection.len(), said.len());
            let last = said
                .iter()
                .rfind(|(_, of, about, _)| (*of, *about) == (kind, uri));
            let last = last.map(|(.., description)| &**description);
            assert_eq!(reflection.describe(kind, uri), last);
            let mut uris: Vec<_> = said
                .iter()
                .filter(|(_, of, ..)| *of == kind)
                .map(|(_, _, about, _)| *about)
                .collect();
            uris.sort_unstable();
            uris.dedup();
            assert_eq!(reflection.uris(kind).collect::<Vec<_>>(), uris);
        }
    }
}
