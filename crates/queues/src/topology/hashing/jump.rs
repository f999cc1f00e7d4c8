//! Jump consistent hash (Lamping and Veach, 2014) with the random numbers of Erlang's `exs1024`: of `N` places, a key
//! keeps its place as long as it can when `N` changes.

/// The place of a hash among that many, of which there must be one.
pub(super) fn place(hash: u32, places: u64) -> u64 {
    if places <= 1 {
        return 0;
    }
    let mut random = Xorshift1024::new(hash);
    let mut place = 0;
    let mut next = 0.0;
    // The steps grow by the factor of a random number: there are about as many as the logarithm of `places`.
    while next < places as f64 {
        place = next as u64;
        next = ((place + 1) as f64 / random.fraction()).floor();
    }
    place
}

/// Words of the generator's state.
const WORDS: usize = 16;

/// xorshift1024* (31, 11, 30).
struct Xorshift1024 {
    words: [u64; WORDS],
    at: usize,
}

impl Xorshift1024 {
    /// Of the seed's bits, 21 count.
    fn new(seed: u32) -> Self {
        const BITS_21: u64 = (1 << 21) - 1;
        let seed = (u64::from(seed) & BITS_21) + 1;
        let [a, b, c] = [2_097_131, 2_097_133, 2_097_143].map(|prime| (seed * prime) & BITS_21);
        let mut state = a << 43 | b << 22 | c << 1 | 1;
        let mut words = [0; WORDS];
        // The newest first.
        for word in words.iter_mut().rev() {
            // xorshift64* (12, 25, 27).
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            *word = state.wrapping_mul(2_685_821_657_736_338_717);
        }
        Self { words, at: 0 }
    }

    /// At least 0, less than 1.
    fn fraction(&mut self) -> f64 {
        let first = self.words[self.at];
        self.at = (self.at + 1) % WORDS;
        let mut second = self.words[self.at];
        second ^= second << 31;
        second ^= second >> 11;
        let word = second ^ first ^ (first >> 30);
        self.words[self.at] = word;
        word.wrapping_mul(1_181_783_497_276_652_981) as f64 / 2f64.powi(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of RabbitMQ's routing keys, and their places among 2, 3, 5, 6, 10 and 100.
    #[test]
    fn places_are_those_of_rabbitmq() {
        const PLACES: [u64; 6] = [2, 3, 5, 6, 10, 100];
        for (hash, expected) in [
            (13_708_901, [0, 0, 0, 0, 9, 45]),
            (112_802_447, [1, 1, 1, 1, 6, 47]),
            (5_452_885, [1, 1, 1, 1, 1, 64]),
            (74_888_420, [1, 1, 1, 1, 8, 31]),
            (115_360_506, [1, 1, 4, 5, 5, 5]),
            (67_923_675, [1, 2, 2, 2, 7, 58]),
            (115_356_468, [1, 2, 3, 3, 3, 36]),
        ] {
            assert_eq!(PLACES.map(|places| place(hash, places)), expected, "{hash}");
            assert_eq!(place(hash, 1), 0);
        }
    }

    #[test]
    fn every_key_has_a_place_among_any_number() {
        for hash in (0..1 << 21).step_by(997) {
            for places in [2, 1000, 1 << 32, 1 << 52] {
                assert!(place(hash, places) < places);
            }
        }
    }
}
