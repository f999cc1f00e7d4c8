//! The lists of a running node: the source of each, and the columns of its table.

use crosstie_client::{Arguments, args};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use super::realm::{ManagementRealm, Refused};
use crate::list::{Column, Show, column, extra_column, rare_column};

/// One kind of object.
pub(crate) struct List {
    source: Source,
    pub(crate) columns: &'static [Column],
}

/// The procedure `crossbar.worker.<id>.…` that lists the objects.
enum Source {
    /// Lists one vhost at a time.
    Vhost(&'static str),
    /// Lists all vhosts, or one.
    Vhosts(&'static str),
    /// Lists all WAMP realms, or one.
    Realms(&'static str),
    /// A list of the management API, whose rows have objects in them.
    Api(&'static str, fn(&mut Json)),
}

pub(crate) static QUEUES: List = List {
    source: Source::Vhost("get_amqp_queues"),
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("queue", Show::Text("name")),
        column("type", Show::Text("type")),
        column("ready", Show::Number("messages_ready")),
        column("unacked", Show::Number("messages_unacked")),
        column("consumers", Show::Number("consumers")),
        column("bytes", Show::Number("bytes")),
        column(
            "features",
            Show::Flags(&["durable", "exclusive", "auto_delete"]),
        ),
        column("arguments", Show::Arguments("arguments")),
        rare_column("policy", Show::Text("policy")),
        rare_column("operator policy", Show::Text("operator_policy")),
        rare_column(
            "effective policy",
            Show::Arguments("effective_policy_definition"),
        ),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(crate) static EXCHANGES: List = List {
    source: Source::Vhost("get_amqp_exchanges"),
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("exchange", Show::Text("name")),
        column("type", Show::Text("type")),
        column(
            "features",
            Show::Flags(&["durable", "auto_delete", "internal"]),
        ),
        column("arguments", Show::Arguments("arguments")),
        rare_column("policy", Show::Text("policy")),
        rare_column("operator policy", Show::Text("operator_policy")),
        rare_column(
            "effective policy",
            Show::Arguments("effective_policy_definition"),
        ),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(super) static BINDINGS: List = List {
    source: Source::Vhost("get_amqp_bindings"),
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("source", Show::Text("source")),
        column("destination", Show::Text("destination")),
        column("to", Show::Text("destination_type")),
        column("routing key", Show::Text("routing_key")),
        column("arguments", Show::Arguments("arguments")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(crate) static CONNECTIONS: List = List {
    source: Source::Vhosts("get_amqp_connections"),
    columns: &[
        column("connection", Show::Number("connection")),
        column("vhost", Show::Text("vhost")),
        column("user", Show::Text("user")),
        column("peer", Show::Text("peer")),
        column("channels", Show::Number("channels")),
        column("state", Show::Text("state")),
        column("since", Show::Text("since")),
        column("client", Show::Text("client")),
        column("name", Show::Text("name")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(super) static CHANNELS: List = List {
    source: Source::Api("channels", |row| {
        row["connection"] = row["connection_details"]["name"].take();
    }),
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("user", Show::Text("user")),
        column("connection", Show::Text("connection")),
        column("channel", Show::Number("number")),
        column("consumers", Show::Number("consumer_count")),
        column("unacked", Show::Number("messages_unacknowledged")),
        column("unconfirmed", Show::Number("messages_unconfirmed")),
        column("uncommitted", Show::Number("messages_uncommitted")),
        column("prefetch", Show::Number("prefetch_count")),
        column("features", Show::Flags(&["confirm", "transactional"])),
        extra_column("channel prefetch", Show::Number("global_prefetch_count")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(super) static CONSUMERS: List = List {
    source: Source::Api("consumers", |row| {
        let mut queue = row["queue"].take();
        row["vhost"] = queue["vhost"].take();
        row["queue"] = queue["name"].take();
        let mut channel = row["channel_details"].take();
        for (key, of_channel) in [
            ("user", "user"),
            ("connection", "connection_name"),
            ("channel", "number"),
        ] {
            row[key] = channel[of_channel].take();
        }
    }),
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("queue", Show::Text("queue")),
        column("consumer", Show::Text("consumer_tag")),
        column("user", Show::Text("user")),
        column("connection", Show::Text("connection")),
        column("channel", Show::Number("channel")),
        column("prefetch", Show::Number("prefetch_count")),
        column(
            "features",
            Show::Flags(&["ack_required", "exclusive", "active"]),
        ),
        column("arguments", Show::Arguments("arguments")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(crate) static SESSIONS: List = List {
    source: Source::Realms("get_router_sessions"),
    columns: &[
        column("session", Show::Number("session")),
        column("realm", Show::Text("realm")),
        column("authid", Show::Text("authid")),
        column("role", Show::Text("authrole")),
        column("peer", Show::Text("peer")),
        column("transport", Show::Text("transport")),
        column("serializer", Show::Text("serializer")),
        column("subscriptions", Show::Number("subscriptions")),
        column("registrations", Show::Number("registrations")),
        column("calls", Show::Number("calls")),
        column("since", Show::Text("since")),
        extra_column("method", Show::Text("authmethod")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(crate) static REGISTRATIONS: List = List {
    source: Source::Realms("get_router_registrations"),
    columns: &[
        column("registration", Show::Number("id")),
        column("realm", Show::Text("realm")),
        column("procedure", Show::Text("uri")),
        column("match", Show::Text("match")),
        column("invoke", Show::Text("invoke")),
        column("callees", Show::Number("callees")),
        column("since", Show::Text("since")),
        extra_column("worker", Show::Text("worker")),
    ],
};

pub(crate) static SUBSCRIPTIONS: List = List {
    source: Source::Realms("get_router_subscriptions"),
    columns: &[
        column("subscription", Show::Number("id")),
        column("realm", Show::Text("realm")),
        column("topic", Show::Text("uri")),
        column("match", Show::Text("match")),
        column("subscribers", Show::Number("subscribers")),
        column("since", Show::Text("since")),
        extra_column("worker", Show::Text("worker")),
    ],
};

/// Takes a part of a list; returns whether another one is wanted.
pub(crate) type Take<'a> = dyn FnMut(Vec<Json>) -> bool + 'a;

/// Reads all objects, worker by worker, vhost by vhost; each with its `worker`. `within` is one vhost or realm.
pub(crate) async fn read(
    realm: &ManagementRealm,
    list: &List,
    within: Option<&str>,
    take: &mut Take<'_>,
) -> Result<(), Refused> {
    match list.source {
        Source::Vhost(procedure) => {
            for (worker, vhost) in vhosts(realm, within).await? {
                let arguments = |offset| args![vhost.as_str(), offset];
                if !parts(realm, &worker, procedure, arguments, take).await? {
                    return Ok(());
                }
            }
        }
        Source::Vhosts(procedure) => {
            for worker in brokers(realm, within).await? {
                let arguments = |offset| args![within, offset];
                if !parts(realm, &worker, procedure, arguments, take).await? {
                    return Ok(());
                }
            }
        }
        Source::Realms(procedure) => return of_realms(realm, procedure, within, take).await,
        Source::Api(name, shape) => {
            let path = match within {
                None => name.to_owned(),
                Some(vhost) => {
                    let vhost = utf8_percent_encode(vhost, NON_ALPHANUMERIC);
                    match name {
                        "channels" => format!("vhosts/{vhost}/{name}"),
                        _ => format!("{name}/{vhost}"),
                    }
                }
            };
            for worker in brokers(realm, within).await? {
                if !api_parts(realm, &worker, &path, shape, take).await? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The vhosts of each worker that speaks AMQP, or the one of that name.
async fn vhosts(
    realm: &ManagementRealm,
    within: Option<&str>,
) -> Result<Vec<(String, String)>, Refused> {
    let mut found = Vec::new();
    for broker in realm.brokers().await? {
        let meant = |name: &String| within.is_none_or(|vhost| name == vhost);
        let vhosts = broker.vhosts.into_iter().filter(meant);
        found.extend(vhosts.map(|vhost| (broker.worker.clone(), vhost)));
    }
    match within {
        Some(vhost) if found.is_empty() => {
            Err(Refused::Here(format!("there is no vhost '{vhost}'")))
        }
        _ => Ok(found),
    }
}

/// The workers that speak AMQP, or those with that vhost.
async fn brokers(realm: &ManagementRealm, within: Option<&str>) -> Result<Vec<String>, Refused> {
    if within.is_none() {
        let brokers = realm.brokers().await?;
        return Ok(brokers.into_iter().map(|broker| broker.worker).collect());
    }
    let found = vhosts(realm, within).await?;
    Ok(found.into_iter().map(|(worker, _)| worker).collect())
}

async fn of_realms(
    realm: &ManagementRealm,
    procedure: &str,
    within: Option<&str>,
    take: &mut Take<'_>,
) -> Result<(), Refused> {
    let mut is_there = within.is_none();
    for worker in realm.routers().await? {
        let arguments = |offset| args![within, offset];
        match parts(realm, &worker, procedure, arguments, take).await {
            Ok(true) => is_there = true,
            Ok(false) => return Ok(()),
            // Another worker may have it.
            Err(refused) if within.is_some() && refused.is_no_such_object() => {}
            Err(refused) => return Err(refused),
        }
    }
    match (is_there, within) {
        (false, Some(name)) => Err(Refused::Here(format!("there is no realm '{name}'"))),
        _ => Ok(()),
    }
}

/// Reads a list that arrives in parts; an empty one is its end. Returns whether more is wanted.
async fn parts(
    realm: &ManagementRealm,
    worker: &str,
    procedure: &str,
    arguments: impl Fn(usize) -> Arguments,
    take: &mut Take<'_>,
) -> Result<bool, Refused> {
    let procedure = format!("crossbar.worker.{worker}.{procedure}");
    let mut offset = 0;
    loop {
        let Json::Array(part) = realm.call(&procedure, arguments(offset)).await? else {
            return Ok(true);
        };
        if part.is_empty() {
            return Ok(true);
        }
        offset += part.len();
        if !take(with_worker(part, worker, |_| {})) {
            return Ok(false);
        }
    }
}

/// Rows of a full part of a list of the management API.
pub(crate) const API_PART_MAX: usize = 5_000;

async fn api_parts(
    realm: &ManagementRealm,
    worker: &str,
    path: &str,
    shape: fn(&mut Json),
    take: &mut Take<'_>,
) -> Result<bool, Refused> {
    let procedure = format!("crossbar.worker.{worker}.get_amqp_management");
    let mut offset = 0;
    loop {
        let mut answer = realm.call(&procedure, args![path, offset]).await?;
        let Json::Array(part) = answer["body"].take() else {
            return Ok(true);
        };
        let is_last = part.len() < API_PART_MAX;
        offset += part.len();
        if !take(with_worker(part, worker, shape)) {
            return Ok(false);
        }
        if is_last {
            return Ok(true);
        }
    }
}

fn with_worker(rows: Vec<Json>, worker: &str, shape: fn(&mut Json)) -> Vec<Json> {
    let rows = rows.into_iter().filter(Json::is_object).map(|mut row| {
        shape(&mut row);
        row["worker"] = worker.into();
        row
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::table;

    #[test]
    fn columns_are_aligned_and_names_are_harmless() {
        let rows = [
            json!({"vhost": "/", "name": "a\u{1b}[2J\nb", "type": "quorum", "messages_ready": 5, "messages_unacked": 0,
                "consumers": 12, "bytes": 4096, "durable": true, "exclusive": false,
                "auto_delete": true, "arguments": {"x-expires": 5}, "policy": "cap", "operator_policy": null,
                "effective_policy_definition": {"max-length": 5}}),
            json!({"vhost": "nova", "name": "conductor", "type": "classic", "messages_ready": 1234,
                "messages_unacked": 1, "consumers": 0, "bytes": 0, "durable": false,
                "exclusive": false, "auto_delete": false, "arguments": {}}),
        ];
        let text = table(QUEUES.columns, &rows);
        let lines: Vec<&str> = text.lines().collect();
        let (rule, [titles, first, second]) = (lines[1], [lines[0], lines[2], lines[3]]);
        assert!(rule.chars().all(|c| c == '─'), "{rule}");
        assert_eq!(
            [titles, first, second],
            [
                "vhost   queue           type      ready   unacked   consumers   bytes   \
                 features              arguments         policy   effective policy",
                "/       a\\u{1b}[2J\\nb   quorum        5         0          12    4096   \
                 durable auto-delete   {\"x-expires\":5}   cap      {\"max-length\":5}",
                "nova    conductor       classic    1234         1           0       0",
            ]
        );
        assert_eq!(table(EXCHANGES.columns, &[]).lines().count(), 2);
    }
}
