//! The node, as the only one of RabbitMQ's cluster.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::{Figures, Rates};
use crate::surroundings::Listener;
use crate::{process, stats};

/// The types of exchanges, with RabbitMQ's descriptions.
#[rustfmt::skip]
pub(crate) const EXCHANGE_TYPES: [(&str, &str); 9] = [
    ("direct", "AMQP direct exchange, as per the AMQP specification"),
    ("fanout", "AMQP fanout exchange, as per the AMQP specification"),
    ("headers", "AMQP headers exchange, as per the AMQP specification"),
    ("topic", "AMQP topic exchange, as per the AMQP specification"),
    ("x-consistent-hash", "Consistent Hashing Exchange."),
    ("x-delayed-message", "Delayed Message Exchange."),
    ("x-modulus-hash", "Modulus Hashing Exchange"),
    ("x-random", "Randomly picks a binding (queue) to route via (to)."),
    ("x-recent-history", "Recent History Exchange."),
];

/// RabbitMQ's form of a node's name.
pub(crate) fn name(api: &Api) -> String {
    name_of(&api.surroundings.node())
}

/// The same for a node's id.
pub fn name_of(node: &str) -> String {
    format!("crosstie@{node}")
}

pub(crate) fn exchange_type((name, description): &(&str, &str), row: &mut Row<'_, '_>) {
    row.text("name", name);
    row.text("description", description);
    row.boolean("enabled", true);
}

/// The listeners of this API, which RabbitMQ calls contexts.
pub(crate) fn pages(api: &Api) -> Vec<Listener> {
    let mut listeners = api.surroundings.listeners();
    listeners.retain(|listener| matches!(listener.protocol, "http" | "https"));
    listeners
}

pub(crate) fn context(listener: &Listener, row: &mut Row<'_, '_>) {
    row.text("description", "RabbitMQ Management");
    row.text("path", "/");
    row.text("cowboy_opts", "[]");
    row.text("ip", &listener.address);
    row.text("port", &listener.port.to_string());
}

pub(crate) fn nodes(call: &Call<'_>) -> Answer {
    let mut written = Vec::new();
    row::whole(&mut written, |row| write(call.api, row));
    let node: serde_json::Value = serde_json::from_slice(&written).unwrap_or_default();
    let source = Source::of(vec![node], |node, row| {
        for (name, value) in node.as_object().into_iter().flatten() {
            row.json(name, value);
        }
    });
    list::list(&call.query, source)
}

pub(crate) fn node(call: &Call<'_>, asked: &str) -> Answer {
    if asked != name(call.api) {
        return Answer::not_found();
    }
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| write(call.api, row));
    Answer::of_bytes(out)
}

fn write(api: &Arc<Api>, row: &mut Row<'_, '_>) {
    let broker = api.operators.broker();
    let particulars = &broker.particulars;
    let flow = &broker.shared.flow;
    row.json("partitions", &json!([]));
    row.text("os_pid", &std::process::id().to_string());
    let (open, max) = process::descriptors();
    let (threads, threads_max) = process::threads();
    let (free, total) = process::disk_bytes(&particulars.store).unwrap_or_default();
    let now = [
        flow.memory_bytes() as u64,
        open,
        broker.peers() as u64,
        threads,
        free,
    ];
    let (churn, rates) = sampled(api, Instant::now(), now);
    row.int("fd_total", max);
    row.int("sockets_total", max);
    row.int("mem_limit", flow.memory_bytes_max());
    stats::write_each(&GAUGES, &now, &rates.gauges, row);
    stats::write_each(&stats::CHURN, &churn, &rates.counters, row);
    row.boolean("mem_alarm", flow.is_memory_full());
    row.text("mem_calculation_strategy", "messages");
    row.int("disk_free_limit", flow.disk_free_bytes_min(total));
    row.boolean("disk_free_alarm", flow.is_disk_low());
    row.int("proc_total", threads_max);
    row.text("rates_mode", "basic");
    row.int("uptime", particulars.uptime().as_millis() as u64);
    row.int("run_queue", process::ready_threads());
    row.int("processors", process::processors());
    row.objects("exchange_types", EXCHANGE_TYPES, exchange_type);
    let mechanisms = [
        ("PLAIN", "SASL PLAIN authentication mechanism"),
        ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
    ];
    row.objects("auth_mechanisms", mechanisms, exchange_type);
    let itself = [("rabbit", "RabbitMQ", particulars.version.as_str())];
    row.objects(
        "applications",
        itself,
        |(name, description, version), row| {
            row.text("name", name);
            row.text("description", description);
            row.text("version", version);
        },
    );
    row.objects("contexts", pages(api), context);
    row.json("log_files", &json!([]));
    row.text("db_dir", &particulars.store.to_string_lossy());
    row.json("config_files", &json!([]));
    row.int("net_ticktime", 60);
    row.json("enabled_plugins", &json!(["rabbitmq_management"]));
    row.text("name", &name(api));
    row.text("type", "disc");
    row.boolean("running", true);
    // rabbitmqadmin 2 requires it.
    row.boolean("being_drained", false);
    row.json("cluster_links", &json!([]));
}

