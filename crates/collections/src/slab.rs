//! Slots with generations: a key of a removed value finds nothing, not its successor.

use std::fmt;
use std::marker::PhantomData;

/// The index and generation of a value in a [`Slab`]. `K` is a marker only.
pub struct Key<K> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

/// Values by key, or by the index of one that is known to live.
#[derive(Debug)]
pub struct Slab<K, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<K, T> Default for Slab<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T> Slab<K, T> {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            kind: PhantomData,
        }
    }

    pub fn insert(&mut self, value: T) -> Key<K> {
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

    pub fn remove(&mut self, key: Key<K>) -> Option<T> {
        let slot = living_mut(&mut self.slots, key)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    #[inline]
    pub fn find_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        living_mut(&mut self.slots, key)?.value.as_mut()
    }

    #[inline]
    pub fn find(&self, key: Key<K>) -> Option<&T> {
        living(&self.slots, key)?.value.as_ref()
    }

    /// The value at an index, whatever its generation.
    #[inline]
    pub fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    #[inline]
    pub fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// The key of the value at an index.
    #[inline]
    pub fn key_at(&self, index: u32) -> Option<Key<K>> {
        let slot = self.slots.get(index as usize)?;
        let is_live = slot.value.is_some();
        is_live.then(|| Key::new(index, slot.generation))
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        self.part(0, usize::MAX)
    }

    /// Size of the table, free slots included.
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// The values at that many slots, from `place` on.
    pub fn part(&self, place: usize, places_max: usize) -> impl Iterator<Item = (Key<K>, &T)> {
        let slots = self.slots.iter().enumerate();
        slots
            .skip(place)
            .take(places_max)
            .filter_map(|(index, slot)| {
                let value = slot.value.as_ref()?;
                Some((Key::new(index as u32, slot.generation), value))
            })
    }
}

/// Values that one room keeps beside those of another's [`Slab`], by the same keys. A slot takes memory once a value
/// was kept for it.
#[derive(Debug)]
pub struct Beside<K, T> {
    slots: Vec<Slot<T>>,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Beside<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T> Beside<K, T> {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            kind: PhantomData,
        }
    }

    #[inline]
    pub fn find(&self, key: Key<K>) -> Option<&T> {
        living(&self.slots, key)?.value.as_ref()
    }

    #[inline]
    pub fn find_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        living_mut(&mut self.slots, key)?.value.as_mut()
    }

    /// The value for that key, created if absent.
    pub fn entry(&mut self, key: Key<K>, make: impl FnOnce() -> T) -> &mut T {
        let place = key.index as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || Slot {
                generation: 0,
                value: None,
            });
        }
        let slot = &mut self.slots[place];
        if slot.generation != key.generation {
            slot.generation = key.generation;
            // The value of an earlier generation.
            slot.value = None;
        }
        slot.value.get_or_insert_with(make)
    }

    pub fn remove(&mut self, key: Key<K>) -> Option<T> {
        living_mut(&mut self.slots, key)?.value.take()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((Key::new(index as u32, slot.generation), value))
        })
    }
}

/// The slot of a key whose value was not replaced.
#[inline]
fn living<K, T>(slots: &[Slot<T>], key: Key<K>) -> Option<&Slot<T>> {
    let slot = slots.get(key.index as usize)?;
    (slot.generation == key.generation).then_some(slot)
}

#[inline]
fn living_mut<K, T>(slots: &mut [Slot<T>], key: Key<K>) -> Option<&mut Slot<T>> {
    let slot = slots.get_mut(key.index as usize)?;
    (slot.generation == key.generation).then_some(slot)
}

impl<K> Key<K> {
    fn new(index: u32, generation: u32) -> Self {
        Self {
            index,
            generation,
            kind: PhantomData,
        }
    }

    pub fn index(self) -> u32 {
        self.index
    }

    /// Its place and generation as one number, which no other key of its slab has while it lives.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub fn from_number(number: u64) -> Self {
        Self::new(number as u32, (number >> 32) as u32)
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

impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
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
        assert_eq!(
            (one.index(), slab.len(), slab.places()),
            (two.index(), 1, 1)
        );
        assert_eq!((slab.find(one), slab.find(two)), (None, Some(&2)));
        assert_eq!(slab.find_mut(one), None);
        assert_eq!(slab.remove(one), None);
        assert_eq!(slab.key_at(0), Some(two));
        assert_eq!(slab.at(0), Some(&2));
        slab.remove(two);
        assert_eq!((slab.key_at(0), slab.at(0)), (None, None));
    }
}
