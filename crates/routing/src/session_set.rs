//! A set of sessions that is mostly walked, and mostly small.

use std::slice;

use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

use crate::identity::SessionIndex;

/// Up to this many sessions, a walk over the list is as fast as a table.
const LISTED_MAX: usize = 16;

/// Two words, and nothing behind them for the only session: most subscriptions have one.
#[derive(Debug, Default)]
pub(crate) enum SessionSet {
    #[default]
    Empty,
    One(SessionIndex),
    Many(Box<Many>),
}

/// Two or more: a list, with a table of places beside it if it is long.
#[derive(Debug, Default)]
pub(crate) struct Many {
    list: Vec<SessionIndex>,
    places: Option<GrowingMap<SessionIndex, u32, FxBuildHasher>>,
}

impl SessionSet {
    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[SessionIndex] {
        match self {
            Self::Empty => &[],
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => &many.list,
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> slice::Iter<'_, SessionIndex> {
        self.as_slice().iter()
    }

    pub(crate) fn contains(&self, session: &SessionIndex) -> bool {
        match self {
            Self::Empty => false,
            Self::One(one) => one == session,
            Self::Many(many) => many.place(session).is_some(),
        }
    }

    /// Adds a session; returns whether it is new.
    pub(crate) fn insert(&mut self, session: SessionIndex) -> bool {
        if self.contains(&session) {
            return false;
        }
        match self {
            Self::Empty => *self = Self::One(session),
            Self::One(one) => {
                *self = Self::Many(Box::new(Many {
                    list: vec![*one, session],
                    places: None,
                }));
            }
            Self::Many(many) => many.push(session),
        }
        true
    }

    /// Removes a session; returns whether it was present. The last one takes its place.
    pub(crate) fn swap_remove(&mut self, session: &SessionIndex) -> bool {
        match self {
            Self::One(one) if one == session => *self = Self::Empty,
            Self::Empty | Self::One(_) => return false,
            Self::Many(many) => {
                if !many.swap_remove(session) {
                    return false;
                }
                if let [one] = many.list[..] {
                    *self = Self::One(one);
                }
            }
        }
        true
    }
}

impl Many {
    fn push(&mut self, session: SessionIndex) {
        let place = self.list.len();
        self.list.push(session);
        match &mut self.places {
            Some(places) => {
                places.insert(session, place as u32);
            }
            None if place == LISTED_MAX => self.places = Some(self.table()),
            None => {}
        }
    }

    fn swap_remove(&mut self, session: &SessionIndex) -> bool {
        let Some(place) = self.place(session) else {
            return false;
        };
        self.list.swap_remove(place);
        if let Some(places) = &mut self.places {
            places.remove(session);
            if let Some(moved) = self.list.get(place) {
                places.insert(*moved, place as u32);
            }
        }
        // Not at the bound: one that comes and goes there would make a table each time.
        if self.list.len() == LISTED_MAX / 2 {
            self.places = None;
        }
        if self.list.len() < self.list.capacity() / 4 {
            self.list.shrink_to(self.list.len() * 2);
        }
        true
    }

    fn place(&self, session: &SessionIndex) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(session).map(|place| *place as usize),
            None => self.list.iter().position(|listed| listed == session),
        }
    }

    fn table(&self) -> GrowingMap<SessionIndex, u32, FxBuildHasher> {
        let mut table = GrowingMap::new();
        for (place, session) in self.list.iter().enumerate() {
            table.insert(*session, place as u32);
        }
        table
    }
}

impl<'a> IntoIterator for &'a SessionSet {
    type Item = &'a SessionIndex;
    type IntoIter = slice::Iter<'a, SessionIndex>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crosstie_collections::SplitMix;

    use super::*;

    #[test]
    fn it_holds_what_was_inserted_and_not_removed_whatever_its_size() {
        let mut random = SplitMix(7);
        let (mut set, mut model) = (SessionSet::default(), BTreeSet::new());
        // Sizes wander between none and some forty, over both bounds many times.
        for step in 0..20_000_u32 {
            let session = SessionIndex((random.number() % 48) as u32);
            let grows = random.number() % 48 > u64::from(step / 200 % 48);
            match grows {
                true => assert_eq!(set.insert(session), model.insert(session)),
                false => assert_eq!(set.swap_remove(&session), model.remove(&session)),
            }
            assert_eq!(set.contains(&session), grows);
            assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            let mut listed: Vec<_> = set.iter().copied().collect();
            listed.sort_unstable();
            assert!(listed.iter().eq(&model));
            assert!(model.iter().all(|session| set.contains(session)));
        }
    }

    #[test]
    fn a_large_one_that_empties_holds_little() {
        let mut set = SessionSet::default();
        (0..10_000).for_each(|index| assert!(set.insert(SessionIndex(index))));
        (2..10_000).for_each(|index| assert!(set.swap_remove(&SessionIndex(index))));
        let SessionSet::Many(many) = &set else {
            panic!("expected two sessions");
        };
        assert!(many.places.is_none() && many.list.capacity() <= 8);
        assert!(set.swap_remove(&SessionIndex(0)));
        assert!(matches!(set, SessionSet::One(SessionIndex(1))));
        assert_eq!(size_of::<SessionSet>(), 2 * size_of::<usize>());
    }
}
