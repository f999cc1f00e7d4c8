//! Random values from a seed: names that the vhost gives, tokens of direct replies, hash keys.
//!
//! The generator is xoshiro256++ (Blackman and Vigna), seeded through SplitMix64 as its authors ask.

use std::sync::Arc;

/// The source of everything random in one vhost.
#[derive(Debug)]
pub(crate) struct Random {
    state: [u64; 4],
    /// Hashes the numbers that peers see: from the generator's own numbers they could compute the next ones.
    mask: ahash::RandomState,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut counter = seed;
        let mut mixed = || {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = counter;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self {
            state: std::array::from_fn(|_| mixed()),
            mask: ahash::RandomState::with_seeds(mixed(), mixed(), mixed(), mixed()),
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