const GAUGES: [&str; 5] = [
    "mem_used",
    "fd_used",
    "sockets_used",
    "proc_used",
    "disk_free",
];

/// The numbers of objects opened and closed, with the rates of these and of the gauges.
fn sampled(api: &Arc<Api>, now: Instant, gauges: [u64; 5]) -> ([u64; 7], Rates<7, 5>) {
    let broker = api.operators.broker();
    let counters = stats::of_churn(broker.churn(), &broker.counters());
    let sampler = &api.sampler;
    let key = sampler.key("node");
    let rates = sampler.nodes.rates(now, key, Figures { counters, gauges });
    sampler.sweep_later(api.operators.context());
    (counters, rates)
}

/// The numbers of objects opened and closed, and their rates.
pub(crate) fn churn(api: &Arc<Api>, now: Instant) -> ([u64; 7], [f64; 7]) {
    let broker = api.operators.broker();
    let counters = stats::of_churn(broker.churn(), &broker.counters());
    let sampler = &api.sampler;
    let figures = Figures {
        counters,
        gauges: [],
    };
    let rates = sampler.churn.rates(now, sampler.key("churn"), figures);
    (counters, rates.counters)
}

/// Forgets the logins of the management API; those of AMQP stay, as metrics count them.
pub(crate) fn reset_attempts(call: &Call<'_>, asked: &str) -> Result<Answer, Answer> {
    use std::sync::atomic::Ordering::Relaxed;
    if asked != name(call.api) {
        return Err(Answer::not_found());
    }
    call.api.logins.failed.store(0, Relaxed);
    call.api.logins.succeeded.store(0, Relaxed);
    Ok(Answer::no_content())
}

/// The logins by address. They are not counted, as in RabbitMQ without `track_auth_attempt_source`.
pub(crate) fn attempts_by_source(call: &Call<'_>, asked: &str) -> Answer {
    match asked == name(call.api) {
        true => Answer::json(&json!([])),
        false => Answer::not_found(),
    }
}

/// The logins since the start, by protocol.
pub(crate) fn attempts(call: &Call<'_>, asked: &str) -> Answer {
    use std::sync::atomic::Ordering::Relaxed;
    let api = call.api;
    if asked != name(api) {
        return Answer::not_found();
    }
    let failed = api.logins.failed.load(Relaxed);
    let succeeded = api.logins.succeeded.load(Relaxed);
    let row = |protocol: &str, succeeded: u64, failed: u64| {
        json!({
            "protocol": protocol,
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        })
    };
    let (amqp_succeeded, amqp_failed) = api.operators.broker().logins();
    let mut rows = vec![row("http", succeeded, failed)];
    if amqp_succeeded + amqp_failed > 0 {
        rows.push(row("amqp091", amqp_succeeded, amqp_failed));
    }
    Answer::json(&json!(rows))
}
