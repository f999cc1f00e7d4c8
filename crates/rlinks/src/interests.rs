//! Subscriptions and registrations of a realm's sessions, according to its meta API.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crosstie_wamp::{InvocationPolicy, MatchPolicy, SessionId};

/// A topic or a procedure, with its match policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) match_policy: MatchPolicy,
    pub(crate) uri: Arc<str>,
}

/// The realms that a mirror came through, in order. Empty for a session's own.
pub(crate) type Path = Arc<[String]>;

/// A subscription or registration of the realm.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// `None` until the realm has described it.
    pub(crate) key: Option<Key>,
    /// For registrations.
    pub(crate) invoke: InvocationPolicy,
    pub(crate) members: BTreeSet<SessionId>,
    /// It has too many members to be tracked: held until it is deleted.
    pub(crate) is_crowded: bool,
}

/// All entries of one kind.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    entries: HashMap<u64, Entry>,
    by_key: HashMap<Key, u64>,
    /// Mirrors that links have announced.
    announced: HashMap<SessionId, HashMap<Key, Path>>,
    announced_count: usize,
    members_count: usize,
}

/// Maximum number of members tracked over all entries of a kind.
const MEMBERS_MAX: usize = 1_000_000;

impl Interests {
    /// The entry of that id, created if room is left.
    pub(crate) fn entry(&mut self, id: u64, entries_max: usize) -> Option<(&mut Entry, bool)> {
        let is_new = !self.entries.contains_key(&id);
        if is_new && self.entries.len() >= entries_max {
            return None;
        }
        Some((self.entries.entry(id).or_default(), is_new))
    }

    /// Notes an entry's description. Returns whether it was unknown.
    pub(crate) fn describe(&mut self, id: u64, key: Key, invoke: InvocationPolicy) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        if entry.key.is_some() {
            return false;
        }
        entry.key = Some(key.clone());
        entry.invoke = invoke;
        self.by_key.insert(key, id);
        true
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub(crate) fn of_key(&self, key: &Key) -> Option<&Entry> {
        self.by_key.get(key).and_then(|id| self.entries.get(id))
    }

    /// Sets an entry's members from the realm's answer.
    pub(crate) fn set_members(&mut self, id: u64, members: impl Iterator<Item = SessionId>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        self.members_count -= entry.members.len();
        entry.members.clear();
        for member in members {
            if self.members_count >= MEMBERS_MAX {
                entry.is_crowded = true;
                break;
            }
            self.members_count += usize::from(entry.members.insert(member));
        }
    }

    pub(crate) fn enter(&mut self, id: u64, session: SessionId) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if self.members_count >= MEMBERS_MAX {
            entry.is_crowded = true;
            return;
        }
        self.members_count += usize::from(entry.members.insert(session));
    }

    /// Removes a session from an entry. Returns the entry's key if known.
    pub(crate) fn exit(&mut self, id: u64, session: SessionId) -> Option<Key> {
        let entry = self.entries.get_mut(&id)?;
        self.members_count -= usize::from(entry.members.remove(&session));
        let key = entry.key.clone()?;
        self.forget_announced(session, &key);
        Some(key)
    }

    pub(crate) fn crowd(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_crowded = true;
        }
    }

    /// Removes an entry. Returns its key if known.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Key> {
        let entry = self.entries.remove(&id)?;
        self.members_count -= entry.members.len();
        let key = entry.key?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Notes a link's announcement of a mirror, or of its end.
    pub(crate) fn announce(
        &mut self,
        session: SessionId,
        key: &Key,
        path: Option<Path>,
        announced_max: usize,
    ) {
        let Some(path) = path else {
            return self.forget_announced(session, key);
        };
        let is_known = self.path(session, key).is_some();
        if !is_known && self.announced_count >= announced_max {
            return;
        }
        let of_session = self.announced.entry(session).or_default();
        of_session.insert(key.clone(), path);
        self.announced_count += usize::from(!is_known);
    }

    fn forget_announced(&mut self, session: SessionId, key: &Key) {
        let Some(of_session) = self.announced.get_mut(&session) else {
            return;
        };
        self.announced_count -= usize::from(of_session.remove(key).is_some());
        if of_session.is_empty() {
            self.announced.remove(&session);
        }
    }

    /// The path of a link's mirror, if announced.
    pub(crate) fn path(&self, session: SessionId, key: &Key) -> Option<&Path> {
        self.announced.get(&session)?.get(key)
    }
}
