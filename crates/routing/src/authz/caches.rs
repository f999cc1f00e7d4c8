//! The decision caches of a realm: one for each role, or one for all roles with the same authorizer.

use std::sync::Arc;

use slab::Slab;

use super::cache::Cache;
use super::question::{Asker, CacheOptions, CacheScope, Subject};
use super::verdict::Decision;
use crate::Time;
use crate::random::Random;

/// The caches of a realm.
#[derive(Debug, Default)]
pub(super) struct Caches {
    caches: Slab<Kept>,
    /// Sum over all caches.
    bytes: usize,
    /// Cache hits.
    hits: u64,
}

/// Counts of cached authorizer decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    pub count: usize,
    pub bytes: usize,
    /// Cache hits since the realm was started.
    pub hits: u64,
}

/// A cache, by its place among those of the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachePlace(usize);

#[derive(Debug)]
struct Kept {
    cache: Cache,
    /// The authorizer, if all its roles share the cache.
    shared_by: Option<Arc<str>>,
    /// Number of roles that use it.
    roles: usize,
}

impl Caches {
    /// Adds a role; returns its cache, which it may share.
    pub(super) fn begin(
        &mut self,
        procedure: &Arc<str>,
        options: CacheOptions,
        random: &mut Random,
    ) -> CachePlace {
        let shared_by = (options.scope == CacheScope::Uri).then_some(procedure);
        let mut caches = self.caches.iter_mut();
        let known =
            caches.find(|(_, kept)| shared_by.is_some() && kept.shared_by.as_ref() == shared_by);
        if let Some((place, kept)) = known {
            kept.cache.widen(options);
            kept.roles += 1;
            return CachePlace(place);
        }
        CachePlace(self.caches.insert(Kept {
            cache: Cache::new(options, random),
            shared_by: shared_by.cloned(),
            roles: 1,
        }))
    }

    /// Removes a role that used that cache.
    pub(super) fn end(&mut self, place: CachePlace) {
        let kept = &mut self.caches[place.0];
        kept.roles -= 1;
        if kept.roles == 0 {
            self.bytes -= kept.cache.bytes();
            self.caches.remove(place.0);
        }
    }

    /// Looks up a decision.
    pub(super) fn find(
        &mut self,
        place: CachePlace,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Option<Decision> {
        let found = self.change(place, |cache| cache.find(now, asker, subject));
        self.hits += u64::from(found.is_some());
        found
    }

    /// The same, for a second look-up about the same message.
    pub(super) fn peek(
        &self,
        place: CachePlace,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Option<Decision> {
        self.caches[place.0].cache.peek(now, asker, subject)
    }

    /// Changes a cache, and keeps the sum of bytes.
    pub(super) fn change<R>(
        &mut self,
        place: CachePlace,
        change: impl FnOnce(&mut Cache) -> R,
    ) -> R {
        let cache = &mut self.caches[place.0].cache;
        let before = cache.bytes();
        let outcome = change(cache);
        self.bytes = self.bytes - before + cache.bytes();
        outcome
    }

    pub(super) fn epoch(&self, place: CachePlace) -> u64 {
        self.caches[place.0].cache.epoch
    }

    /// Number of decisions in a cache.
    pub(super) fn len(&self, place: CachePlace) -> usize {
        self.caches[place.0].cache.len()
    }

    /// Approximate bytes of all decisions.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn decisions(&self) -> Decisions {
        Decisions {
            count: self.caches.iter().map(|(_, kept)| kept.cache.len()).sum(),
            bytes: self.bytes,
            hits: self.hits,
        }
    }

    /// Asserts that each cache is consistent and has the right number of roles. Walks everything.
    pub(super) fn check_invariants(&self, roles: &[CachePlace]) {
        for (place, kept) in &self.caches {
            kept.cache.check_invariants();
            let own = roles.iter().filter(|role| role.0 == place);
            assert_eq!(own.count(), kept.roles);
        }
        let bytes: usize = self.caches.iter().map(|(_, kept)| kept.cache.bytes()).sum();
        assert_eq!(bytes, self.bytes);
    }
}
