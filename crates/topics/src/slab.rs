//! Slots with generations: a key of a removed value finds nothing, not its successor.

use std::marker::PhantomData;

/// The index and generation of a value in a [`Slab`]. `K` is a marker only.
#[derive(Debug)]
pub(crate) struct Key<K> {
    pub(crate) index: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

/// Values by key, or by the index of one that is known to live.
#[derive(Debug)]
pub(crate) struct Slab<K, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<K, T> Slab<K, T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            kind: PhantomData,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<K> {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.value = Some(value);
            return Key::new(index, slot.generation);
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot {
            generation: 0,
            value: Some(value),
        });
        Key::new(index, 0)
    }

    pub(crate) fn remove(&mut self, key: Key<K>) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    #[inline]
    pub(crate) fn find(&self, key: Key<K>) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        match slot.generation == key.generation {
            true => slot.value.as_ref(),
            false => None,
        }
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        match slot.generation == key.generation {
            true => slot.value.as_mut(),
            false => None,
        }
    }

    /// The value at an index, whatever its generation.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// The key of the value at an index.
    #[inline]
    pub(crate) fn key_at(&self, index: u32) -> Option<Key<K>> {
        let slot = self.slots.get(index as usize)?;
        let is_live = slot.value.is_some();
        is_live.then(|| Key::new(index, slot.generation))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Size of the table, free slots included.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }
}

impl<K> Key<K> {
    fn new(index: u32, generation: u32) -> Self {
        Self {
            index,
            generation,
            kind: PhantomData,
        }
    }

    fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

// By hand: the derives would require the same of the marker.
impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl<K> Eq for Key<K> {}

impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}

impl<K> std::hash::Hash for Key<K> {
    fn hash<S: std::hash::Hasher>(&self, state: &mut S) {
        self.number().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_value_finds_nothing() {
        let mut slab: Slab<(), u8> = Slab::new();
        let one = slab.insert(1);
        assert_eq!(slab.remove(one), Some(1));
        let two = slab.insert(2);
        assert_eq!((one.index, slab.len(), slab.places()), (two.index, 1, 1));
        assert_eq!((slab.find(one), slab.find(two)), (None, Some(&2)));
        assert_eq!(slab.find_mut(one), None);
        assert_eq!(slab.remove(one), None);
        assert_eq!(slab.key_at(0), Some(two));
        assert_eq!(slab.at(0), Some(&2));
        slab.remove(two);
        assert_eq!((slab.key_at(0), slab.at(0)), (None, None));
    }
}
