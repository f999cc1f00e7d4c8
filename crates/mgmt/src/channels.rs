//! Channels: lists, and single ones.

use std::sync::Arc;
use std::time::Instant;

use crosstie_broker::inspection::ChannelView;
use serde_json::json;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::{consumers, node, stats};

/// The channels that the user sees, by name.
fn visible(call: &Call<'_>) -> Vec<Arc<ChannelView>> {
    let mut found = call.api.operators.channel_views();
    if !call.caller.is_monitoring() {
        found.retain(|found| *found.status.user == *call.caller.name());
    }
    let key = |found: &ChannelView| (Arc::clone(&found.connection), found.status.number);
    found.sort_by_key(key);
    found.into_iter().map(Arc::new).collect()
}

pub(crate) fn channels(call: &Call<'_>) -> Answer {
    listed(call, visible(call))
}

pub(crate) fn of_vhost(call: &Call<'_>, vhost: &str) -> Answer {
    if call.vhost(vhost).is_err() {
        return Answer::not_found();
    }
    let mut found = visible(call);
    found.retain(|found| *found.vhost == *vhost);
    listed(call, found)
}

pub(crate) fn of_connection(call: &Call<'_>, connection: &str) -> Answer {
    let mut connections = call.api.operators.connection_views().into_iter();
    if !connections.any(|found| *found.title == *connection) {
        return Answer::not_found();
    }
    let mut found = visible(call);
    found.retain(|found| *found.connection == *connection);
    listed(call, found)
}

fn listed(call: &Call<'_>, found: Vec<Arc<ChannelView>>) -> Answer {
    let node = node::name(call.api);
    let api = Arc::clone(call.api);
    let source = Source::of(found, move |found: &Arc<ChannelView>, row| {
        write(&api, found, &node, row);
    });
    list::pages(&call.query, source, |found| name(found))
}

pub(crate) fn channel(call: &Call<'_>, asked: &str) -> Answer {
    let mut found = visible(call).into_iter();
    let Some(found) = found.find(|found| name(found) == asked) else {
        return Answer::not_found();
    };
    let node = node::name(call.api);
    let mut out = Vec::new();
    row::object(&mut out, &Columns::default(), |row| {
        write(call.api, &found, &node, row);
        let mut consumers = match call.vhost(&found.vhost) {
            Ok(vhost) => vhost.consumer_views(),
            Err(_) => Vec::new(),
        };
        consumers.retain(|consumer| {
            consumer.connection == found.connection
                && consumer.status.channel == found.status.number
        });
        row.objects("consumer_details", consumers, |consumer, row| {
            consumers::write(consumer, &node, row);
        });
        row.json("publishes", &json!([]));
        row.json("deliveries", &json!([]));
    });
    Answer::of_bytes(out)
}

pub(crate) fn name(found: &ChannelView) -> String {
    format!("{} ({})", found.connection, found.status.number)
}

fn write(api: &Arc<Api>, found: &ChannelView, node: &str, row: &mut Row<'_, '_>) {
    let status = &found.status;
    row.text("name", &name(found));
    row.int("number", status.number);
    row.nested("connection_details", |row| {
        row.text("name", &found.connection);
        let host = found.peer.map(|peer| peer.ip().to_string());
        row.text("peer_host", host.as_deref().unwrap_or("unknown"));
        row.int("peer_port", found.peer.map_or(0, |peer| peer.port()));
    });
    row.text("node", node);
    row.text("vhost", &found.vhost);
    row.text("user", &status.user);
    row.text("user_who_performed_action", &status.user);
    row.text("state", "running");
    row.boolean("confirm", status.confirms);
    row.boolean("transactional", status.is_transactional);
    row.int("consumer_count", status.consumers);
    row.int("messages_unacknowledged", status.messages_unacknowledged);
    row.int("messages_unconfirmed", status.messages_unconfirmed);
    row.int("messages_uncommitted", status.uncommitted.messages);
    row.int("acks_uncommitted", status.uncommitted.acknowledgements);
    row.int("prefetch_count", status.prefetch_count);
    row.int("global_prefetch_count", status.prefetch_count_global);
    row.int("pending_raft_commands", 0);
    write_stats(api, found, row);
}

fn write_stats(api: &Arc<Api>, found: &ChannelView, row: &mut Row<'_, '_>) {
    let counters = stats::of_channel(&found.status.tally);
    if !row.wants("message_stats") || counters.iter().all(|count| *count == 0) {
        return;
    }
    let sampler = &api.sampler;
    let key = sampler.key((&found.connection, found.status.number));
    let gauges = [];
    let rates = sampler
        .channels
        .rates(Instant::now(), key, Figures { counters, gauges });
    sampler.sweep_later(api.operators.context());
    row.pruned("message_stats", |row| {
        stats::write_of_channel(&counters, &rates.counters, row);
    });
}
