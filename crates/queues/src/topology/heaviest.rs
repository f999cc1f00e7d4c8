//! The maximum of a changing set of weights.

use std::collections::BTreeMap;

/// Weights, each as often as it was added. Most often all are equal, which costs no allocation. Others are in a map, in
/// which the heaviest is found without a walk.
#[derive(Debug, Default)]
pub(super) enum Heaviest {
    #[default]
    None,
    Same(u64, u32),
    Mixed(BTreeMap<u64, u32>),
}

impl Heaviest {
    pub(super) fn add(&mut self, weight: u64) {
        match self {
            Self::None => *self = Self::Same(weight, 1),
            Self::Same(known, times) if *known == weight => *times += 1,
            Self::Same(known, times) => {
                let both = BTreeMap::from([(*known, *times), (weight, 1)]);
                *self = Self::Mixed(both);
            }
            Self::Mixed(weights) => *weights.entry(weight).or_insert(0) += 1,
        }
    }

    /// Takes away what was added.
    pub(super) fn remove(&mut self, weight: u64) {
        match self {
            Self::Same(known, 1) if *known == weight => *self = Self::None,
            Self::Same(known, times) if *known == weight => *times -= 1,
            Self::None | Self::Same(..) => {}
            Self::Mixed(weights) => {
                if let Some(times) = weights.get_mut(&weight) {
                    *times -= 1;
                    if *times == 0 {
                        weights.remove(&weight);
                    }
                }
                if let (1, Some((known, times))) = (weights.len(), weights.first_key_value()) {
                    *self = Self::Same(*known, *times);
                }
            }
        }
    }

    /// 0 if there is none.
    pub(super) fn max(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Same(weight, _) => *weight,
            Self::Mixed(weights) => weights.last_key_value().map_or(0, |(weight, _)| *weight),
        }
    }
}
