//! The sessions of a router for operators: listed in parts, and closed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crosstie_realms::realm::SharedRealm;
use crosstie_realms::seen::Seen;
use crosstie_wamp::{Serializer, SessionId};

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

impl Router {
    /// At most `limit` sessions after the first `offset`, of one realm or of all, realm by realm. No lock is held
    /// longer than a few hundred sessions take.
    pub fn sessions(&self, realm: Option<&str>, offset: usize, limit: usize) -> Vec<SessionStatus> {
        of_router(&self.state, realm, offset, limit)
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
pub(crate) fn of_router(
    state: &Registry,
    realm: Option<&str>,
    offset: usize,
    limit: usize,
) -> Vec<SessionStatus> {
    let mut skip = offset;
    let mut found = Vec::new();
    for shared in state.realms.realms() {
        if realm.is_some_and(|name| name != shared.name()) {
            continue;
        }
        let seen = shared.sessions(&mut skip, limit - found.len());
        found.extend(seen.into_iter().map(|seen| status(&shared, seen)));
        if found.len() == limit {
            break;
        }
    }
    found
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
