//! The end of a router: who is waited for, how long, and what the log says of them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_transport::Connection;

use crate::report::Escaped;
use crate::router_state::RouterState;

/// After so long the log says who is waited for: most have answered by then.
const SAID_AFTER: Duration = Duration::from_secs(1);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// A client that has taken nothing for so long, while bytes wait for it, will not answer what it has not got.
const DEAF_AFTER_S: u32 = 2;
/// An AMQP client was told that its connection is closed, and what it had not acknowledged is back in its
/// queues: its answer changes nothing any more. RabbitMQ does not wait for it at all.
const AMQP_WITHIN: Duration = Duration::from_secs(2);
/// As many are named.
const NAMED_MAX: usize = 10;

/// Waits until everybody who was told goodbye has gone, or their time is over.
pub(crate) fn await_all(state: &RouterState) {
    let begun = Instant::now();
    let deadline = begun + state.shutdown_timeout;
    let mut look_at = begun + SAID_AFTER;
    let mut is_said = false;
    let mut given_up = 0;
    while state.conversations() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
        if Instant::now() < look_at {
            continue;
        }
        look_at += LOOK_AGAIN_AFTER;
        let awaited = state.watch.awaited();
        if !is_said && !awaited.is_empty() {
            is_said = true;
            say(state, &awaited);
        }
        let is_amqp_over = begun.elapsed() >= AMQP_WITHIN;
        for one in &awaited {
            if one.connection.deaf_for_s() >= DEAF_AFTER_S || (is_amqp_over && !one.is_session) {
                give_up(state, one, &mut given_up);
            }
        }
    }
    for one in state.watch.awaited() {
        give_up(state, &one, &mut given_up);
    }
    if given_up > NAMED_MAX {
        tracing::info!("Not waiting for {} more", given_up - NAMED_MAX);
    }
}

/// A connection whose peer may still answer.
pub(crate) struct Awaited {
    pub(crate) connection: Arc<Connection>,
    /// It has a session in a realm, which was told GOODBYE.
    pub(crate) is_session: bool,
}

fn say(state: &RouterState, awaited: &[Awaited]) {
    let mut text = String::new();
    for one in awaited.iter().take(NAMED_MAX) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{}", who(state, one));
    }
    if awaited.len() > NAMED_MAX {
        let _ = write!(text, " and {} more", awaited.len() - NAMED_MAX);
    }
    tracing::info!(
        "Router '{}' waits for the answer to its goodbye, {} ms at most: {text}",
        state.id,
        state.shutdown_timeout.as_millis()
    );
}

fn give_up(state: &RouterState, one: &Awaited, given_up: &mut usize) {
    if one.connection.is_closed() {
        return;
    }
    *given_up += 1;
    if *given_up <= NAMED_MAX {
        say_why(state, one);
    }
    one.connection.close();
}

fn say_why(state: &RouterState, one: &Awaited) {
    let why = match one.connection.deaf_for_s() {
        0 => "it did not answer",
        _ => "it does not read what it is sent",
    };
    tracing::info!("Not waiting for {}: {why}", who(state, one));
}

/// In words, with what an operator knows it by.
fn who(state: &RouterState, one: &Awaited) -> String {
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
