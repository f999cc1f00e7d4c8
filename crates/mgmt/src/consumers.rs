//! Consumers of the vhosts that the user sees.

use std::sync::Arc;

use crosstie_broker::inspection::ConsumerView;
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::list::{self, Source};
use crate::node;
use crate::row::Row;

pub(crate) fn consumers(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    let vhosts = match vhost {
        None => call.visible_vhosts(),
        Some(name) => match call.vhost(name) {
            Ok(vhost) if call.caller.sees(name) => vec![vhost],
            Ok(_) => Vec::new(),
            Err(_) => return Answer::not_found(),
        },
    };
    let mut found: Vec<Arc<ConsumerView>> = Vec::new();
    for vhost in vhosts {
        found.extend(vhost.consumer_views().into_iter().map(Arc::new));
    }
    let node = node::name(call.api);
    let source = Source::of(found, move |found: &Arc<ConsumerView>, row| {
        write(found, &node, row);
    });
    list::list(&call.query, source)
}

pub(crate) fn write(found: &ConsumerView, node: &str, row: &mut Row<'_, '_>) {
    let status = &found.status;
    row.text("consumer_tag", &status.consumer_tag);
    row.nested("queue", |row| {
        row.text("name", &status.queue);
        row.text("vhost", &found.vhost);
    });
    row.nested("channel_details", |row| {
        row.text(
            "name",
            &format!("{} ({})", found.connection, status.channel),
        );
        row.int("number", status.channel);
        row.text("connection_name", &found.connection);
        row.text("node", node);
        let host = found.peer.map(|peer| peer.ip().to_string());
        row.text("peer_host", host.as_deref().unwrap_or("unknown"));
        row.int("peer_port", found.peer.map_or(0, |peer| peer.port()));
        row.text("user", &status.user);
    });
    row.boolean("ack_required", !status.no_ack);
    row.boolean("active", status.active);
    let activity = if status.active { "up" } else { "waiting" };
    row.text("activity_status", activity);
    row.boolean("exclusive", status.exclusive);
    row.int("prefetch_count", status.prefetch_count);
    let arguments: Json = match status.priority {
        0 => json!({}),
        priority => json!({"x-priority": priority}),
    };
    row.json("arguments", &arguments);
}
