//! Publications that links between realms bring from elsewhere: each is taken once, and none that began here.
//!
//! A realm may be reached by several ways. Whoever forwards an event says in `forward_for` who published it, and as
//! which publication; both ids are drawn at random, so that no realm has what another one has. What does not say so
//! is taken as it comes.

use std::collections::VecDeque;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{Dict, FORWARD_FOR, Value};
use rustc_hash::FxBuildHasher;

/// The publications that came last. Boxed, because most realms are linked to no other.
#[derive(Debug)]
pub(super) struct Forwarded {
    known: GrowingMap<Origin, (), FxBuildHasher>,
    in_order: VecDeque<Origin>,
}

/// Publisher and publication.
pub(super) type Origin = (u64, u64);

/// So many are remembered. An event that was overtaken by more of them on its second way is taken twice.
const FORWARDED_MAX: usize = 1 << 16;

/// Who published what is forwarded with these attributes, and as which publication where that is said.
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
    pub(super) fn is_known(&mut self, origin: Origin) -> bool {
        if self.known.insert(origin, ()).is_some() {
            return true;
        }
        if self.in_order.len() == FORWARDED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.in_order.push_back(origin);
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
            assert!(!forwarded.is_known((1, publication)));
        }
        assert!(forwarded.is_known((1, FORWARDED_MAX as u64)));
        assert!(forwarded.is_known((1, 1)));
        assert!(!forwarded.is_known((1, 0)));
        assert_eq!(forwarded.known.len(), FORWARDED_MAX);
    }
}
