//! The stop of a router: waits for calls and clients, and logs them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_front::cause::Cause;
use crosstie_front::connections::Connections;
use crosstie_front::report::Escaped;
use crosstie_front::watch::Awaited;
use crosstie_realms::realm::SharedRealm;

use crate::registry::Registry;

/// Time after which the log names the clients that are waited for: most have answered by then.
const SAID_AFTER: Duration = Duration::from_secs(1);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);
pub(crate) const LOOK_AT_CLIENTS_AFTER: Duration = Duration::from_millis(2);
/// A client that has read nothing for this time, although bytes wait for it, will not answer.
const DEAF_AFTER_S: u32 = 2;
/// Time for clients to close a connection that the router has closed, and to read earlier output: their answers change
/// nothing. Unacknowledged AMQP messages are back in their queues. RabbitMQ does not wait for clients at all.
pub(crate) const CLOSED_WITHIN: Duration = Duration::from_secs(2);
const CALLS_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// Maximum number of clients named in the log.
const NAMED_MAX: usize = 10;

/// Waits until the calls that are open now are answered, of these connections' sessions or of all, or until
/// `shutdown_timeout` ends. The remaining ones end with an ERROR. Later calls are not waited for, so that a stop among
/// busy clients terminates. Needs a runtime with timers.
pub(crate) async fn drain(state: &Registry, realms: &[Arc<SharedRealm>], of: Option<&Connections>) {
    let calls = realms.iter().map(|realm| (realm, realm.open_calls(of)));
    let mut open: Vec<_> = calls.filter(|(_, calls)| !calls.is_empty()).collect();
    let begun = Instant::now();
    let timeout = calls_timeout(state);
    let mut is_said = false;
    while !open.is_empty() && begun.elapsed() < timeout {
        tokio::time::sleep(CALLS_AGAIN_AFTER).await;
        open.retain_mut(|(realm, calls)| {
            realm.forget_answered(calls);
            !calls.is_empty()
        });
        if !is_said && !open.is_empty() && begun.elapsed() > SAID_AFTER {
            is_said = true;
            let count: usize = open.iter().map(|(_, calls)| calls.len()).sum();
            tracing::info!(
                "Router '{}' waits for open calls, {} ms at most: {count} at present",
                state.id(),
                timeout.as_millis()
            );
        }
    }
    let mut ended = 0;
    for realm in realms {
        let rest = realm.open_calls(of);
        ended += rest.len();
        realm.end_open(rest);
    }
    if ended > 0 {
        tracing::info!(
            "Router '{}' has ended open calls with wamp.error.canceled: {ended}",
            state.id()
        );
    }
    crosstie_transport::uncork();
}

/// The time of open calls to be answered.
fn calls_timeout(state: &Registry) -> Duration {
    let timeout = state.bounds.shutdown_timeout;
    let haste = state.haste.get();
    haste.map_or(timeout, |haste| timeout.min(haste.calls))
}

/// The time of all clients together to close their connections after they were told to leave.
pub(crate) fn timeout(state: &Registry) -> Duration {
    let timeout = match state.realms.says_goodbye {
        true => state.bounds.shutdown_timeout,
        false => state.bounds.shutdown_timeout.min(CLOSED_WITHIN),
    };
    let haste = state.haste.get();
    haste.map_or(timeout, |haste| timeout.min(haste.clients))
}

/// Waits until all clients that were told to leave have gone, or the timeout ends.
pub(crate) fn await_all(state: &Registry) {
    let begun = Instant::now();
    let deadline = begun + timeout(state);
    let mut look_at = begun + SAID_AFTER;
    let mut is_said = false;
    let mut given_up = 0;
    while state.bounds.conversations() > 0 && Instant::now() < deadline {
        std::thread::sleep(LOOK_AT_CLIENTS_AFTER);
        if Instant::now() < look_at {
            continue;
        }
        look_at += LOOK_AGAIN_AFTER;
        let awaited = state.watch.awaited();
        if !is_said && !awaited.is_empty() {
            is_said = true;
            say(state, &awaited);
        }
        let is_closed_over = begun.elapsed() >= CLOSED_WITHIN;
        for one in &awaited {
            if one.connection.deaf_for_s() >= DEAF_AFTER_S || (is_closed_over && !one.is_session) {
                give_up(state, one, &mut given_up);
            }
        }
    }
    if state.haste.get().is_some() {
        // They were told to come back, and are not at fault.
        return;
    }
    for one in state.watch.awaited() {
        give_up(state, &one, &mut given_up);
    }
    if given_up > NAMED_MAX {
        tracing::info!("Not waiting for {} more", given_up - NAMED_MAX);
    }
}

fn say(state: &Registry, awaited: &[Awaited]) {
    let mut text = String::new();
    for one in awaited.iter().take(NAMED_MAX) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{}", who(state, one));
    }
    if awaited.len() > NAMED_MAX {
        let _ = write!(text, " and {} more", awaited.len() - NAMED_MAX);
    }
    tracing::info!(
        "Router '{}' waits for clients to close their connections, {} ms at most: {text}",
        state.id(),
        timeout(state).as_millis()
    );
}

fn give_up(state: &Registry, one: &Awaited, given_up: &mut usize) {
    if one.connection.is_closed() && !one.connection.is_finishing() {
        return;
    }
    *given_up += 1;
    if *given_up <= NAMED_MAX {
        say_why(state, one);
    }
    Cause::Stop.note(&one.connection);
    one.connection.close();
}

fn say_why(state: &Registry, one: &Awaited) {
    let why = match one.connection.deaf_for_s() {
        0 => "it did not answer",
        _ => "it does not read what it is sent",
    };
    tracing::info!("Not waiting for {}: {why}", who(state, one));
}

/// Describes a client as an operator knows it.
fn who(state: &Registry, one: &Awaited) -> String {
    let peer = one.connection.peer();
    let amqp = state
        .amqp()
        .and_then(|broker| broker.about(&one.connection));
    match amqp {
        Some(about) => format!(
            "AMQP client '{}' of user '{}' at {peer}",
            Escaped(&about.name),
            Escaped(&about.user)
        ),
        None if one.is_session => format!("the WAMP session at {peer}"),
        None => format!("the client at {peer}"),
    }
}
