//! Detects duplicates among publications that links between realms forward: each is accepted once, and none that began
//! in this realm.
//!
//! An event may reach a realm by several ways. The link names the original publication in `forward_for`; such ids are
//! drawn at random, so that they do not collide between realms. The publisher cannot be compared: if it is not
//! disclosed, `forward_for` names the links, each with its own session. An event without a publication id is accepted
//! as it is.

use std::collections::VecDeque;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{Dict, FORWARD_FOR, Value};
use rustc_hash::FxBuildHasher;

/// The latest publications. Boxed, because most realms have no links.
#[derive(Debug)]
pub(super) struct Forwarded {
    known: GrowingMap<u64, (), FxBuildHasher>,
    in_order: VecDeque<u64>,
}

/// Number of publications remembered. An event is accepted twice if more than that arrive between its two ways.
const FORWARDED_MAX: usize = 1 << 16;

/// The session that published a forwarded event, or the first link that carried it, and the original publication id if
/// given.
pub(super) fn origin(passthru: &Dict) -> Option<(u64, Option<u64>)> {
    let first = first(passthru)?;
    let number = |name: &str| first.get(name).and_then(Value::as_u64);
    Some((number("session")?, number("publication")))
}

/// The first element of `forward_for`.
fn first(passthru: &Dict) -> Option<&Value> {
    let found = passthru.iter().find(|(key, _)| key == FORWARD_FOR);
    match found {
        Some((_, Value::List(list))) => list.first(),
        _ => None,
    }
}

impl Forwarded {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            known: GrowingMap::new(),
            in_order: VecDeque::new(),
        })
    }

    /// Returns whether the publication arrived before, and remembers it.
    pub(super) fn is_known(&mut self, publication: u64) -> bool {
        if self.known.insert(publication, ()).is_some() {
            return true;
        }
        if self.in_order.len() == FORWARDED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.in_order.push_back(publication);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut forwarded = Forwarded::new();
        for publication in 0..=FORWARDED_MAX as u64 {
            assert!(!forwarded.is_known(publication));
        }
        assert!(forwarded.is_known(FORWARDED_MAX as u64));
        assert!(forwarded.is_known(1));
        assert!(!forwarded.is_known(0));
        assert_eq!(forwarded.known.len(), FORWARDED_MAX);
    }
}
