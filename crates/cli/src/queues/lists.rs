//! The lists: the procedure of each, and the columns of its table.

use crosstie_client::args;
use serde_json::Value as Json;

use super::realm::{ManagementRealm, Refused};

/// One kind of object.
pub(crate) struct List {
    /// `crossbar.worker.<id>.<procedure>`.
    pub(super) procedure: &'static str,
    /// The procedure lists one vhost at a time.
    is_by_vhost: bool,
    pub(super) columns: &'static [Column],
}

/// A column of the table.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) value: Show,
    /// It is left out if all of its cells are empty.
    pub(crate) is_optional: bool,
}

/// The content of a cell.
pub(crate) enum Show {
    Text(&'static str),
    /// Aligned to the right.
    Number(&'static str),
    /// The names of those that are true.
    Flags(&'static [&'static str]),
    /// An object, in the shortest form.
    Arguments(&'static str),
    /// Any value but null, in the shortest form.
    Json(&'static str),
    /// A list of texts.
    Words(&'static str),
}

pub(crate) const fn column(title: &'static str, value: Show) -> Column {
    Column {
        title,
        value,
        is_optional: false,
    }
}

/// A column for a feature that few use.
const fn rare_column(title: &'static str, value: Show) -> Column {
    Column {
        is_optional: true,
        ..column(title, value)
    }
}

pub(crate) static QUEUES: List = List {
    procedure: "get_amqp_queues",
    is_by_vhost: true,
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
    ],
};

pub(super) static EXCHANGES: List = List {
    procedure: "get_amqp_exchanges",
    is_by_vhost: true,
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
    ],
};

pub(super) static BINDINGS: List = List {
    procedure: "get_amqp_bindings",
    is_by_vhost: true,
    columns: &[
        column("vhost", Show::Text("vhost")),
        column("source", Show::Text("source")),
        column("destination", Show::Text("destination")),
        column("to", Show::Text("destination_type")),
        column("routing key", Show::Text("routing_key")),
        column("arguments", Show::Arguments("arguments")),
    ],
};

pub(super) static CONNECTIONS: List = List {
    procedure: "get_amqp_connections",
    is_by_vhost: false,
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
    ],
};

pub(super) static SESSIONS: List = List {
    procedure: "get_router_sessions",
    is_by_vhost: false,
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
    ],
};

/// All objects, worker by worker, vhost by vhost; each with its `worker`.
pub(crate) async fn read(
    realm: &ManagementRealm,
    list: &List,
    vhost: Option<&str>,
) -> Result<Vec<Json>, Refused> {
    let mut rows = Vec::new();
    let mut is_there = vhost.is_none();
    for broker in realm.brokers().await? {
        let mut vhosts = broker.vhosts;
        vhosts.retain(|name| vhost.is_none_or(|vhost| name == vhost));
        is_there |= !vhosts.is_empty();
        let asked: Vec<Option<String>> = match list.is_by_vhost || vhost.is_some() {
            true => vhosts.into_iter().map(Some).collect(),
            false => vec![None],
        };
        let procedure = format!("crossbar.worker.{}.{}", broker.worker, list.procedure);
        for vhost in asked {
            let from = rows.len();
            // A list arrives in parts; an empty one is its end.
            loop {
                let arguments = args![vhost.clone(), rows.len() - from];
                let Json::Array(part) = realm.call(&procedure, arguments).await? else {
                    break;
                };
                if part.is_empty() {
                    break;
                }
                rows.extend(part.into_iter().map(|mut row| {
                    row["worker"] = broker.worker.as_str().into();
                    row
                }));
            }
        }
    }
    match (is_there, vhost) {
        (false, Some(vhost)) => Err(Refused::Here(format!("there is no vhost '{vhost}'"))),
        _ => Ok(rows),
    }
}
