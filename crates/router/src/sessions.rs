//! The sessions, subscriptions and registrations of a router for operators: listed in parts; sessions are also closed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_realms::realm::SharedRealm;
use crosstie_realms::seen::{EntryKind, Seen};
use crosstie_wamp::{MatchPolicy, Serializer, SessionId};

use crate::registry::Registry;
use crate::router::Router;

/// A session in a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its id for clients.
    pub id: u64,
    pub realm: String,
    pub authid: String,
    pub authrole: String,
    pub authmethod: String,
    /// `tcp:ADDRESS:PORT`, or `unix:pid=PID`.
    pub peer: String,
    /// `websocket` or `rawsocket`.
    pub framing: &'static str,
    pub serializer: &'static str,
    pub subscriptions: usize,
    pub registrations: usize,
    /// Number of calls that it waits for.
    pub calls: usize,
    pub since: SystemTime,
}

/// The counters of a session. The difference of two readings is a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCounters {
    pub id: u64,
    /// Number of requests that it sent.
    pub requests: u64,
    /// Number of invocations that it was sent.
    pub invocations: u64,
    /// Number of calls that it waits for.
    pub calls: usize,
    /// Output that waits for its client.
    pub queued_bytes: usize,
    /// Time for which its input held threads, in microseconds, modulo 2^32. Of short turns one in 61 counts, for all.
    pub busy_us: u32,
}

/// A subscription or a registration in a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStatus {
    /// Its id for clients.
    pub id: u64,
    pub realm: String,
    pub uri: String,
    pub match_policy: MatchPolicy,
    /// The invocation policy, of registrations.
    pub invoke: Option<&'static str>,
    /// Number of sessions of this node that take part in it.
    pub members: usize,
    pub since: SystemTime,
}

/// Why a session was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchSession {
    pub id: u64,
}

impl std::fmt::Display for NoSuchSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no session {}", self.id)
    }
}

impl std::error::Error for NoSuchSession {}

/// The rows of a list that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The only realm, by its name.
    pub realm: Option<&'a str>,
    /// What each row contains: a session its id, address, or a part of its identity; an entry its URI.
    pub text: &'a str,
    pub offset: usize,
    pub limit: usize,
}

impl Rows<'_> {
    /// Takes rows realm by realm. `take` is told how many to skip, and how many to take.
    fn of<T>(
        &self,
        state: &Registry,
        take: impl Fn(&SharedRealm, &mut usize, usize) -> Vec<T>,
    ) -> Vec<T> {
        let mut skip = self.offset;
        let mut found = Vec::new();
        for shared in state.realms.realms() {
            if self.realm.is_some_and(|name| name != shared.name()) {
                continue;
            }
            found.extend(take(&shared, &mut skip, self.limit - found.len()));
            if found.len() == self.limit {
                break;
            }
        }
        found
    }
}

impl Router {
    /// The sessions of one realm or of all, realm by realm. No lock is held longer than a few hundred sessions take.
    pub fn sessions(&self, rows: &Rows<'_>) -> Vec<SessionStatus> {
        of_router(&self.state, rows)
    }

    /// The sessions with these ids that are there.
    pub fn sessions_of(&self, ids: &[u64]) -> Vec<SessionStatus> {
        let realms = self.state.realms.realms();
        let find = |id: &u64| {
            let mut realms = realms.iter();
            realms.find_map(|realm| Some(status(realm, realm.session(SessionId(*id))?)))
        };
        ids.iter().filter_map(find).collect()
    }

    /// The counters of sessions.
    pub fn session_counters(&self, rows: &Rows<'_>) -> Vec<SessionCounters> {
        rows.of(&self.state, |shared, skip, limit| {
            let seen = shared.sessions(rows.text, skip, limit, |session| {
                let counters = SessionCounters {
                    id: session.id.0,
                    requests: session.requests,
                    invocations: session.invocations,
                    calls: session.calls,
                    queued_bytes: 0,
                    busy_us: 0,
                };
                (Arc::clone(&session.handle.connection), counters)
            });
            // The lock of a connection is not taken under that of its realm.
            let counters = seen
                .into_iter()
                .map(|(connection, counters)| SessionCounters {
                    queued_bytes: connection.queued_bytes(),
                    busy_us: connection.busy_us(),
                    ..counters
                });
            counters.collect()
        })
    }

    /// Subscriptions or registrations.
    pub fn entries(&self, kind: EntryKind, rows: &Rows<'_>) -> Vec<EntryStatus> {
        rows.of(&self.state, |shared, skip, limit| {
            let seen = shared.entries(kind, rows.text, skip, limit).into_iter();
            let entries = seen.map(|seen| EntryStatus {
                id: seen.id,
                realm: shared.name().to_owned(),
                uri: seen.uri,
                match_policy: seen.match_policy,
                invoke: seen.invoke,
                members: seen.members,
                since: since(shared.age(seen.created)),
            });
            entries.collect()
        })
    }

    /// Ends a session: its client is sent GOODBYE `wamp.close.killed`, and may open another one.
    pub fn close_session(&self, id: u64, reason: &str) -> Result<(), NoSuchSession> {
        let (state, reason) = (Arc::clone(&self.state), reason.to_owned());
        let closed = self.end_sessions(false, move || {
            let mut realms = state.realms.realms().into_iter();
            let ended = realms.find_map(|realm| realm.end_session(SessionId(id), &reason));
            ended.map(|peer| vec![peer])
        });
        match closed {
            true => Ok(()),
            false => Err(NoSuchSession { id }),
        }
    }
}

/// The same for a router that the pages show.
pub(crate) fn of_router(state: &Registry, rows: &Rows<'_>) -> Vec<SessionStatus> {
    rows.of(state, |shared, skip, limit| {
        let seen = shared.sessions(rows.text, skip, limit, Seen::of);
        seen.into_iter().map(|seen| status(shared, seen)).collect()
    })
}

fn status(realm: &SharedRealm, seen: Seen) -> SessionStatus {
    let age = realm.age(seen.joined);
    SessionStatus {
        id: seen.id.0,
        realm: realm.name().to_owned(),
        authid: seen.identity.authid.to_string(),
        authrole: seen.identity.authrole.to_string(),
        authmethod: seen.identity.authmethod.to_string(),
        peer: seen.peer.connection.peer().to_string(),
        framing: seen.peer.wire.framing.name(),
        serializer: match seen.peer.wire.serializer {
            Serializer::Json => "json",
            Serializer::MsgPack => "msgpack",
            Serializer::Cbor => "cbor",
        },
        subscriptions: seen.subscriptions,
        registrations: seen.registrations,
        calls: seen.calls,
        since: since(age),
    }
}

fn since(age: Duration) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(age).unwrap_or(now)
}
