//! Virtual hosts: lists, and single ones.

use std::sync::Arc;

use crosstie_broker::vhost::SharedVhost;
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::call::Call;
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::{node, settings};

/// The vhosts that the user sees: all with the tag `monitoring`.
pub(crate) fn vhosts(call: &Call<'_>) -> Answer {
    let vhosts = match call.caller.is_monitoring() {
        true => call.api.operators.open_vhosts(),
        false => call.visible_vhosts(),
    };
    let node = node::name(call.api);
    let vhosts = vhosts.into_iter().map(|vhost| {
        let about = settings::of_vhost(call, vhost.name());
        (vhost, about)
    });
    let source = Source::of(vhosts.collect(), move |(vhost, about), row| {
        write(vhost, about, &node, row);
    });
    list::pages(&call.query, source, |(vhost, _)| vhost.name().to_string())
}

pub(crate) fn vhost(call: &Call<'_>, name: &str) -> Answer {
    let Ok(vhost) = call.vhost(name) else {
        return Answer::not_found();
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| {
        let about = settings::of_vhost(call, name);
        write(&vhost, &about, &node::name(call.api), row);
    });
    Answer::of_bytes(out)
}

fn write(vhost: &Arc<SharedVhost>, about: &Json, node: &str, row: &mut Row<'_, '_>) {
    for (name, value) in about.as_object().into_iter().flatten() {
        row.json(name, value);
    }
    row.nested("cluster_state", |row| row.text(node, "running"));
    let counted = ["messages", "messages_ready", "messages_unacknowledged"];
    if counted.iter().any(|name| row.wants(name)) {
        let counts = vhost.counts_walked();
        let (ready, held) = (counts.messages_ready, counts.messages_unacknowledged);
        row.int("messages", ready + held);
        row.int("messages_ready", ready);
        row.int("messages_unacknowledged", held);
    }
}
