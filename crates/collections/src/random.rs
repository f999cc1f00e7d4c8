//! Random numbers from a seed, for state machines whose outputs follow from their inputs.

/// The generator xoshiro256++ (Blackman and Vigna): fast and well distributed, and not secret.
#[derive(Debug)]
pub struct Xoshiro {
    state: [u64; 4],
}

/// SplitMix64 (Steele, Lea and Flood): a stream of seeds.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// The last steps of SplitMix64: every bit of the number changes every other one.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Xoshiro {
    /// Seeded through SplitMix64, as the authors ask.
    pub fn new(seeds: &mut SplitMix) -> Self {
        Self {
            state: std::array::from_fn(|_| seeds.number()),
        }
    }

    #[inline(always)]
    pub fn number(&mut self) -> u64 {
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
