//! Identifiers in oslo.messaging's form: 32 hexadecimal digits of a random UUID.

/// Makes unique identifiers. The first is random; each later one is derived from it, because a message has two, and the
/// system's randomness costs more than the rest of it.
pub struct Identifiers {
    key: [u64; 2],
    count: u64,
}

impl Identifiers {
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed)?;
        let seed = u128::from_be_bytes(seed);
        Ok(Self {
            key: [seed as u64, (seed >> 64) as u64],
            count: 0,
        })
    }

    /// A new identifier.
    pub fn draw(&mut self) -> String {
        let mut bytes = [0; 32];
        self.draw_into(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its digits.
    pub fn draw_into(&mut self, digits: &mut [u8; 32]) {
        self.count = self.count.wrapping_add(1);
        let [low, high] = self.key.map(|key| mix(key ^ mix(self.count)));
        // Version 4, variant 1, as in a random UUID.
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        let number = u128::from(high) << 64 | u128::from(low);
        for (at, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (124 - 4 * at) & 0xf) as usize];
        }
    }
}

/// The last step of SplitMix64, which is a bijection.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Identifiers;

    #[test]
    fn no_two_are_the_same() {
        let mut first = Identifiers::new().expect("chance");
        let mut second = Identifiers::new().expect("chance");
        let drawn: HashSet<_> = (0..1000)
            .flat_map(|_| [first.draw(), second.draw()])
            .collect();
        assert_eq!(drawn.len(), 2000);
        for each in drawn {
            assert_eq!(each.len(), 32);
            assert!(each.bytes().all(|digit| digit.is_ascii_hexdigit()));
            assert_eq!(&each[12..13], "4");
        }
    }
}
