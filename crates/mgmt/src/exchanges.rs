//! Exchanges: lists and single ones.

use std::sync::Arc;
use std::time::Instant;

use crosstie_broker::arguments::to_json;
use crosstie_queues::ExchangeStatus;
use serde_json::json;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::stats;

/// An exchange and its vhost.
#[derive(Clone)]
struct Found {
    vhost: Arc<str>,
    exchange: Arc<ExchangeStatus>,
}

pub(crate) fn exchanges(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    let vhosts = match call.vhosts(vhost) {
        Ok(vhosts) => vhosts,
        Err(answer) => return answer,
    };
    let mut items = Vec::new();
    for vhost in vhosts {
        let found = vhost.exchange_views().into_iter();
        items.extend(found.map(|exchange| Found {
            vhost: Arc::clone(vhost.name()),
            exchange: Arc::new(exchange),
        }));
    }
    let api = Arc::clone(call.api);
    let source = Source::of(items, move |found, row| write(&api, found, row));
    list::pages(&call.query, source, |found| found.exchange.name.to_string())
}

pub(crate) fn exchange(call: &Call<'_>, vhost: &str, name: &str) -> Answer {
    let found = call.vhost(vhost).ok().and_then(|vhost| {
        Some(Found {
            exchange: Arc::new(vhost.exchange_view(name)?),
            vhost: Arc::clone(vhost.name()),
        })
    });
    let Some(found) = found else {
        return Answer::not_found();
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| {
        write(call.api, &found, row);
        row.json("incoming", &json!([]));
        row.json("outgoing", &json!([]));
    });
    Answer::of_bytes(out)
}

fn write(api: &Arc<Api>, found: &Found, row: &mut Row<'_, '_>) {
    let Found { vhost, exchange } = found;
    row.text("name", &exchange.name);
    row.text("vhost", vhost);
    row.text("type", &exchange.kind);
    row.boolean("durable", exchange.durable);
    row.boolean("auto_delete", exchange.auto_delete);
    row.boolean("internal", exchange.internal);
    if row.wants("arguments") {
        row.json("arguments", &to_json(exchange.arguments.as_table()));
    }
    if let Some(policy) = exchange
        .applied
        .as_ref()
        .and_then(|applied| applied.policy())
    {
        row.text("policy", policy.name());
    }
    let is_predeclared = exchange.name.is_empty() || exchange.name.starts_with("amq.");
    if is_predeclared {
        row.text("user_who_performed_action", "rmq-internal");
    }
    if row.wants("message_stats") && exchange.tally.published > 0 {
        let sampler = &api.sampler;
        let key = sampler.key((vhost, &exchange.name));
        let figures = Figures {
            counters: [exchange.tally.published, exchange.tally.routed],
            gauges: [],
        };
        let rates = sampler.exchanges.rates(Instant::now(), key, figures);
        sampler.sweep_later(api.operators.context());
        stats::write_of_exchange(&figures.counters, &rates.counters, row);
    }
}
