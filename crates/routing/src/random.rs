//! Random numbers from a seed: session and publication ids, hash keys, and the `random` invocation policy.
//!
//! The generator is xoshiro256++ (Blackman and Vigna), seeded through SplitMix64 as its authors ask. It is fast and
//! well distributed. No secret depends on it: ids in WAMP identify, they do not authorize.

use crosstie_wamp::{PublicationId, SessionId};

/// The source of everything random in one realm.
#[derive(Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut counter = seed;
        Self {
            state: std::array::from_fn(|_| {
                counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = counter;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }),
        }
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
        let state = &mut self.state;
        let result = state[0]
            .wrapping_add(state[3])
            .rotate_left(23)
            .wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
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
