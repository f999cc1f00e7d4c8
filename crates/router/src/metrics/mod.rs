//! `/metrics`: counters and measurements, in the requested format.
//!
//! `docs/metrics.md` describes each metric; a test compares it with the output.
//!
//! Messages pay no cost for this page; reading takes no lock but that of a realm or vhost, for a few numbers.

mod certificates;
mod fabric;
mod histograms;
mod ledger;
mod mqtt;
mod process;
mod realm_counts;
mod stores;
mod text;
mod workers;

use std::sync::Arc;

use crosstie_auth::wamp::Cause;
use crosstie_broker as amqp;
use crosstie_front::counters::{self, Counter};
use crosstie_front::end_reason::EndReason;
use crosstie_realms::message_counts::{Direction, is_of_sessions};
use crosstie_realms::realm::SharedRealm;
use crosstie_routing::RefusalCause;
use crosstie_site::pages::Form;
use crosstie_site::request_counts;
use crosstie_transport::{Kind, Spins, sent_bytes};
use crosstie_wamp::MessageType;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::{ConstCounter, Counter as Count};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::joint_counts;
use crate::registry::{Registry as Router, brokers, realms};
use crate::rlink_metrics;

/// The metrics of these routers and their process.
pub(crate) fn metrics(routers: &[Arc<Router>], form: Form) -> String {
    let mut registry = Registry::with_prefix("crosstie");
    registry.register(
        "build",
        "Version of Crosstie",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    register_messages(&mut registry, routers);
    register_totals(&mut registry);
    register_handshakes(&mut registry, routers);
    register_denials(&mut registry, routers);
    let times = amqp::vhost_times(brokers(routers));
    histograms::register(&mut registry, routers, times);
    let of_realms = realms(routers).map(|(router, realm)| {
        let name = realm.name().to_owned();
        let labels = [("worker", router.id().to_owned()), ("realm", name)];
        (labels, realm.counts())
    });
    realm_counts::register(&mut registry, of_realms);
    register_decisions(&mut registry, routers);
    let stores = realms(routers).filter_map(|(router, realm)| {
        let status = realm.store.as_ref()?.status();
        Some((router.id().to_owned(), realm.name().to_owned(), status))
    });
    stores::register(&mut registry, stores);
    register_testees(&mut registry, routers);
    certificates::register(&mut registry, routers);
    let linked = |(router, realm): (_, Arc<SharedRealm>)| {
        let port = realm.port.clone()?;
        Some((worker_id(router), port, realm.counts()))
    };
    fabric::register(&mut registry, realms(routers).filter_map(linked));
    let replicated = amqp::replicated_vhosts(brokers(routers))
        .map(|(router, vhost)| (router, Arc::clone(&vhost.name), vhost.seen()));
    ledger::register(&mut registry, replicated);
    amqp::register_metrics(&mut registry, brokers(routers));
    mqtt::register(&mut registry, routers);
    let joints = routers.iter().map(|router| (router.id(), router.joints()));
    joint_counts::register(&mut registry, joints);
    let requests = routers.iter().map(|r| (r.id(), r.grounds.requests.all()));
    request_counts::register(&mut registry, requests);
    // All routers of a node share one overview.
    let overview = routers
        .first()
        .map(|router| router.grounds.overview.workers());
    workers::register(&mut registry, &overview.unwrap_or_default());
    if let Some(router) = routers.first() {
        let reload = router.grounds.overview.last_reload();
        workers::register_reload(&mut registry, reload);
    }
    let links = routers.iter().map(|r| (r.id(), r.rlinks.all()));
    rlink_metrics::register(&mut registry, links);
    let mut gauge = |name: &str, help: &str, value: usize| {
        registry.register(name, help, ConstGauge::new(value as i64));
    };
    let connections = routers.iter().map(|router| router.connections()).sum();
    gauge("connections", "Open connections", connections);
    let held = |kind: Kind| -> usize {
        let accounts = routers.iter().map(|router| &router.bounds.limits.account);
        accounts.map(|account| account.bytes(kind)).sum()
    };
    gauge(
        "queued_bytes",
        "Bytes queued for receivers that do not read, shared ones counted once",
        held(Kind::Queued) + held(Kind::Shared),
    );
    register_account(&mut registry, routers);
    written(&registry, form)
}

/// The text of these metrics, and of the process's own.
fn written(registry: &Registry, form: Form) -> String {
    let mut process = Registry::default();
    process::register(&mut process);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = encode_registry(&mut out, registry);
    let _ = encode_registry(&mut out, &process);
    match form {
        Form::OpenMetrics => {
            let _ = encode_eof(&mut out);
            out
        }
        Form::Text => text::from_open_metrics(&out),
    }
}

fn worker_id(router: &Router) -> &str {
    router.id()
}

fn register_account(registry: &mut Registry, routers: &[Arc<Router>]) {
    type Labels = [(&'static str, String); 2];
    let held: Family<Labels, Gauge> = Family::default();
    let bound: Family<[(&'static str, String); 1], Gauge> = Family::default();
    for router in routers {
        let account = &router.bounds.limits.account;
        for kind in Kind::ALL {
            let labels = [
                ("worker", router.id().to_owned()),
                ("kind", kind.name().to_owned()),
            ];
            held.get_or_create(&labels).set(account.bytes(kind) as i64);
        }
        let labels = [("worker", router.id().to_owned())];
        let bytes_max = i64::try_from(account.bytes_max()).unwrap_or(i64::MAX);
        bound.get_or_create(&labels).set(bytes_max);
    }
    registry.register("held_bytes", "Bytes held for peers, by kind", held);
    registry.register(
        "held_bytes_max",
        "Bound of all kinds of held bytes together",
        bound,
    );
}

/// Each type has a line from the start, so that its rate is known from the first message.
fn register_messages(registry: &mut Registry, routers: &[Arc<Router>]) {
    // Messages that open and close sessions are the router's, with an empty realm label.
    type ByType = Family<[(&'static str, String); 3], Count>;
    for (name, help, direction) in [
        (
            "messages_received",
            "WAMP messages received, by type",
            Direction::Received,
        ),
        (
            "messages_sent",
            "WAMP messages queued for sending, by type",
            Direction::Sent,
        ),
    ] {
        let family = ByType::default();
        let add = |worker: &str, realm: &str, kind: MessageType, count: u64| {
            let labels = [
                ("worker", worker.to_owned()),
                ("realm", realm.to_owned()),
                ("type", kind.name().to_owned()),
            ];
            family.get_or_create(&labels).inc_by(count);
        };
        for router in routers {
            for kind in MessageType::ALL {
                let count = router.realms.session_messages.total(direction, kind);
                // Other types are protocol violations outside a realm.
                if is_of_sessions(kind) || count > 0 {
                    add(router.id(), "", kind, count);
                }
            }
        }
        for (router, realm) in realms(routers) {
            for kind in MessageType::ALL {
                if !is_of_sessions(kind) {
                    let count = realm.messages.total(direction, kind);
                    add(router.id(), realm.name(), kind, count);
                }
            }
        }
        registry.register(name, help, family);
    }
}

fn register_totals(registry: &mut Registry) {
    type ByReason = Family<[(&'static str, &'static str); 1], Count>;
    let ends = ByReason::default();
    for why in EndReason::ALL {
        let count = counters::total_left(why);
        ends.get_or_create(&[("reason", why.name())]).inc_by(count);
    }
    registry.register("session_ends", "Sessions that left, by reason", ends);
    for (counter, name, help) in Counter::ALL {
        registry.register(name, help, ConstCounter::new(counters::total(counter)));
    }
    registry.register(
        "sent_bytes",
        "Bytes sent, as they were on the wire",
        ConstCounter::new(sent_bytes()),
    );
    register_spans(registry);
    let spins = Spins::total();
    registry.register(
        "spin_seconds",
        "Time for which threads looked for input instead of sleeping",
        ConstCounter::new(spins.spun.as_secs_f64()),
    );
    let outcomes = Family::<[(&'static str, &'static str); 1], Count>::default();
    for (outcome, count) in [("hit", spins.hits), ("miss", spins.misses)] {
        outcomes
            .get_or_create(&[("outcome", outcome)])
            .inc_by(count);
    }
    registry.register(
        "spins",
        "Waits for which a thread looked for input instead of sleeping, by outcome",
        outcomes,
    );
}

/// Registers the metric of spans.
fn register_spans(registry: &mut Registry) {
    let counts = crosstie_spans::counts();
    let outcomes = Family::<[(&'static str, &'static str); 1], Count>::default();
    for (outcome, count) in [
        ("exported", counts.exported),
        ("failed", counts.failed),
        ("dropped", counts.dropped),
    ] {
        outcomes
            .get_or_create(&[("outcome", outcome)])
            .inc_by(count);
    }
    registry.register("spans", "Spans of messages of traces, by outcome", outcomes);
}

/// Registers the metrics of handshakes.
fn register_handshakes(registry: &mut Registry, routers: &[Arc<Router>]) {
    let pending: Family<[(&'static str, String); 1], Gauge> = Family::default();
    let refused: Family<[(&'static str, String); 2], Count> = Family::default();
    let fetches: Family<[(&'static str, String); 2], Count> = Family::default();
    let outdated: Family<[(&'static str, String); 1], Gauge> = Family::default();
    for router in routers {
        let door = &router.realms.door;
        let worker = ("worker", router.id().to_owned());
        let of_worker = pending.get_or_create(&[("worker", router.id().to_owned())]);
        of_worker.set(door.pending() as i64);
        let of_worker = outdated.get_or_create(&[("worker", router.id().to_owned())]);
        of_worker.set(door.outdated().len() as i64);
        for cause in Cause::ALL {
            let labels = [worker.clone(), ("cause", cause.name().to_owned())];
            refused.get_or_create(&labels).inc_by(door.refused(cause));
        }
        let (fetched, failed) = door.keys_fetches();
        for (outcome, count) in [("fetched", fetched), ("failed", failed)] {
            let labels = [worker.clone(), ("outcome", outcome.to_owned())];
            fetches.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register(
        "token_keys_fetches",
        "Requests for the keys of tokens' issuers, by outcome",
        fetches,
    );
    registry.register(
        "login_sources_outdated",
        "Files and URLs of principals and keys that cannot be read again, so that the former ones are in force",
        outdated,
    );
    registry.register(
        "handshakes_pending",
        "Sessions with an unanswered challenge, or with an authenticator call in progress",
        pending,
    );
    registry.register(
        "authentications_refused",
        "Sessions refused for their authid or method, by cause",
        refused,
    );
}

/// Registers the metrics of denied requests.
fn register_denials(registry: &mut Registry, routers: &[Arc<Router>]) {
    let refused: Family<[(&'static str, String); 2], Count> = Family::default();
    for router in routers {
        for cause in RefusalCause::ALL {
            let labels = [
                ("worker", router.id().to_owned()),
                ("cause", cause.name().to_owned()),
            ];
            let count = router.realms.denials.count(cause);
            refused.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register(
        "actions_refused",
        "Calls, publications, registrations and subscriptions that a role does not allow, by cause",
        refused,
    );
}

/// Registers the metrics of authorizers' calls and cached decisions.
fn register_decisions(registry: &mut Registry, routers: &[Arc<Router>]) {
    type ByRealm = Family<[(&'static str, String); 2], Gauge>;
    let (decisions, decision_bytes) = (ByRealm::default(), ByRealm::default());
    let judged = ByRealm::default();
    let hits: Family<[(&'static str, String); 2], Count> = Family::default();
    for (router, realm) in realms(routers) {
        let labels = [
            ("worker", router.id().to_owned()),
            ("realm", realm.name().to_owned()),
        ];
        let kept = realm.decisions();
        decisions.get_or_create(&labels).set(kept.count as i64);
        decision_bytes.get_or_create(&labels).set(kept.bytes as i64);
        let pending = realm.judged.pending() as i64;
        judged.get_or_create(&labels).set(pending);
        hits.get_or_create(&labels).inc_by(kept.hits);
    }
    registry.register(
        "realm_decisions",
        "Cached decisions of authorizers",
        decisions,
    );
    registry.register(
        "realm_decision_bytes",
        "Approximate bytes of the cached decisions",
        decision_bytes,
    );
    registry.register(
        "realm_decisions_reused",
        "Actions that a cached decision judged",
        hits,
    );
    registry.register(
        "realm_sessions_judged",
        "Sessions with an authorizer call in progress",
        judged,
    );
}

fn register_testees(registry: &mut Registry, routers: &[Arc<Router>]) {
    type Labels = [(&'static str, String); 2];
    let connections: Family<Labels, Gauge> = Family::default();
    let counted: [(&str, &str, Family<Labels, Count>); 5] = [
        ("handshakes", "Opening handshakes that testees completed"),
        ("messages", "Messages that testees echoed"),
        ("bytes", "Bytes that testees echoed"),
        ("received_bytes", "Bytes that testees received"),
        ("sent_bytes", "Bytes that testees sent"),
    ]
    .map(|(name, help)| (name, help, Family::default()));
    for router in routers {
        for testee in &*router.testees() {
            let labels = [
                ("worker", router.id().to_owned()),
                ("transport", testee.id.clone()),
            ];
            let open = testee.connections() as i64;
            connections.get_or_create(&labels).set(open);
            let totals = testee.statistics.totals();
            let totals = [
                totals.handshakes,
                totals.messages,
                totals.bytes,
                totals.wire_in,
                totals.wire_out,
            ];
            for ((_, _, family), total) in counted.iter().zip(totals) {
                family.get_or_create(&labels).inc_by(total);
            }
        }
    }
    registry.register("testee_connections", "Connections of testees", connections);
    for (name, help, family) in counted {
        registry.register(format!("testee_{name}"), help, family);
    }
}
