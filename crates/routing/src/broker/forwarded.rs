//! Publications that links between realms bring from elsewhere: each is taken once, and none that began here.
//!
//! A realm may be reached by several ways. Whoever forwards an event says in `forward_for` as which publication it was
//! published; such ids are drawn at random, so that no realm has what another one has. Who published it says nothing here:
//! where that is not disclosed the links of one publication stand there, each with a session of its own. What does not say
//! so is taken as it comes.

use std::collections::VecDeque;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{Dict, FORWARD_FOR, Value};
use rustc_hash::FxBuildHasher;

/// The publications that came last. Boxed, because most realms are linked to no other.
#[derive(Debug)]
pub(super) struct Forwarded {
    known: GrowingMap<u64, (), FxBuildHasher>,
    in_order: VecDeque<u64>,
}

/// So many are remembered. An event that was overtaken by more of them on its second way is taken twice.
const FORWARDED_MAX: usize = 1 << 16;

/// Who published what is forwarded with these attributes, or first carried it, and as which publication where that is
/// said.
pub(super) fn origin(passthru: &Dict) -> Option<(u64, Option<u64>)> {
    let first = first(passthru)?;
    let number = |name: &str| first.get(name).and_then(Value::as_u64);
    Some((number("session")?, number("publication")))
}

/// Who stands at the beginning of `forward_for`.
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

    /// Whether it has come before; it has from now on.
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
