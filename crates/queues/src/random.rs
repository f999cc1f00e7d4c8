//! Random values from a seed: names that the vhost gives, tokens of direct replies, hash keys.

use std::sync::Arc;

use crosstie_collections::{SplitMix, Xoshiro};

/// The source of everything random in one vhost.
#[derive(Debug)]
pub(crate) struct Random {
    numbers: Xoshiro,
    /// Hashes the numbers that peers see: from the generator's own numbers they could compute the next ones.
    mask: ahash::RandomState,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeds = SplitMix(seed);
        let numbers = Xoshiro::new(&mut seeds);
        let [a, b, c, d] = std::array::from_fn(|_| seeds.number());
        Self {
            numbers,
            mask: ahash::RandomState::with_seeds(a, b, c, d),
        }
    }

    /// A name that cannot be guessed: 22 letters of base64url, as in RabbitMQ's `amq.gen-…`.
    pub(crate) fn name(&mut self, prefix: &str) -> Arc<str> {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let [high, low] = [self.next(), self.next()].map(|number| self.mask.hash_one(number));
        let mut bits = u128::from(high) << 64 | u128::from(low);
        let mut name = String::from(prefix);
        for _ in 0..22 {
            name.push(LETTERS[(bits & 63) as usize].into());
            bits >>= 6;
        }
        name.into()
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.numbers.number()
    }
}
