//! What sessions of one realm subscribe to, or register, as its meta API tells.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crosstie_wamp::{InvocationPolicy, MatchPolicy, SessionId};

/// A topic or a procedure, by pattern or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) match_policy: MatchPolicy,
    pub(crate) uri: Arc<str>,
}

/// The realms through which a mirror has come, the first one first. Nothing for what a session holds itself.
pub(crate) type Path = Arc<[String]>;

/// One subscription or registration of the realm.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Until the realm has said so.
    pub(crate) key: Option<Key>,
    /// Of registrations.
    pub(crate) invoke: InvocationPolicy,
    pub(crate) members: BTreeSet<SessionId>,
    /// There are more members than are kept account of: it is held until it is deleted.
    pub(crate) is_crowded: bool,
}

/// All of one kind.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    entries: HashMap<u64, Entry>,
    by_key: HashMap<Key, u64>,
    /// What links say that they mirror there.
    announced: HashMap<SessionId, HashMap<Key, Path>>,
    announced_count: usize,
    members_count: usize,
}

/// Members of all entries of a kind that are kept account of.
const MEMBERS_MAX: usize = 1_000_000;

impl Interests {
    /// The entry of that id, which is made where there is none and room is left.
    pub(crate) fn entry(&mut self, id: u64, entries_max: usize) -> Option<(&mut Entry, bool)> {
        let is_new = !self.entries.contains_key(&id);
        if is_new && self.entries.len() >= entries_max {
            return None;
        }
        Some((self.entries.entry(id).or_default(), is_new))
    }

    /// Notes what an entry is; whether that was not known.
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

    /// Sets who holds an entry, now that the realm has said so.
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

    /// A session holds an entry no more; the entry's key, where it is known.
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

    /// An entry is gone; its key, where it was known.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Key> {
        let entry = self.entries.remove(&id)?;
        self.members_count -= entry.members.len();
        let key = entry.key?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Notes that a link mirrors something there, or does no more.
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

    /// Through which realms a session holds something, where that is a link which said so.
    pub(crate) fn path(&self, session: SessionId, key: &Key) -> Option<&Path> {
        self.announced.get(&session)?.get(key)
    }
}
