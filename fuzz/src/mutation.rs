//! Inputs from a seed: examples, damaged in the ways that decoders stumble over.

/// SplitMix64: small, seeded with any number, and good enough to pick damage.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }
}

/// Lengths, markers, delimiters and the edges of numbers and UTF-8.
const PECULIAR: &[u8] = &[
    0x00, 0x01, 0x17, 0x18, 0x1b, 0x1f, 0x20, 0x22, 0x2c, 0x2d, 0x2e, 0x30, 0x3a, 0x5b, 0x5c, 0x5d,
    0x5f, 0x7b, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc4, 0xd9, 0xdc,
    0xdf, 0xe0, 0xf4, 0xf7, 0xf8, 0xfb, 0xff,
];

/// One of `seeds`, damaged in up to eight places (or, seldom, not at all).
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..random.below(9) {
        damage(&mut input, seeds, random);
    }
    input
}

fn damage(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(9)).min(input.len());
    match random.below(8) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = PECULIAR[random.below(PECULIAR.len())],
        2 => input.insert(at, PECULIAR[random.below(PECULIAR.len())]),
        3 => input.insert(at, random.draw() as u8),
        4 => drop(input.drain(at..end)),
        5 => {
            // Again and again: depth, and lengths that grow over a limit.
            let part = input[at..end].to_vec();
            let many = 1 << random.below(8);
            input.splice(at..at, part.repeat(many));
        }
        6 => {
            let other = &seeds[random.below(seeds.len())];
            let start = random.below(other.len() + 1);
            let length = random.below(other.len() - start + 1);
            input.splice(at..end, other[start..start + length].iter().copied());
        }
        _ => input.truncate(at),
    }
}
