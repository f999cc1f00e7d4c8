//! The trail of a carried message: `forward_for` in its options, as in Crossbar.io.
//!
//! Each link appends the publisher or caller, as far as disclosed, and its own session. A link recognizes its own
//! session in messages that it carried before; the length of the list limits the number of links.

use crosstie_wamp::{Dict, Disclosed, FORWARD_FOR, PublicationId, TRUSTLEVEL, Value};

use crate::sides::{End, Settings};

/// The trail of a received message.
pub(crate) fn trail(passthru: Option<&Dict>) -> &[Value] {
    let found = passthru
        .into_iter()
        .flatten()
        .find(|(key, _)| key == FORWARD_FOR);
    match found {
        Some((_, Value::List(trail))) => trail,
        _ => &[],
    }
}

/// Whether a link with these sessions has carried it before, or too many links have.
pub(crate) fn is_returned(trail: &[Value], ends: [&End; 2], settings: &Settings) -> bool {
    let is_own = |value: &Value| ends.iter().any(|end| session(value) == Some(end.session.0));
    trail.len() >= settings.forward_for_max || trail.iter().any(is_own)
}

fn session(value: &Value) -> Option<u64> {
    let Value::Dict(behind) = value else {
        return None;
    };
    behind.iter().find_map(|(key, value)| match value {
        Value::Integer(session) if key == "session" => u64::try_from(*session).ok(),
        _ => None,
    })
}

/// The options for the other side: the received ones, with one more link in the trail.
pub(crate) fn extended(
    passthru: Option<Box<Dict>>,
    from: Option<&Disclosed<'_>>,
    own: &End,
    publication: Option<PublicationId>,
) -> Box<Dict> {
    let mut passthru = passthru.unwrap_or_default();
    // The other router assigns the trust level, as it knows the link.
    passthru.retain(|(key, _)| key != TRUSTLEVEL);
    let at = passthru.iter().position(|(key, _)| key == FORWARD_FOR);
    let mut trail = match at.map(|at| passthru.swap_remove(at).1) {
        Some(Value::List(trail)) => trail,
        _ => Vec::new(),
    };
    let first = trail.len();
    if let Some(from) = from {
        trail.push(behind(from.session.0, &from.authid, &from.authrole));
    }
    trail.push(behind(own.session.0, &own.authid, &own.authrole));
    // The first link adds the publication id, so that a realm at the end of several links accepts the event once.
    if first == 0
        && let (Some(publication), Some(Value::Dict(origin))) = (publication, trail.first_mut())
    {
        origin.push(("publication".to_owned(), Value::from(publication.0)));
    }
    passthru.push((FORWARD_FOR.to_owned(), Value::List(trail)));
    passthru
}

fn behind(session: u64, authid: &str, authrole: &str) -> Value {
    Value::Dict(vec![
        ("session".to_owned(), Value::from(session)),
        ("authid".to_owned(), Value::from(authid)),
        ("authrole".to_owned(), Value::from(authrole)),
    ])
}
