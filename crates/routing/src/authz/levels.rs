//! The trust levels that a role's permissions give, beside what they allow: few roles give some, and what is looked up for
//! each message is to stay small.

use super::permission::Permission;
use crate::pattern::PatternMap;
use crate::random::Random;

/// Every permission of the role, so that the one decides here that decides there.
#[derive(Debug)]
pub(super) struct Levels(PatternMap<Option<u16>>);

impl Levels {
    /// None where no permission gives one.
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

    /// That of the permission that decides about a URI.
    pub(super) fn of(&self, uri: &str) -> Option<u16> {
        let exact = self.0.exact(uri);
        let found = exact.or_else(|| self.0.best_wildcard(uri, &mut 0));
        found.or_else(|| self.0.longest_prefix(uri)).flatten()
    }
}
