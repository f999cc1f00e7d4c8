//! The destinations of bindings, each once.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::ExchangeKey;
use crate::QueueKey;

/// The destination of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Exchange(ExchangeKey),
    Queue(QueueKey),
}

/// A set of targets, with the number of bindings that lead to each: bindings may differ only in their arguments. Most
/// keys have one target; that costs no allocation.
#[derive(Debug, Default)]
pub(super) enum Destinations {
    #[default]
    None,
    One(Target, u32),
    Many(Box<IndexMap<Target, u32, FxBuildHasher>>),
}

impl Destinations {
    pub(super) fn insert(&mut self, target: Target) {
        match self {
            Self::None => *self = Self::One(target, 1),
            Self::One(known, bindings) if *known == target => *bindings += 1,
            Self::One(known, bindings) => {
                let both = [(*known, *bindings), (target, 1)];
                *self = Self::Many(Box::new(both.into_iter().collect()));
            }
            Self::Many(targets) => *targets.entry(target).or_insert(0) += 1,
        }
    }

    pub(super) fn remove(&mut self, target: Target) {
        match self {
            Self::None => {}
            Self::One(known, bindings) if *known == target => match bindings {
                1 => *self = Self::None,
                _ => *bindings -= 1,
            },
            Self::One(..) => {}
            Self::Many(targets) => {
                if let Some(bindings) = targets.get_mut(&target) {
                    *bindings -= 1;
                    if *bindings == 0 {
                        targets.swap_remove(&target);
                    }
                }
                if targets.is_empty() {
                    *self = Self::None;
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn each(&self, found: &mut impl FnMut(Target)) {
        match self {
            Self::None => {}
            Self::One(target, _) => found(*target),
            Self::Many(targets) => targets.keys().for_each(|target| found(*target)),
        }
    }
}
