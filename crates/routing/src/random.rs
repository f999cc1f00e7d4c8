//! Random numbers from a seed: session and publication ids, hash keys, and the `random` invocation policy.
//!
//! No secret depends on them: ids in WAMP identify, they do not authorize.

use crosstie_collections::{SplitMix, Xoshiro};
use crosstie_wamp::{PublicationId, SessionId};

/// The source of everything random in one realm.
#[derive(Debug)]
pub(crate) struct Random(Xoshiro);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro::new(&mut SplitMix(seed)))
    }

    pub(crate) fn session_id(&mut self) -> SessionId {
        SessionId(self.id())
    }

    #[inline(always)]
    pub(crate) fn publication_id(&mut self) -> PublicationId {
        PublicationId(self.id())
    }

    /// A hasher whose collisions cannot be planned without knowledge of the seed.
    pub(crate) fn hash_keys(&mut self) -> ahash::RandomState {
        ahash::RandomState::with_seeds(self.next(), self.next(), self.next(), self.next())
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The bias of the multiplication is bound / 2^64: no list of callees is long enough for it.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Uniform over 1 ..= 2^53, the range of WAMP's ids.
    #[inline(always)]
    fn id(&mut self) -> u64 {
        (self.next() >> 11) + 1
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_in_range_and_follow_the_seed() {
        let (mut one, mut same, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        let mut equal_to_other = 0;
        for _ in 0..10_000 {
            let id = one.id();
            assert!((1..=crosstie_wamp::ID_MAX).contains(&id), "{id}");
            assert_eq!(id, same.id());
            equal_to_other += u32::from(id == other.id());
        }
        assert_eq!(equal_to_other, 0);
    }

    #[test]
    fn below_reaches_every_number() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 5];
        for _ in 0..1_000 {
            seen[random.below(5)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}
