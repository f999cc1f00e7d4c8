//! A cache of authorizer decisions; evicts the least recently used.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_collections::GrowingMap;
use crosstie_wamp::MatchPolicy;
use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::permission::Action;
use super::question::{Asker, CacheOptions, CacheScope, Subject};
use super::verdict::Decision;
use crate::Time;
use crate::identity::SessionKey;
use crate::random::Random;

/// The cached decisions of an authorizer, for one role or for several.
#[derive(Debug)]
pub(super) struct Cache {
    options: CacheOptions,
    entries: Slab<Entry>,
    /// By the hash of the entry's subject. If two entries collide, the newer one stays.
    by_hash: GrowingMap<u64, u32, FxBuildHasher>,
    keys: RandomState,
    newest: u32,
    oldest: u32,
    bytes: usize,
    /// Number of invalidations by subject so far: a question asked before one is not cached.
    pub(super) epoch: u64,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    scope: Scope<Arc<str>>,
    action: Action,
    match_policy: MatchPolicy,
    uri: Box<str>,
    decision: Decision,
    expires: Time,
    newer: u32,
    older: u32,
}

/// The scope of a cached decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope<T> {
    /// All sessions that this cache serves.
    All,
    Authid(T),
    Session(SessionKey),
}

const NONE: u32 = u32::MAX;

/// Approximate memory of an entry beside its URI, with its place in the map.
const ENTRY_BYTES: usize = size_of::<Entry>() + 32;

impl Cache {
    pub(super) fn new(options: CacheOptions, random: &mut Random) -> Self {
        Self {
            options,
            entries: Slab::new(),
            by_hash: GrowingMap::with_hasher(FxBuildHasher),
            keys: random.hash_keys(),
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            epoch: 0,
        }
    }

    /// Looks up a decision, and marks it as the most recently used.
    pub(super) fn find(
        &mut self,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Option<Decision> {
        if self.entries.is_empty() {
            return None;
        }
        let scope = self.scope_for(asker);
        let place = *self.by_hash.get(&self.hash(&scope, subject))?;
        let entry = &self.entries[place as usize];
        if !entry.is_about(&scope, subject) {
            return None;
        }
        if entry.expires <= now {
            self.remove(place);
            return None;
        }
        let decision = entry.decision;
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        Some(decision)
    }

    /// The same, for a second look-up about the same message.
    pub(super) fn peek(
        &self,
        now: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Option<Decision> {
        let scope = self.scope_for(asker);
        let place = self.by_hash.get(&self.hash(&scope, subject))?;
        let entry = &self.entries[*place as usize];
        let is_it = entry.is_about(&scope, subject) && entry.expires > now;
        is_it.then_some(entry.decision)
    }

    /// Caches a decision in place of the one before. If there is no room, evicts the least recently used ones.
    pub(super) fn keep(
        &mut self,
        expires: Time,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
        decision: Decision,
    ) {
        let scope = self.scope_for(asker);
        let hash = self.hash(&scope, subject);
        if let Some(place) = self.by_hash.get(&hash) {
            self.remove(*place);
        }
        let bytes = ENTRY_BYTES + subject.uri.len();
        if self.options.entries_max == 0 || bytes > self.options.bytes_max {
            return;
        }
        while self.entries.len() >= self.options.entries_max
            || self.bytes + bytes > self.options.bytes_max
        {
            self.remove(self.oldest);
        }
        let scope = match scope {
            Scope::All => Scope::All,
            Scope::Authid(_) => Scope::Authid(Arc::clone(&asker.identity.authid)),
            Scope::Session(key) => Scope::Session(key),
        };
        let place = self.entries.insert(Entry {
            hash,
            scope,
            action: subject.action,
            match_policy: subject.match_policy,
            uri: subject.uri.into(),
            decision,
            expires,
            newer: NONE,
            older: NONE,
        }) as u32;
        self.bytes += bytes;
        self.by_hash.insert(hash, place);
        self.link(place);
    }

    /// Invalidates the entries for a URI, for an authid, or all; returns how many. Decisions for a session are not
    /// attributed to its authid.
    pub(super) fn forget(&mut self, uri: Option<&str>, authid: Option<&str>) -> usize {
        self.epoch += 1;
        let is_meant = |entry: &Entry| {
            let of_authid = match (&entry.scope, authid) {
                (Scope::Authid(known), Some(authid)) => &**known == authid,
                // Their authid is not known any more.
                (Scope::All | Scope::Session(_), Some(_)) | (_, None) => true,
            };
            of_authid && uri.is_none_or(|uri| &*entry.uri == uri)
        };
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let meant: Vec<_> = meant.map(|(place, _)| place as u32).collect();
        meant.iter().for_each(|place| self.remove(*place));
        meant.len()
    }

    /// Enlarges the bounds to what another role allows.
    pub(super) fn widen(&mut self, options: CacheOptions) {
        let own = &mut self.options;
        own.entries_max = own.entries_max.max(options.entries_max);
        own.bytes_max = own.bytes_max.max(options.bytes_max);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Approximate bytes of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asserts that the list, the map and the table agree. Walks everything.
    pub(super) fn check_invariants(&self) {
        assert!(self.entries.len() <= self.options.entries_max);
        assert!(self.bytes <= self.options.bytes_max);
        assert_eq!(self.entries.len(), self.by_hash.len());
        let (mut place, mut newer, mut seen, mut bytes) = (self.newest, NONE, 0, 0);
        while place != NONE {
            let entry = &self.entries[place as usize];
            assert_eq!(entry.newer, newer);
            assert_eq!(self.by_hash.get(&entry.hash), Some(&place));
            bytes += ENTRY_BYTES + entry.uri.len();
            seen += 1;
            (newer, place) = (place, entry.older);
        }
        assert_eq!((newer, seen), (self.oldest, self.entries.len()));
        assert_eq!(bytes, self.bytes);
    }

    fn scope_for<'a>(&self, asker: &Asker<'a>) -> Scope<&'a str> {
        match self.options.scope {
            CacheScope::Uri | CacheScope::Role => Scope::All,
            CacheScope::Authid => Scope::Authid(&asker.identity.authid),
            CacheScope::Session => Scope::Session(asker.key),
        }
    }

    fn hash(&self, scope: &Scope<&str>, subject: &Subject<'_>) -> u64 {
        self.keys.hash_one((scope, subject))
    }

    fn remove(&mut self, place: u32) {
        self.unlink(place);
        let entry = self.entries.remove(place as usize);
        self.by_hash.remove(&entry.hash);
        self.bytes -= ENTRY_BYTES + entry.uri.len();
    }

    /// Inserts an entry at the newest end of the list.
    fn link(&mut self, place: u32) {
        let older = self.newest;
        let entry = &mut self.entries[place as usize];
        (entry.newer, entry.older) = (NONE, older);
        match older {
            NONE => self.oldest = place,
            older => self.entries[older as usize].newer = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

impl Entry {
    fn is_about(&self, scope: &Scope<&str>, subject: &Subject<'_>) -> bool {
        let same = match (&self.scope, scope) {
            (Scope::Authid(known), Scope::Authid(authid)) => **known == **authid,
            (Scope::Session(known), Scope::Session(key)) => known == key,
            (Scope::All, Scope::All) => true,
            _ => false,
        };
        same && self.action == subject.action
            && self.match_policy == subject.match_policy
            && *self.uri == *subject.uri
    }
}
