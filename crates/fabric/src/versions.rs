//! Which form of what nodes say they take: a node says its first and its last version, and is sent the last one that all take.
//!
//! So a realm's nodes may be replaced one after the other by newer ones. Who shares no version with this node is refused, and
//! told so: it is a node that was forgotten, or one from too far ahead.

use std::fmt;

/// From the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub first: u8,
    pub last: u8,
}

impl Versions {
    /// What this program speaks.
    pub const OWN: Self = Self { first: 1, last: 1 };

    pub fn has(self, version: u8) -> bool {
        (self.first..=self.last).contains(&version)
    }

    /// The version to speak: the last one that most of the others take.
    pub(crate) fn choose(self, others: &[Self]) -> u8 {
        let taken_by = |version: u8| others.iter().filter(|other| other.has(version)).count();
        let best = (self.first..=self.last).max_by_key(|version| (taken_by(*version), *version));
        best.unwrap_or(self.last)
    }

    /// As a field has them; what is of another form is from before there was one.
    pub(crate) fn read(field: Option<&[u8]>) -> Self {
        match field {
            Some([first, last, ..]) => Self {
                first: *first,
                last: *last,
            },
            _ => Self { first: 1, last: 1 },
        }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "version {}", self.first),
            false => write!(f, "versions {} to {}", self.first, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_version_that_all_take_is_spoken() {
        for (own, others, expected) in [
            ((1, 1), &[][..], 1),
            ((1, 3), &[], 3),
            ((1, 3), &[(1, 2)], 2),
            ((1, 3), &[(2, 3), (1, 2)], 2),
            ((1, 3), &[(2, 9), (3, 3)], 3),
            // One of both is refused.
            ((1, 3), &[(1, 1), (3, 3)], 3),
            ((1, 3), &[(1, 1), (1, 1), (3, 3)], 1),
            // All are.
            ((1, 2), &[(3, 4)], 2),
        ] {
            let versions = |(first, last): (u8, u8)| Versions { first, last };
            let others: Vec<_> = others.iter().map(|other| versions(*other)).collect();
            assert_eq!(versions(own).choose(&others), expected, "{own:?}");
        }
    }
}
