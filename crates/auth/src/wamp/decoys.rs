//! Decoys: unknown principals are challenged like known ones. The decoy of an authid stays the same when principals are
//! added or removed; a salt that changed would reveal that the authid is unknown.

use super::cryptosign::SigningKey;
use super::mac::hmac;

/// Samples of a method's principals, whose parameters unknown ones are challenged with.
#[derive(Clone, PartialEq)]
pub(super) struct Decoys<T> {
    /// Ordered by their place on a ring.
    samples: Vec<Sample<T>>,
    /// A seed from the principals' secrets, for routers without a key.
    own: [u8; 32],
}

#[derive(Clone, PartialEq)]
struct Sample<T> {
    place: u64,
    /// The samples of lowest rank are kept: one more principal replaces at most one sample.
    rank: u64,
    like: T,
}

impl<T> Default for Decoys<T> {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            own: [0; 32],
        }
    }
}

impl<T: Clone> Decoys<T> {
    /// Adds a principal.
    pub(super) fn insert(&mut self, authid: &str, secret: &[u8], like: &T) {
        self.own = hmac(&self.own, secret);
        let [place, rank] = numbers(&hmac(b"crosstie", authid.as_bytes()));
        let sample = Sample {
            place,
            rank,
            like: like.clone(),
        };
        self.samples.retain(|other| other.place != place);
        let at = self.samples.partition_point(|other| other.place < place);
        self.samples.insert(at, sample);
        if self.samples.len() > SAMPLES_MAX {
            let ranks = self.samples.iter().map(|sample| sample.rank).enumerate();
            let last = ranks.max_by_key(|&(_, rank)| rank).map_or(0, |(at, _)| at);
            self.samples.remove(last);
        }
    }

    /// The sample that an unknown `authid` resembles, and the seed of its differences.
    pub(super) fn find(
        &self,
        method: &str,
        authid: &str,
        key: Option<&SigningKey>,
    ) -> Option<(T, [u8; 32])> {
        let secret: &[u8; 32] = key.map_or(&self.own, SigningKey::decoys);
        let seed = hmac(&hmac(secret, method.as_bytes()), authid.as_bytes());
        let [place, _] = numbers(&seed);
        let next = self.samples.partition_point(|sample| sample.place < place);
        let sample = self.samples.get(next).or_else(|| self.samples.first())?;
        Some((sample.like.clone(), seed))
    }
}

const SAMPLES_MAX: usize = 256;

/// The first two numbers of a hash.
fn numbers(hash: &[u8; 32]) -> [u64; 2] {
    let (numbers, _) = hash.as_chunks::<8>();
    [0, 1].map(|at| u64::from_be_bytes(numbers[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(principals: impl IntoIterator<Item = usize>) -> Decoys<usize> {
        let mut decoys = Decoys::default();
        for number in principals {
            decoys.insert(&format!("principal{number}"), &[1; 32], &number);
        }
        decoys
    }

    #[test]
    fn one_more_principal_changes_few_others() {
        let key = SigningKey::from_seed(&[7; 32]);
        for (count, changed_max) in [(1, 700), (10, 300), (300, 40)] {
            let (before, after) = (of(0..count), of((0..count).chain([count])));
            let mut changed = 0;
            for number in 0..1_000 {
                let authid = format!("unknown{number}");
                let find = |decoys: &Decoys<usize>| decoys.find("scram", &authid, Some(&key));
                let (like, seed) = find(&before).expect("somebody");
                let (like_after, seed_after) = find(&after).expect("somebody");
                assert_eq!(seed, seed_after);
                changed += usize::from(like != like_after);
            }
            assert!(changed <= changed_max, "{changed} of {count}");
        }
    }

    #[test]
    fn methods_and_routers_have_their_own() {
        let decoys = of([1]);
        let keys = [7, 8].map(|byte| SigningKey::from_seed(&[byte; 32]));
        let seed = |method, key| decoys.find(method, "joe", key).map(|(_, seed)| seed);
        let all = [
            seed("scram", Some(&keys[0])),
            seed("scram", Some(&keys[1])),
            seed("scram", None),
            seed("wampcra", Some(&keys[0])),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }

    #[test]
    fn samples_are_bounded_and_need_a_principal() {
        assert_eq!(of(0..1_000).samples.len(), SAMPLES_MAX);
        assert!(of([]).find("scram", "joe", None).is_none());
        assert_eq!(of([1, 1]).samples.len(), 1);
    }
}
