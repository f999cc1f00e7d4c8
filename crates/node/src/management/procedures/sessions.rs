//! Procedures of router workers: the WAMP sessions in their realms, listed in parts, and closed.

use crosstie_config::Json;
use crosstie_router::SessionStatus;
use serde_json::json;
use tracing::info;

use super::amqp::PART_MAX;
use super::router::{no_such_realm, router};
use super::{Procedure, date, now};
use crate::management::errors;
use crate::management::request::{Answer, Call};
use crate::node::Node;

pub(super) static PROCEDURES: [Procedure; 2] = [
    now("crossbar.worker..get_router_sessions", sessions),
    now("crossbar.worker..close_router_session", close_session),
];

fn sessions(node: &mut Node, call: &Call) -> Answer {
    let router = router(node, call)?;
    let realm: Option<String> = call.optional(0, "realm")?;
    let offset: Option<usize> = call.optional(1, "offset")?;
    let limit: Option<usize> = call.optional(2, "limit")?;
    // By its id, or by its name.
    let realm = match &realm {
        None => None,
        Some(id) => {
            let mut realms = router.realms.iter();
            let found = realms.find(|realm| realm.id == *id || realm.name == *id);
            Some(found.ok_or_else(|| no_such_realm(id))?.name.as_str())
        }
    };
    let limit = limit.unwrap_or(PART_MAX).min(PART_MAX);
    let sessions = router.router.sessions(realm, offset.unwrap_or(0), limit);
    Ok(sessions.iter().map(about_session).collect())
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
