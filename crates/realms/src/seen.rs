//! Sessions, subscriptions and registrations for operators.

use crosstie_routing::{EntryView, Identity, SessionView, Time};
use crosstie_wamp::{MatchPolicy, SessionId};

use crate::peer::Peer;
use crate::realm::SharedRealm;

/// Maximum number of entries of a table that are visited under one lock.
const PLACES_MAX: usize = 256;

/// A session's details, copied under its realm's lock and formatted outside it.
pub struct Seen {
    pub peer: Peer,
    pub id: SessionId,
    pub identity: Identity,
    pub joined: Time,
    pub subscriptions: usize,
    pub registrations: usize,
    pub calls: usize,
}

impl Seen {
    pub fn of(session: &SessionView<'_, Peer>) -> Self {
        Self {
            peer: session.handle.clone(),
            id: session.id,
            identity: session.identity.clone(),
            joined: session.joined,
            subscriptions: session.subscriptions,
            registrations: session.registrations,
            calls: session.calls,
        }
    }

    /// Whether a session's id, address, or a part of its identity contains the text.
    fn contains(session: &SessionView<'_, Peer>, text: &str) -> bool {
        let who = session.identity;
        text.is_empty()
            || who.authid.contains(text)
            || who.authrole.contains(text)
            || who.authmethod.contains(text)
            || session.id.0.to_string().contains(text)
            || session.handle.connection.peer().to_string().contains(text)
    }
}

/// Subscriptions or registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Subscriptions,
    Registrations,
}

/// A subscription or a registration, copied under its realm's lock.
pub struct SeenEntry {
    pub id: u64,
    pub uri: String,
    pub match_policy: MatchPolicy,
    /// The invocation policy, of registrations.
    pub invoke: Option<&'static str>,
    pub created: Time,
    /// Number of sessions of this node that take part in it.
    pub members: usize,
}

impl SharedRealm {
    /// The session with that id.
    pub fn session(&self, id: SessionId) -> Option<Seen> {
        self.realm.lock().session(id).as_ref().map(Seen::of)
    }

    /// At most `limit` sessions that contain a text, after skipping `skip` of them, from which skipped ones are
    /// subtracted; of each what `see` takes.
    pub fn sessions<T>(
        &self,
        text: &str,
        skip: &mut usize,
        limit: usize,
        see: impl Fn(&SessionView<'_, Peer>) -> T,
    ) -> Vec<T> {
        let mut seen = Vec::new();
        let mut first = 0;
        loop {
            let realm = self.realm.lock();
            let sessions = realm.sessions_at(first..first + PLACES_MAX);
            for session in sessions.filter(|session| Seen::contains(session, text)) {
                if *skip > 0 {
                    *skip -= 1;
                    continue;
                }
                if seen.len() == limit {
                    return seen;
                }
                seen.push(see(&session));
            }
            first += PLACES_MAX;
            if first >= realm.places() {
                return seen;
            }
        }
    }

    /// At most `limit` entries whose URI contains a text, after skipping `skip` of them, from which skipped ones are
    /// subtracted. The lock is released after every few hundred entries.
    pub fn entries(
        &self,
        kind: EntryKind,
        text: &str,
        skip: &mut usize,
        limit: usize,
    ) -> Vec<SeenEntry> {
        let mut seen = Vec::new();
        let mut first = 0;
        loop {
            let realm = self.realm.lock();
            let (part, places) = (first..first + PLACES_MAX, &mut seen);
            let end = match kind {
                EntryKind::Subscriptions => {
                    take(realm.subscriptions_at(part), text, skip, limit, places);
                    realm.subscription_places()
                }
                EntryKind::Registrations => {
                    take(realm.registrations_at(part), text, skip, limit, places);
                    realm.registration_places()
                }
            };
            first += PLACES_MAX;
            if first >= end || seen.len() == limit {
                return seen;
            }
        }
    }
}

fn take<'r>(
    entries: impl Iterator<Item = EntryView<'r>>,
    text: &str,
    skip: &mut usize,
    limit: usize,
    seen: &mut Vec<SeenEntry>,
) {
    for entry in entries.filter(|entry| entry.uri.contains(text)) {
        if *skip > 0 {
            *skip -= 1;
        } else if seen.len() < limit {
            seen.push(SeenEntry {
                id: entry.id,
                uri: entry.uri.to_owned(),
                match_policy: entry.match_policy,
                invoke: entry.invoke,
                created: entry.created,
                members: entry.members,
            });
        }
    }
}
