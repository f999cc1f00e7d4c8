//! The order in which Crossbar.io looks permissions up, for configurations written for Crossbar.io.
//!
//! Exact and prefix permissions are one map of texts. The longest text that the URI begins with decides, whichever its
//! kind. If that is an exact permission for another URI, nothing is allowed: an exact permission hides shorter prefixes
//! from every URI that begins with its text. A wildcard permission is found by the text before its first two dots in a
//! row, the longest again. It precedes everything but an exact permission for that very URI. A wildcard permission
//! without two dots in a row matches only its own text; one that begins with them is never found. A pattern is looked
//! up as if it were a URI.

use crosstie_wamp::MatchPolicy;

use super::permission::{Grant, Permission};
use crate::pattern::PatternMap;
use crate::random::Random;

/// The permissions of a role in Crossbar.io's structure.
#[derive(Debug)]
pub(super) struct CrossbarOrder {
    permissions: Vec<(Permission, Grant)>,
    /// By their texts.
    plain: PatternMap<usize>,
    /// By the text before the first two dots in a row.
    wildcards: PatternMap<usize>,
}

impl CrossbarOrder {
    /// Of two permissions with the same text the later one counts, as in Crossbar.io.
    pub(super) fn new(permissions: &[Permission], random: &mut Random) -> Self {
        let mut order = Self {
            permissions: Vec::with_capacity(permissions.len()),
            plain: PatternMap::new(random.hash_keys()),
            wildcards: PatternMap::new(random.hash_keys()),
        };
        for (place, permission) in permissions.iter().enumerate() {
            let (map, text) = match permission.uri.find("..") {
                Some(0) => continue,
                Some(dots) => (&mut order.wildcards, &permission.uri[..dots]),
                None => (&mut order.plain, &*permission.uri),
            };
            map.insert(MatchPolicy::Prefix, text.into(), place);
        }
        let copied = permissions.iter();
        order.permissions = copied.map(|p| (p.clone(), Grant::of(p))).collect();
        order
    }

    /// The grant that decides about a URI.
    pub(super) fn grant(&self, uri: &str) -> Option<Grant> {
        self.deciding(uri).map(|(_, grant)| *grant)
    }

    /// The trust level of the permission that decides.
    pub(super) fn trustlevel(&self, uri: &str) -> Option<u16> {
        self.deciding(uri)?.0.trustlevel
    }

    #[inline(always)]
    fn deciding(&self, uri: &str) -> Option<&(Permission, Grant)> {
        let found = |place: usize| &self.permissions[place];
        let plain = self.plain.longest_prefix(uri).map(found);
        let plain = plain.filter(|(permission, _)| {
            permission.match_policy == MatchPolicy::Prefix || permission.uri == uri
        });
        let is_exact =
            plain.is_some_and(|(permission, _)| permission.match_policy == MatchPolicy::Exact);
        let wildcard = (!is_exact)
            .then(|| self.wildcards.longest_prefix(uri).map(found))
            .flatten()
            .filter(|(permission, _)| matches(&permission.uri, uri));
        wildcard.or(plain)
    }
}

/// Whether a wildcard matches a URI, component by component.
fn matches(wildcard: &str, uri: &str) -> bool {
    let fits = |(named, came): (&str, &str)| match named {
        "" => !came.is_empty(),
        _ => named == came,
    };
    wildcard.split('.').count() == uri.split('.').count()
        && wildcard.split('.').zip(uri.split('.')).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Allow;

    /// Checks which of the permissions decides about each URI.
    fn check(permissions: &[(&str, MatchPolicy)], cases: &[(&str, Option<usize>)]) {
        let permissions: Vec<_> = permissions
            .iter()
            .map(|(uri, match_policy)| Permission {
                uri: (*uri).to_owned(),
                match_policy: *match_policy,
                ..Permission::default()
            })
            .collect();
        for (uri, expected) in cases {
            // Let each permission in turn be the only one that allows something.
            let deciding = (0..permissions.len()).find(|place| {
                let mut marked = permissions.clone();
                marked[*place].allow = Allow {
                    call: true,
                    ..Allow::default()
                };
                let order = CrossbarOrder::new(&marked, &mut Random::new(1));
                order.grant(uri).is_some_and(|grant| grant.allow.call)
            });
            assert_eq!(deciding, *expected, "{uri}");
        }
    }

    #[test]
    fn the_longest_text_decides() {
        use MatchPolicy::{Exact, Prefix};
        check(
            &[("com.", Prefix), ("com.a", Exact), ("", Prefix)],
            &[
                ("com.a", Some(1)),
                // The exact one hides the prefix.
                ("com.a.b", None),
                ("com.ab", None),
                ("com.b", Some(0)),
                ("org", Some(2)),
            ],
        );
        check(
            &[("com.a", Exact), ("com.a", Prefix)],
            &[("com.a", Some(1)), ("com.a.b", Some(1))],
        );
        check(&[("", Exact)], &[("com.a", None)]);
    }

    #[test]
    fn a_wildcard_goes_before_a_prefix() {
        use MatchPolicy::{Exact, Prefix, Wildcard};
        check(
            &[
                ("com.", Prefix),
                ("com..x", Wildcard),
                ("com.a.x", Exact),
                ("com.a..y", Wildcard),
            ],
            &[
                ("com.b.x", Some(1)),
                ("com.a.x", Some(2)),
                // Of the wildcards only the one with the longest beginning is tried.
                ("com.a.x.y", Some(3)),
                ("com.a.z.y", Some(3)),
                ("com.b.z", Some(0)),
                ("com.b.x.y", Some(0)),
            ],
        );
        // A wildcard permission applies where an exact permission hides a prefix.
        check(
            &[("com", Prefix), ("com.a", Exact), ("com..c", Wildcard)],
            &[
                ("com.a.b", None),
                ("com.a.c", Some(2)),
                ("com.b.c", Some(2)),
            ],
        );
        check(
            &[("..x", Wildcard), ("com.", Wildcard), (".x", Wildcard)],
            &[
                ("a.b.x", None),
                ("com.a", None),
                ("a.x", None),
                (".x", Some(2)),
            ],
        );
        // The beginning is a beginning of the text, not of components.
        check(
            &[("com..x", Wildcard), ("com", Prefix)],
            &[("company.b.x", Some(1))],
        );
    }
}
