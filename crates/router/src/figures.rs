//! The counters of routers for operators: what changes from second to second, in one reading.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_auth::wamp::Cause;
use crosstie_broker::totals;
use crosstie_front::counters::{self, Counter};
use crosstie_front::end_reason::EndReason;
use crosstie_realms::message_counts::{Direction, is_of_sessions};
use crosstie_routing::RefusalCause;
use crosstie_transport::{Kind, sent_bytes};
use crosstie_wamp::MessageType;

use crate::registry::{Registry, brokers, realms};
use crate::router::Router;
use crate::status_page::health;

/// The counters and the state of routers at one time. Counters never fall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterFigures {
    /// Whether the node is ready for clients.
    pub is_ready: bool,
    /// `ok` or `degraded`, and a line for each trouble.
    pub health: String,
    pub connections: usize,
    pub sessions: usize,
    pub subscriptions: usize,
    pub registrations: usize,
    /// Calls without a final result.
    pub calls: usize,
    /// By type: WAMP messages received, those that open and close sessions included.
    pub received: BTreeMap<&'static str, u64>,
    /// By type: WAMP messages queued for sending.
    pub sent: BTreeMap<&'static str, u64>,
    /// Those of the process, by the names of `/metrics` without `crosstie_` and `_total`.
    pub counters: BTreeMap<&'static str, u64>,
    /// Those of AMQP, by the names of `/metrics` without `crosstie_amqp_` and `_total`; empty without AMQP.
    pub amqp: BTreeMap<&'static str, u64>,
    /// Denied requests of sessions, by cause.
    pub actions_refused: BTreeMap<&'static str, u64>,
    /// Refused logins of WAMP, by cause.
    pub authentications_refused: BTreeMap<&'static str, u64>,
    /// Ends of sessions, by reason.
    pub session_ends: BTreeMap<&'static str, u64>,
    /// Memory held for peers, by kind, in bytes.
    pub held_bytes: BTreeMap<&'static str, usize>,
    /// The bound of all kinds together.
    pub held_bytes_max: usize,
}

/// The figures of these routers and their process.
pub fn figures(routers: &[&Router]) -> RouterFigures {
    let routers: Vec<Arc<Registry>> = routers
        .iter()
        .map(|router| Arc::clone(&router.state))
        .collect();
    let (is_ready, health) = health(&routers);
    let mut figures = RouterFigures {
        is_ready,
        health,
        connections: routers.iter().map(|router| router.connections()).sum(),
        ..RouterFigures::default()
    };
    for (_, realm) in realms(&routers) {
        let counts = realm.counts();
        figures.sessions += counts.sessions;
        figures.subscriptions += counts.subscriptions;
        figures.registrations += counts.registrations;
        figures.calls += counts.calls;
        for kind in MessageType::ALL
            .into_iter()
            .filter(|kind| !is_of_sessions(*kind))
        {
            let name = kind.name();
            let total = |direction| realm.messages.total(direction, kind);
            *figures.received.entry(name).or_default() += total(Direction::Received);
            *figures.sent.entry(name).or_default() += total(Direction::Sent);
        }
    }
    for router in &routers {
        for kind in MessageType::ALL
            .into_iter()
            .filter(|kind| is_of_sessions(*kind))
        {
            let total = |direction| router.realms.session_messages.total(direction, kind);
            *figures.received.entry(kind.name()).or_default() += total(Direction::Received);
            *figures.sent.entry(kind.name()).or_default() += total(Direction::Sent);
        }
        for cause in RefusalCause::ALL {
            let refused = figures.actions_refused.entry(cause.name()).or_default();
            *refused += router.realms.denials.count(cause);
        }
        for cause in Cause::ALL {
            let refused = &mut figures.authentications_refused;
            *refused.entry(cause.name()).or_default() += router.realms.door.refused(cause);
        }
        let account = &router.bounds.limits.account;
        for kind in Kind::ALL {
            *figures.held_bytes.entry(kind.name()).or_default() += account.bytes(kind);
        }
        figures.held_bytes_max = figures.held_bytes_max.saturating_add(account.bytes_max());
    }
    figures.amqp = totals(brokers(&routers));
    let all = Counter::ALL.iter();
    figures.counters = all
        .map(|(counter, name, _)| (*name, counters::total(*counter)))
        .collect();
    figures.counters.insert("sent_bytes", sent_bytes());
    let ends = EndReason::ALL.iter();
    figures.session_ends = ends
        .map(|why| (why.name(), counters::total_left(*why)))
        .collect();
    figures
}
