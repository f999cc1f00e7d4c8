//! Queues: lists and single ones.

use std::sync::Arc;
use std::time::Instant;

use crosstie_broker::vhost::SharedVhost;
use crosstie_queues::QueueView;
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::consumers;
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::{node, policies, stats};

/// Maximum number of consumers in the answer for one queue.
const CONSUMERS_MAX: usize = 10_000;

/// A queue and its vhost.
pub(crate) struct Found {
    vhost: Arc<str>,
    view: QueueView,
}

/// How much of a queue is written.
#[derive(Clone, Copy)]
struct Detail {
    has_statistics: bool,
    has_totals: bool,
}

impl Detail {
    fn of(call: &Call<'_>) -> Self {
        let is_short = call.query.is_true("disable_stats");
        Self {
            has_statistics: !is_short,
            has_totals: !is_short || call.query.is_true("enable_queue_totals"),
        }
    }
}

pub(crate) fn queues(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    let vhosts = match call.vhosts(vhost) {
        Ok(vhosts) => vhosts,
        Err(answer) => return answer,
    };
    let mut items = Vec::new();
    for (number, vhost) in vhosts.iter().enumerate() {
        let names = vhost.queue_names().into_iter();
        items.extend(names.map(|name| (number, name)));
    }
    let node = node::name(call.api);
    let detail = Detail::of(call);
    let api = Arc::clone(call.api);
    let source = Source {
        items,
        fetch: Box::new(move |items: &[(usize, Arc<str>)]| fetch(&vhosts, items)),
        write: Box::new(move |found: &Found, row: &mut Row<'_, '_>| {
            write(&api, found, &node, detail, row);
        }),
    };
    list::pages(&call.query, source, |(_, name)| name.to_string())
}

/// Reads queues with one lock for those of a vhost that follow each other.
fn fetch(vhosts: &[Arc<SharedVhost>], items: &[(usize, Arc<str>)]) -> Vec<Option<Found>> {
    let mut found = Vec::with_capacity(items.len());
    for of_one in items.chunk_by(|(a, _), (b, _)| a == b) {
        let Some(vhost) = of_one.first().and_then(|(number, _)| vhosts.get(*number)) else {
            continue;
        };
        let names: Vec<Arc<str>> = of_one.iter().map(|(_, name)| Arc::clone(name)).collect();
        let views = vhost.queue_views(&names).into_iter();
        found.extend(views.map(|view| {
            Some(Found {
                vhost: Arc::clone(vhost.name()),
                view: view?,
            })
        }));
    }
    found
}

pub(crate) fn queue(call: &Call<'_>, vhost: &str, name: &str) -> Answer {
    let Ok(shared) = call.vhost(vhost) else {
        return Answer::not_found();
    };
    let Some(view) = shared.queue_view(name) else {
        return Answer::not_found();
    };
    let owner = view.owner;
    let found = Found {
        vhost: Arc::clone(shared.name()),
        view,
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| {
        if row.wants("consumer_details") {
            let found = shared.consumers_of_queue(name, CONSUMERS_MAX);
            let node = node::name(call.api);
            row.objects("consumer_details", found, |consumer, row| {
                consumers::write(consumer, &node, row);
            });
        }
        row.json("deliveries", &json!([]));
        row.json("incoming", &json!([]));
        if let Some(title) = owner.and_then(|owner| shared.title_of(owner)) {
            row.nested("owner_pid_details", |row| {
                let ends = title.split_once(" -> ").map_or(&*title, |ends| ends.0);
                let (host, port) = ends.rsplit_once(':').unwrap_or((ends, "0"));
                row.text("name", &title);
                row.text("peer_host", host);
                row.int("peer_port", port.parse::<u16>().unwrap_or(0));
            });
        }
        write(
            call.api,
            &found,
            &node::name(call.api),
            Detail::of(call),
            row,
        );
    });
    Answer::of_bytes(out)
}

