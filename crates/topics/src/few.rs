//! A list of which most have one entry, which then needs no memory of its own.

use std::slice;

#[derive(Debug, Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Vec<T>),
}

impl<T: Copy> Few<T> {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(one) => slice::from_mut(one),
            Self::Many(many) => many,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry at the end; returns its place.
    pub(crate) fn push(&mut self, entry: T) -> usize {
        let place = self.len();
        self.insert(place, entry);
        place
    }

    /// Adds an entry at a place, or at the end.
    pub(crate) fn insert(&mut self, place: usize, entry: T) {
        match self {
            Self::None => *self = Self::One(entry),
            Self::One(one) => {
                *self = Self::Many(match place {
                    0 => vec![entry, *one],
                    _ => vec![*one, entry],
                });
            }
            Self::Many(many) => many.insert(place.min(many.len()), entry),
        }
    }

    /// Removes an entry; those behind it move up.
    pub(crate) fn remove(&mut self, place: usize) {
        if place < self.len() {
            match self {
                Self::Many(many) => drop(many.remove(place)),
                _ => *self = Self::None,
            }
            self.shrink();
        }
    }

    /// Removes an entry, to whose place the last one moves.
    pub(crate) fn swap_remove(&mut self, place: usize) {
        if place < self.len() {
            match self {
                Self::Many(many) => drop(many.swap_remove(place)),
                _ => *self = Self::None,
            }
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if let Self::Many(many) = self {
            match many[..] {
                [] => *self = Self::None,
                [one] => *self = Self::One(one),
                _ if many.capacity() > 4 * many.len() => many.shrink_to(2 * many.len()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let mut list = Few::default();
        assert_eq!((0..3).map(|n| list.push(n)).sum::<usize>(), 3);
        list.insert(0, 3);
        list.swap_remove(1);
        assert_eq!(list.as_slice(), [3, 2, 1]);
        list.remove(0);
        list.remove(9);
        assert_eq!(list.as_slice(), [2, 1]);
        list.swap_remove(0);
        assert!(matches!(list, Few::One(1)));
        list.insert(0, 0);
        list.as_mut_slice()[1] = 5;
        assert_eq!((list.as_slice(), list.len()), (&[0, 5][..], 2));
        list.remove(1);
        list.remove(0);
        assert!(matches!(list, Few::None) && list.is_empty());
    }
}
