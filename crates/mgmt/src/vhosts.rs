//! Virtual hosts: lists, and single ones.

use std::sync::Arc;
use std::time::Instant;

use crosstie_broker::sums::Octets;
use crosstie_broker::vhost::SharedVhost;
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::{node, settings, stats};

/// A vhost, with what is read once for all of them.
#[derive(Clone)]
struct Found {
    vhost: Arc<SharedVhost>,
    about: Json,
    octets: Octets,
}

impl Found {
    fn of(call: &Call<'_>, vhosts: Vec<Arc<SharedVhost>>) -> Vec<Self> {
        let octets = call.api.operators.broker().octets_of_vhosts();
        let found = vhosts.into_iter().map(|vhost| Self {
            about: settings::of_vhost(call, &vhost),
            octets: octets.get(vhost.name()).copied().unwrap_or_default(),
            vhost,
        });
        found.collect()
    }
}

/// The vhosts that the user sees: all with the tag `monitoring`.
pub(crate) fn vhosts(call: &Call<'_>) -> Answer {
    let vhosts = match call.caller.is_monitoring() {
        true => call.api.operators.open_vhosts(),
        false => call.visible_vhosts(),
    };
    let node = node::name(call.api);
    let api = Arc::clone(call.api);
    let source = Source::of(Found::of(call, vhosts), move |found, row| {
        write(&api, found, &node, row);
    });
    list::pages(&call.query, source, |found| found.vhost.name().to_string())
}

pub(crate) fn vhost(call: &Call<'_>, name: &str) -> Answer {
    let vhost = call.vhost(name).ok();
    let found = vhost.and_then(|vhost| Found::of(call, vec![vhost]).pop());
    let Some(found) = found else {
        return Answer::not_found();
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| {
        write(call.api, &found, &node::name(call.api), row);
    });
    Answer::of_bytes(out)
}

/// Figures for which all queues of a vhost are walked.
const COUNTED: [&str; 10] = [
    "messages",
    "messages_details",
    "messages_ready",
    "messages_ready_details",
    "messages_unacknowledged",
    "messages_unacknowledged_details",
    "message_stats",
    "recv_oct_details",
    "send_oct_details",
    "recv_oct",
];

fn write(api: &Arc<Api>, found: &Found, node: &str, row: &mut Row<'_, '_>) {
    for (name, value) in found.about.as_object().into_iter().flatten() {
        row.json(name, value);
    }
    row.nested("cluster_state", |row| row.text(node, "running"));
    if !COUNTED.iter().any(|name| row.wants(name)) {
        return;
    }
    let counts = found.vhost.counts_walked();
    let counters = stats::of_counts(&counts);
    let octets = [found.octets.received_bytes, found.octets.sent_bytes];
    let figures = Figures {
        counters: stats::with_octets(counters, octets),
        gauges: [
            counts.messages_ready as u64,
            counts.messages_unacknowledged as u64,
        ],
    };
    let sampler = &api.sampler;
    let key = sampler.key(found.vhost.name());
    let rates = sampler.totals.rates(Instant::now(), key, figures);
    sampler.sweep_later(api.operators.context());
    stats::write_messages(figures.gauges, rates.gauges, row);
    let (of_messages, of_octets) = rates.counters.split_at(counters.len());
    if counters.iter().any(|count| *count > 0) {
        row.pruned("message_stats", |row| {
            stats::write_of_channel(&counters, of_messages, row);
        });
    }
    if octets != [0; 2] {
        stats::write_each(&stats::OF_CONNECTIONS, &octets, of_octets, row);
    }
}
