//! Procedures of router workers: the sessions, subscriptions and registrations in their WAMP realms, listed in parts; and
//! the end of a session.

use crosstie_config::Json;
use crosstie_router::{EntryKind, EntryStatus, Rows, SessionCounters, SessionStatus};
use serde_json::json;
use tracing::info;

use super::amqp::PART_MAX;
use super::router::{no_such_realm, router};
use super::{Procedure, date, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 6] = [
    now("crossbar.worker..get_router_sessions", sessions),
    now("crossbar.worker..get_router_sessions_by_id", sessions_by_id),
    now("crossbar.worker..get_router_session_counters", counters),
    now("crossbar.worker..get_router_subscriptions", subscriptions),
    now("crossbar.worker..get_router_registrations", registrations),
    now("crossbar.worker..close_router_session", close_session),
];

fn sessions(node: &mut Node, call: &Call) -> Answer {
    let (router, part) = (router(node, call)?, Part::of(node, call)?);
    let sessions = router.router.sessions(&part.rows());
    Ok(sessions.iter().map(about_session).collect())
}

fn sessions_by_id(node: &mut Node, call: &Call) -> Answer {
    let ids: Vec<u64> = call.required(0, "sessions")?;
    let router = router(node, call)?;
    let sessions = router.router.sessions_of(&ids[..ids.len().min(PART_MAX)]);
    Ok(sessions.iter().map(about_session).collect())
}

/// Sessions of a part: each takes six numbers only.
const COUNTERS_MAX: usize = 50_000;

fn counters(node: &mut Node, call: &Call) -> Answer {
    let (router, part) = (router(node, call)?, Part::of(node, call)?);
    let limit: Option<usize> = call.optional(2, "limit")?;
    let limit = limit.unwrap_or(COUNTERS_MAX).min(COUNTERS_MAX);
    let rows = Rows {
        limit,
        ..part.rows()
    };
    let sessions = router.router.session_counters(&rows);
    let column = |of: fn(&SessionCounters) -> u64| sessions.iter().map(of).collect::<Vec<_>>();
    Ok(json!({
        "session": column(|session| session.id),
        "requests": column(|session| session.requests),
        "invocations": column(|session| session.invocations),
        "calls": column(|session| session.calls as u64),
        "queued_bytes": column(|session| session.queued_bytes as u64),
        "busy_us": column(|session| session.busy_us.into()),
    }))
}

fn subscriptions(node: &mut Node, call: &Call) -> Answer {
    entries(node, call, EntryKind::Subscriptions, "subscribers")
}

fn registrations(node: &mut Node, call: &Call) -> Answer {
    entries(node, call, EntryKind::Registrations, "callees")
}

fn entries(node: &Node, call: &Call, kind: EntryKind, members: &str) -> Answer {
    let (router, part) = (router(node, call)?, Part::of(node, call)?);
    let entries = router.router.entries(kind, &part.rows());
    let about = |entry: &EntryStatus| {
        json!({
            "id": entry.id,
            "realm": entry.realm,
            "uri": entry.uri,
            "match": entry.match_policy.name(),
            "invoke": entry.invoke,
            members: entry.members,
            "since": date(entry.since),
        })
    };
    Ok(entries.iter().map(about).collect())
}

/// The part of a list that a call requests.
struct Part<'a> {
    /// The only realm, by its name.
    realm: Option<&'a str>,
    offset: usize,
    limit: usize,
    /// A part of a text of each row; empty for all rows.
    filter: String,
}

impl<'a> Part<'a> {
    fn of(node: &'a Node, call: &Call) -> Result<Self, Refusal> {
        let realm: Option<String> = call.optional(0, "realm")?;
        let offset: Option<usize> = call.optional(1, "offset")?;
        let limit: Option<usize> = call.optional(2, "limit")?;
        let filter: Option<String> = call.optional(3, "filter")?;
        // By its id, or by its name.
        let realm = match &realm {
            None => None,
            Some(id) => {
                let mut realms = router(node, call)?.realms.iter();
                let found = realms.find(|realm| realm.id == *id || realm.name == *id);
                Some(found.ok_or_else(|| no_such_realm(id))?.name.as_str())
            }
        };
        Ok(Self {
            realm,
            offset: offset.unwrap_or(0),
            limit: limit.unwrap_or(PART_MAX).min(PART_MAX),
            filter: filter.unwrap_or_default(),
        })
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            realm: self.realm,
            text: &self.filter,
            offset: self.offset,
            limit: self.limit,
        }
    }
}

fn close_session(node: &mut Node, call: &Call) -> Answer {
    let session: u64 = call.required(0, "session")?;
    let reason: Option<String> = call.optional(1, "reason")?;
    let reason = reason.unwrap_or_else(|| "Closed via management".to_owned());
    let closed = router(node, call)?.router.close_session(session, &reason);
    closed.map_err(|error| errors::no_such_object(&error.to_string()))?;
    info!("Router '{}': session {session} closed", call.worker);
    Ok(json!({"session": session}))
}

fn about_session(session: &SessionStatus) -> Json {
    json!({
        "session": session.id,
        "realm": session.realm,
        "authid": session.authid,
        "authrole": session.authrole,
        "authmethod": session.authmethod,
        "peer": session.peer,
        "transport": session.framing,
        "serializer": session.serializer,
        "subscriptions": session.subscriptions,
        "registrations": session.registrations,
        "calls": session.calls,
        "since": date(session.since),
    })
}
