//! All sessions, by key and by client identifier.

use ahash::RandomState;
use crosstie_collections::{PlaceMap, Slab};

use crate::keys::{OfSession, SessionKey};
use crate::session::Session;

#[derive(Debug)]
pub(crate) struct Clients<H> {
    sessions: Slab<OfSession, Session<H>>,
    by_id: PlaceMap,
    hasher: RandomState,
}

impl<H> Clients<H> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            sessions: Slab::new(),
            by_id: PlaceMap::default(),
            hasher,
        }
    }

    /// Number of sessions that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn places(&self) -> usize {
        self.sessions.places()
    }

    pub(crate) fn find_by_id(&self, client_id: &str) -> Option<SessionKey> {
        let hash = self.hasher.hash_one(client_id);
        let place = self.by_id.find(hash, |place| {
            let session = self.sessions.at(place);
            session.is_some_and(|session| &*session.client_id == client_id)
        })?;
        self.sessions.key_at(place)
    }

    /// Adds a session whose client identifier is new.
    pub(crate) fn insert(&mut self, session: Session<H>) -> SessionKey {
        let hash = self.hasher.hash_one(&*session.client_id);
        let key = self.sessions.insert(session);
        self.by_id.insert_new(hash, key.index());
        key
    }

    /// Adds a session that has ended, and whose client identifier may be another one's.
    pub(crate) fn insert_ended(&mut self, session: Session<H>) -> SessionKey {
        self.sessions.insert(session)
    }

    /// Frees the client identifier of a session that has ended.
    pub(crate) fn forget_id(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.find(key) {
            let hash = self.hasher.hash_one(&*session.client_id);
            self.by_id.remove(hash, key.index());
        }
    }

    /// Removes a session whose client identifier is free.
    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session<H>> {
        self.sessions.remove(key)
    }

    #[inline]
    pub(crate) fn find(&self, key: SessionKey) -> Option<&Session<H>> {
        self.sessions.find(key)
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, key: SessionKey) -> Option<&mut Session<H>> {
        self.sessions.find_mut(key)
    }

    /// The session at an index, as the subscribers of a filter name it.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&Session<H>> {
        self.sessions.at(index)
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Session<H>> {
        self.sessions.at_mut(index)
    }

    #[inline]
    pub(crate) fn key_at(&self, index: u32) -> Option<SessionKey> {
        self.sessions.key_at(index)
    }
}
