//! Versions of the protocol between nodes: a node announces its first and last version, and gets the highest version
//! that all accept.
//!
//! A realm's nodes can thus be upgraded one after another. A node without a common version is refused and informed: it
//! was forgotten in an upgrade, or is too new.

use std::fmt;

/// A range of versions, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub first: u8,
    pub last: u8,
}

impl Versions {
    /// The versions of this program.
    pub const OWN: Self = Self { first: 1, last: 1 };

    pub fn has(self, version: u8) -> bool {
        (self.first..=self.last).contains(&version)
    }

    /// The version to speak: the highest that most of the others accept.
    pub(crate) fn choose(self, others: &[Self]) -> u8 {
        let taken_by = |version: u8| others.iter().filter(|other| other.has(version)).count();
        let best = (self.first..=self.last).max_by_key(|version| (taken_by(*version), *version));
        best.unwrap_or(self.last)
    }

    /// Reads the field; a node without it predates the field.
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
            // All are refused.
            ((1, 2), &[(3, 4)], 2),
        ] {
            let versions = |(first, last): (u8, u8)| Versions { first, last };
            let others: Vec<_> = others.iter().map(|other| versions(*other)).collect();
            assert_eq!(versions(own).choose(&others), expected, "{own:?}");
        }
    }
}
