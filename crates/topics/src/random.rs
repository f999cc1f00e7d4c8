//! Random values from a seed: client identifiers, hash keys.

use ahash::RandomState;
use crosstie_collections::{SplitMix, Xoshiro};

/// Length of a client identifier that the space assigns. 3.1 allows 23 characters.
pub const ASSIGNED_ID_BYTES: usize = 22;

#[derive(Debug)]
pub(crate) struct Random {
    numbers: Xoshiro,
    /// Hashes the numbers that peers see: from the generator's own numbers they could compute the next ones.
    mask: RandomState,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeds = SplitMix(seed);
        let numbers = Xoshiro::new(&mut seeds);
        let [a, b, c, d] = std::array::from_fn(|_| seeds.number());
        Self {
            numbers,
            mask: RandomState::with_seeds(a, b, c, d),
        }
    }

    pub(crate) fn hasher(&mut self) -> RandomState {
        let [a, b, c, d] = std::array::from_fn(|_| self.numbers.number());
        RandomState::with_seeds(a, b, c, d)
    }

    /// A client identifier that cannot be guessed, of letters and digits.
    pub(crate) fn client_id(&mut self) -> String {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
        let [high, low] = [0; 2].map(|_: u8| self.mask.hash_one(self.numbers.number()));
        let mut bits = u128::from(high) << 64 | u128::from(low);
        let letter = |_| {
            let letter = LETTERS[(bits & 31) as usize];
            bits >>= 5;
            char::from(letter)
        };
        (0..ASSIGNED_ID_BYTES).map(letter).collect()
    }
}
