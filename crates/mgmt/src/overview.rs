//! The overview, and the small facts about the broker.

use std::time::Instant;

use crosstie_queues::Counts;
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::node;
use crate::route::Place;
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::stats;

/// Answers that need no login.
pub(crate) fn open_to_all(place: &Place<'_>) -> Answer {
    match place {
        Place::Auth => Answer::json(&json!({
            "enable_uaa": false,
            "uaa_client_id": "",
            "uaa_location": "",
        })),
        _ => Answer::not_found(),
    }
}

pub(crate) fn whoami(call: &Call<'_>) -> Answer {
    let user = &call.caller.user;
    Answer::json(&json!({"name": &*user.name, "tags": user.tags}))
}

/// The feature flags of RabbitMQ whose features Crosstie has.
pub(crate) fn feature_flags() -> Answer {
    let flag = |(name, desc): &(&str, &str)| {
        json!({
            "name": name,
            "desc": desc,
            "doc_url": "",
            "state": "enabled",
            "stability": "stable",
            "provided_by": "rabbit",
        })
    };
    let flags: Vec<Json> = FEATURE_FLAGS.iter().map(flag).collect();
    Answer::json(&Json::Array(flags))
}

/// Whether there is a feature flag of that name.
pub(crate) fn has_feature(flag: &str) -> bool {
    FEATURE_FLAGS.iter().any(|(name, _)| *name == flag)
}

#[rustfmt::skip]
const FEATURE_FLAGS: [(&str, &str); 7] = [
    ("drop_unroutable_metric", "Count unroutable publishes to be dropped in stats"),
    ("empty_basic_get_metric", "Count AMQP `basic.get` on empty queues in stats"),
    ("implicit_default_bindings", "Default bindings are now implicit, instead of being stored in the database"),
    ("quorum_queue", "Support queues of type `quorum`"),
    ("stream_queue", "Support queues of type `stream`"),
    ("user_limits", "Configure connection and channel limits for a user"),
    ("virtual_host_metadata", "Virtual host metadata (description, tags, etc)"),
];

pub(crate) fn overview(call: &Call<'_>) -> Answer {
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| write(call, row));
    Answer::of_bytes(out)
}

fn write(call: &Call<'_>, row: &mut Row<'_, '_>) {
    let api = call.api;
    let particulars = &api.operators.broker().particulars;
    let version = particulars.version.as_str();
    row.text("management_version", version);
    row.text("rates_mode", "basic");
    row.nested("sample_retention_policies", |row| {
        for (name, ages) in [
            ("global", vec![600, 3_600, 28_800, 86_400]),
            ("basic", vec![600, 3_600]),
            ("detailed", vec![600]),
        ] {
            row.json(name, &json!(ages));
        }
    });
    row.objects("exchange_types", node::EXCHANGE_TYPES, node::exchange_type);
    row.text("product_version", version);
    row.text("product_name", &particulars.product);
    row.text("rabbitmq_version", version);
    row.text("cluster_name", &particulars.cluster_name);
    let crosstie = concat!("Crosstie ", env!("CARGO_PKG_VERSION"));
    row.text("erlang_version", crosstie);
    row.text("erlang_full_version", crosstie);
    row.text("release_series_support_status", "supported");
    row.boolean("disable_stats", false);
    row.boolean("enable_queue_totals", false);
    let counted = [
        "queue_totals",
        "object_totals",
        "message_stats",
        "churn_rates",
    ];
    if counted.iter().any(|name| row.wants(name)) {
        totals(call, row);
    }
    row.int("statistics_db_event_queue", 0);
    if !call.caller.is_monitoring() {
        return;
    }
    row.text("node", &node::name(api));
    row.objects(
        "listeners",
        api.surroundings.listeners(),
        |listener, row| {
            row.text("node", &node::name(api));
            row.text("protocol", listener.protocol);
            row.text("ip_address", &listener.address);
            row.int("port", listener.port);
            row.json("socket_opts", &json!([]));
        },
    );
    row.objects("contexts", node::pages(api), |listener, row| {
        row.json("ssl_opts", &json!([]));
        row.text("node", &node::name(api));
        node::context(listener, row);
    });
}

/// The sums over the vhosts that the user sees; all with the tag `monitoring`.
fn totals(call: &Call<'_>, row: &mut Row<'_, '_>) {
    let mut all = Counts::default();
    let sees_all = call.caller.is_monitoring();
    let vhosts = match sees_all {
        true => call.api.operators.open_vhosts(),
        false => call.visible_vhosts(),
    };
    for vhost in vhosts {
        let counts = vhost.counts_walked();
        all.add_counters(&counts);
        all.connections += counts.connections;
        all.channels += counts.channels;
        all.consumers += counts.consumers;
        all.exchanges += counts.exchanges;
        all.queues += counts.queues;
        all.messages_ready += counts.messages_ready;
        all.messages_unacknowledged += counts.messages_unacknowledged;
    }
    if sees_all {
        all = Counts {
            messages_ready: all.messages_ready,
            messages_unacknowledged: all.messages_unacknowledged,
            connections: all.connections,
            channels: all.channels,
            consumers: all.consumers,
            exchanges: all.exchanges,
            queues: all.queues,
            ..call.api.operators.broker().counters()
        };
    }
    rates(call, &all, row);
    row.nested("object_totals", |row| {
        row.int("channels", all.channels);
        row.int("connections", all.connections);
        if sees_all {
            row.int("consumers", all.consumers);
        }
        row.int("exchanges", all.exchanges);
        row.int("queues", all.queues);
    });
}

/// The counters of those vhosts, and how fast they grow.
fn rates(call: &Call<'_>, all: &Counts, row: &mut Row<'_, '_>) {
    let sampler = &call.api.sampler;
    let sees_all = call.caller.is_monitoring();
    // Users with the same rights have the same sums.
    let whose = (!sees_all).then(|| call.caller.name());
    let counters = stats::of_counts(all);
    let figures = Figures {
        counters: stats::with_octets(counters, [0; 2]),
        gauges: [
            all.messages_ready as u64,
            all.messages_unacknowledged as u64,
        ],
    };
    let now = Instant::now();
    let key = sampler.key(("overview", whose));
    let rates = sampler.totals.rates(now, key, figures);
    sampler.sweep_later(call.api.operators.context());
    row.nested("message_stats", |row| {
        stats::write_of_channel(&counters, &rates.counters[..counters.len()], row);
    });
    let (churn, churn_rates) = node::churn(call.api, now);
    row.nested("churn_rates", |row| {
        stats::write_each(&stats::CHURN, &churn, &churn_rates, row);
    });
    row.nested("queue_totals", |row| {
        if all.queues > 0 {
            stats::write_messages(figures.gauges, rates.gauges, row);
        }
    });
}
