//! The trust levels of a role's permissions, beside its grants. Few roles have trust levels, and the table that each
//! message looks up stays small.

use super::permission::Permission;
use crate::pattern::PatternMap;
use crate::random::Random;

/// Every permission of the role, so that the same permission decides here as for the grant.
#[derive(Debug)]
pub(super) struct Levels(PatternMap<Option<u16>>);

impl Levels {
    /// `None` if no permission has a trust level.
    pub(super) fn of_permissions(
        permissions: &[Permission],
        random: &mut Random,
    ) -> Option<Box<Self>> {
        if permissions.iter().all(|given| given.trustlevel.is_none()) {
            return None;
        }
        let mut levels = PatternMap::new(random.hash_keys());
        for permission in permissions {
            let uri = permission.uri.as_str().into();
            levels.insert(permission.match_policy, uri, permission.trustlevel);
        }
        Some(Box::new(Self(levels)))
    }

    /// The level of the permission that decides about a URI.
    pub(super) fn of(&self, uri: &str) -> Option<u16> {
        let exact = self.0.exact(uri);
        let found = exact.or_else(|| self.0.best_wildcard(uri, &mut 0));
        found.or_else(|| self.0.longest_prefix(uri)).flatten()
    }
}