fn write(api: &Arc<Api>, found: &Found, node: &str, detail: Detail, row: &mut Row<'_, '_>) {
    let Found { vhost, view } = found;
    let queue = &view.status;
    row.text("name", &queue.name);
    row.text("vhost", vhost);
    row.text("type", queue.kind);
    row.boolean("durable", queue.durable);
    row.boolean("auto_delete", queue.auto_delete);
    row.boolean("exclusive", queue.exclusive);
    if row.wants("arguments") {
        let arguments: Json = crosstie_broker::arguments::to_json(queue.arguments.as_table());
        row.json("arguments", &arguments);
    }
    match queue.kind {
        "quorum" => {
            row.text("leader", node);
            row.text("node", node);
            row.texts("members", [node]);
            row.texts("online", [node]);
        }
        "stream" => {
            row.texts("members", [node]);
            row.texts("online", [node]);
        }
        _ => row.text("node", node),
    }
    match detail.has_statistics {
        true => write_rates(api, found, row),
        false => write_totals(view, detail, row),
    }
    write_messages(view, detail, row);
}

/// The counters, and the messages with their changes.
fn write_rates(api: &Arc<Api>, found: &Found, row: &mut Row<'_, '_>) {
    row.text("state", "running");
    let wanted = [
        "message_stats",
        "messages",
        "messages_ready",
        "messages_unacknowledged",
    ];
    let details = wanted[1..].iter().map(|name| format!("{name}_details"));
    if !wanted.iter().any(|name| row.wants(name))
        && !details.into_iter().any(|name| row.wants(&name))
    {
        return;
    }
    let queue = &found.view.status;
    let figures = Figures {
        counters: stats::of_queue(&queue.tally),
        gauges: [
            queue.messages_ready as u64,
            queue.messages_unacknowledged as u64,
        ],
    };
    let sampler = &api.sampler;
    let key = sampler.key((&found.vhost, &queue.name));
    let rates = sampler.queues.rates(Instant::now(), key, figures);
    sampler.sweep_later(api.operators.context());
    stats::write_messages(figures.gauges, rates.gauges, row);
    stats::write_of_queue(&figures.counters, &rates.counters, row);
}

/// The number of messages, or that there are no statistics.
fn write_totals(view: &QueueView, detail: Detail, row: &mut Row<'_, '_>) {
    let queue = &view.status;
    if !detail.has_totals {
        return row.text("state", "live");
    }
    let (ready, held) = (queue.messages_ready, queue.messages_unacknowledged);
    row.text("state", "running");
    row.int("messages", ready + held);
    row.int("messages_ready", ready);
    row.int("messages_unacknowledged", held);
}

/// The messages and the consumers of a queue.
fn write_messages(view: &QueueView, detail: Detail, row: &mut Row<'_, '_>) {
    let queue = &view.status;
    let (ready, held) = (queue.messages_ready, queue.messages_unacknowledged);
    if !detail.has_statistics {
        let policy = queue.applied.as_ref().and_then(|applied| applied.policy());
        if let Some(policy) = policy {
            row.text("policy", policy.name());
        }
        return;
    }
    policies::write_of_queue(queue.applied.as_deref(), row);
    row.int("message_bytes", queue.message_bytes);
    row.int("consumers", queue.consumers);
    if queue.kind == "stream" {
        return;
    }
    let in_memory = queue.messages_in_memory.min(ready);
    row.int("messages_ram", in_memory + held);
    row.int("message_bytes_ready", queue.message_bytes);
    // RabbitMQ measures how long a queue waits for its consumers. Nothing here does.
    match queue.consumers {
        0 => row.int("consumer_capacity", 0),
        _ => row.null("consumer_capacity"),
    }
    match queue.consumers {
        0 => row.int("consumer_utilisation", 0),
        _ => row.null("consumer_utilisation"),
    }
    if queue.kind == "quorum" {
        row.int("messages_dlx", queue.dead_letters_kept);
        row.text_or_null(
            "single_active_consumer_ctag",
            view.active_consumer.as_deref(),
        );
        return;
    }
    row.int("messages_ready_ram", in_memory);
    row.int("messages_unacknowledged_ram", held);
    row.int("messages_paged_out", ready - in_memory);
    row.text_or_null("exclusive_consumer_tag", view.exclusive_consumer.as_deref());
    row.text_or_null(
        "single_active_consumer_tag",
        view.active_consumer.as_deref(),
    );
    row.null("head_message_timestamp");
    row.null("recoverable_slaves");
}
