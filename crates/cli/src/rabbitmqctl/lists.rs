//! Lists of queues, exchanges, bindings, connections, channels, consumers and feature flags.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};

use super::columns;
use super::command::{Command, MANY, Run, ctl};
use super::failure::Failure;
use super::output::{Output, Table};

const COLUMNS: &str = "[<column> ...]";
const OF_QUEUES: &[&str] = &["online", "offline", "local", "table-headers"];
const NO_HEADERS: &[&str] = &["table-headers"];

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 7] = [
    ctl("list_queues", (0, MANY), COLUMNS, OF_QUEUES, queues).both(),
    ctl("list_exchanges", (0, MANY), COLUMNS, NO_HEADERS, |run| of_vhost(run, &EXCHANGES)).both(),
    ctl("list_bindings", (0, MANY), COLUMNS, NO_HEADERS, |run| of_vhost(run, &BINDINGS)).both(),
    ctl("list_connections", (0, MANY), COLUMNS, NO_HEADERS, |run| list(run, &CONNECTIONS)).both(),
    ctl("list_channels", (0, MANY), COLUMNS, NO_HEADERS, |run| list(run, &CHANNELS)).both(),
    ctl("list_consumers", (0, MANY), COLUMNS, NO_HEADERS, |run| of_vhost(run, &CONSUMERS)).both(),
    ctl("list_feature_flags", (0, MANY), COLUMNS, NO_HEADERS, |run| list(run, &FLAGS)).both(),
];

/// A list of the management API, as a command shows it.
struct List {
    /// Below `/api`. The vhost is added to lists of one vhost.
    path: &'static str,
    /// Without the vhost and the dots.
    banner: &'static str,
    dots: &'static str,
    columns: &'static [(&'static str, Source)],
    usual: &'static [&'static str],
}

/// The place of a column's value in a row of the API.
#[derive(Clone, Copy)]
enum Source {
    /// The field of the column's name.
    Same,
    /// Another field, with dots for those of objects.
    Field(&'static str),
    /// This text, or an object's field if that is not empty: RabbitMQ has no such objects here.
    Fixed(&'static str),
    /// The process of a connection, by which another command names it.
    Connection,
    /// The process of a channel.
    Channel,
}

use Source::{Channel, Connection, Field, Fixed, Same};

static QUEUES: List = List {
    path: "queues",
    banner: "Listing queues for vhost",
    dots: " ...",
    usual: &["name", "messages"],
    columns: &[
        ("name", Same),
        ("durable", Same),
        ("auto_delete", Same),
        ("arguments", Same),
        ("policy", Same),
        ("exclusive", Same),
        ("exclusive_consumer_tag", Same),
        ("messages_ready", Same),
        ("messages_unacknowledged", Same),
        ("messages", Same),
        ("messages_ready_ram", Same),
        ("messages_unacknowledged_ram", Same),
        ("messages_ram", Same),
        ("message_bytes", Same),
        ("message_bytes_ready", Same),
        ("consumers", Same),
        ("consumer_utilisation", Same),
        ("consumer_capacity", Same),
        ("head_message_timestamp", Same),
        ("slave_pids", Fixed("")),
        ("synchronised_slave_pids", Fixed("")),
        ("state", Same),
        ("type", Same),
        ("leader", Same),
        ("members", Same),
        ("online", Same),
    ],
};

static EXCHANGES: List = List {
    path: "exchanges",
    banner: "Listing exchanges for vhost",
    dots: " ...",
    usual: &["name", "type"],
    columns: &[
        ("name", Same),
        ("type", Same),
        ("durable", Same),
        ("auto_delete", Same),
        ("internal", Same),
        ("arguments", Same),
        ("policy", Same),
    ],
};

static BINDINGS: List = List {
    path: "bindings",
    banner: "Listing bindings for vhost",
    dots: "...",
    usual: &[
        "source_name",
        "source_kind",
        "destination_name",
        "destination_kind",
        "routing_key",
        "arguments",
    ],
    columns: &[
        ("source_name", Field("source")),
        ("source_kind", Fixed("exchange")),
        ("destination_name", Field("destination")),
        ("destination_kind", Field("destination_type")),
        ("routing_key", Same),
        ("arguments", Same),
    ],
};

static CONNECTIONS: List = List {
    path: "connections",
    banner: "Listing connections",
    dots: " ...",
    usual: &["user", "peer_host", "peer_port", "state"],
    columns: &[
        ("pid", Connection),
        ("name", Same),
        ("port", Same),
        ("host", Same),
        ("peer_port", Same),
        ("peer_host", Same),
        ("ssl", Same),
        ("ssl_protocol", Same),
        ("ssl_key_exchange", Same),
        ("ssl_cipher", Same),
        ("ssl_hash", Same),
        ("peer_cert_subject", Same),
        ("peer_cert_issuer", Same),
        ("peer_cert_validity", Same),
        ("state", Same),
        ("channels", Same),
        ("protocol", Fixed("{0,9,1}")),
        ("auth_mechanism", Same),
        ("user", Same),
        ("vhost", Same),
        ("timeout", Same),
        ("frame_max", Same),
        ("channel_max", Same),
        ("client_properties", Same),
        ("send_pend", Same),
        ("connected_at", Same),
    ],
};

static CHANNELS: List = List {
    path: "channels",
    banner: "Listing channels",
    dots: " ...",
    usual: &["pid", "user", "consumer_count", "messages_unacknowledged"],
    columns: &[
        ("pid", Channel),
        ("connection", Connection),
        ("name", Same),
        ("number", Same),
        ("user", Same),
        ("vhost", Same),
        ("transactional", Same),
        ("confirm", Same),
        ("consumer_count", Same),
        ("messages_unacknowledged", Same),
        ("messages_uncommitted", Same),
        ("acks_uncommitted", Same),
        ("messages_unconfirmed", Same),
        ("prefetch_count", Same),
        ("global_prefetch_count", Same),
    ],
};

static CONSUMERS: List = List {
    path: "consumers",
    banner: "Listing consumers in vhost",
    dots: " ...",
    usual: &[
        "queue_name",
        "channel_pid",
        "consumer_tag",
        "ack_required",
        "prefetch_count",
        "active",
        "arguments",
    ],
    columns: &[
        ("queue_name", Field("queue.name")),
        ("channel_pid", Channel),
        ("consumer_tag", Same),
        ("ack_required", Same),
        ("prefetch_count", Same),
        ("active", Same),
        ("activity_status", Same),
        ("arguments", Same),
    ],
};

static FLAGS: List = List {
    path: "feature-flags",
    banner: "Listing feature flags",
    dots: " ...",
    usual: &["name", "state"],
    columns: &[
        ("name", Same),
        ("state", Same),
        ("stability", Same),
        ("provided_by", Same),
        ("desc", Same),
        ("doc_url", Same),
    ],
};

/// Seconds that RabbitMQ waits for a queue.
const QUEUES_TIMEOUT_S: i64 = 60;

fn queues(run: &Run) -> Result<Output, Failure> {
    let wanted = wanted(run, &QUEUES)?;
    let timeout_s = run.words.number("timeout").unwrap_or(QUEUES_TIMEOUT_S);
    run.announce(&format!("Timeout: {timeout_s}.0 seconds ..."))?;
    announce_of_vhost(run, &QUEUES)?;
    // Every queue that is listed is on this node, which runs.
    match run.words.has("offline") {
        true => Ok(Output::Table(Table {
            is_stream: true,
            ..Table::of(&wanted, &[])
        })),
        false => read(run, &QUEUES, &wanted, Some(run.vhost())),
    }
}

fn of_vhost(run: &Run, list: &List) -> Result<Output, Failure> {
    let wanted = wanted(run, list)?;
    announce_of_vhost(run, list)?;
    read(run, list, &wanted, Some(run.vhost()))
}

fn announce_of_vhost(run: &Run, list: &List) -> Result<(), Failure> {
    let vhost = run.vhost();
    run.announce(&format!("{} {vhost}{}", list.banner, list.dots))
}

fn list(run: &Run, list: &List) -> Result<Output, Failure> {
    let wanted = wanted(run, list)?;
    run.announce(&format!("{}{}", list.banner, list.dots))?;
    read(run, list, &wanted, None)
}

fn wanted<'l>(run: &Run, list: &'l List) -> Result<Vec<&'l str>, Failure> {
    let known: Vec<&str> = list.columns.iter().map(|(name, _)| *name).collect();
    columns::wanted(run, &known, list.usual)
}

/// Reads the fields of the columns only. An absent vhost has no rows.
fn read(run: &Run, list: &List, wanted: &[&str], vhost: Option<&str>) -> Result<Output, Failure> {
    let sources: Vec<(&str, Source)> = wanted
        .iter()
        .filter_map(|name| list.columns.iter().find(|(known, _)| known == name))
        .copied()
        .collect();
    let has_processes = sources
        .iter()
        .any(|(_, of)| matches!(of, Channel | Connection));
    let numbers = match has_processes {
        true => Processes::read(run)?,
        false => Processes::default(),
    };
    let fields: Vec<&str> = sources.iter().flat_map(|column| fields(*column)).collect();
    let of_vhost = vhost.map(|vhost| format!("/{}", encoded(vhost)));
    let path = format!(
        "{}{}?columns={}",
        list.path,
        of_vhost.unwrap_or_default(),
        fields.join(",")
    );
    let found = run.session.list(&path)?;
    if let (None, Some(vhost)) = (&found, vhost)
        && run.session.has_vhost(vhost)?
    {
        return Err(Failure::refused(&format!(
            "vhost '{vhost}' is not open on this node; `crosstie amqp list` names its owner"
        )));
    }
    let rows = found.unwrap_or_default();
    let rows = rows.iter().map(|row| {
        let values = sources.iter();
        values.map(|column| value(row, *column, &numbers)).collect()
    });
    Ok(Output::Table(Table {
        columns: wanted.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows.collect(),
        is_stream: true,
        has_header: true,
    }))
}

/// The fields of the API that a column is made of.
fn fields((name, source): (&'static str, Source)) -> Vec<&'static str> {
    match source {
        Same => vec![name],
        Field(path) => vec![path.split('.').next().unwrap_or(path)],
        Fixed(_) => Vec::new(),
        Connection | Channel => vec!["name", "number", "connection_details", "channel_details"],
    }
}

fn value(row: &Json, (name, source): (&'static str, Source), processes: &Processes) -> Json {
    match source {
        Same if matches!(name, "arguments" | "client_properties") => triples(&row[name]),
        Same => row[name].clone(),
        Field(path) => path.split('.').fold(row, |value, key| &value[key]).clone(),
        Fixed(text) => text.into(),
        Connection => processes.of_connection(row).into(),
        Channel => processes.of_channel(row).into(),
    }
}

/// A table of AMQP as RabbitMQ's tools have them: lists of name, type and value.
fn triples(arguments: &Json) -> Json {
    let pairs = arguments.as_object().into_iter().flatten();
    let triples = pairs.map(|(name, value)| json!([name, type_of(value), value]));
    triples.collect()
}

/// The type in AMQP that clients usually send for a value.
fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "void",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "double",
        Json::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
            "signedint"
        }
        Json::Number(_) => "long",
        Json::String(_) => "longstr",
        Json::Array(_) => "array",
        Json::Object(_) => "table",
    }
}

/// The names that stand for RabbitMQ's processes: `<crosstie@node-1.1.7.0>` is the connection with number 7.
#[derive(Default)]
struct Processes {
    node: String,
    /// By the name of the connection.
    numbers: HashMap<String, u64>,
}

impl Processes {
    fn read(run: &Run) -> Result<Self, Failure> {
        let rows = run.session.list("connections?columns=name,number")?;
        let rows = rows.unwrap_or_default();
        let numbers = rows.iter().filter_map(|row| {
            let name = row["name"].as_str()?.to_owned();
            Some((name, row["number"].as_u64()?))
        });
        Ok(Self {
            node: run.session.name()?.to_owned(),
            numbers: numbers.collect(),
        })
    }

    fn of_connection(&self, row: &Json) -> String {
        let name = row["connection_details"]["name"].as_str();
        self.named(name.or_else(|| row["name"].as_str()), 0)
    }

    fn of_channel(&self, row: &Json) -> String {
        let of_consumer = &row["channel_details"];
        let name = of_consumer["connection_name"].as_str();
        let name = name.or_else(|| row["connection_details"]["name"].as_str());
        let number = of_consumer["number"]
            .as_u64()
            .or_else(|| row["number"].as_u64());
        self.named(name, number.unwrap_or_default())
    }

    fn named(&self, connection: Option<&str>, channel: u64) -> String {
        let number = connection.and_then(|name| self.numbers.get(name));
        format!(
            "<{}.1.{}.{channel}>",
            self.node,
            number.copied().unwrap_or_default()
        )
    }
}

/// Characters beside letters and digits that need no escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A text as a segment of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::output::cell;
    use super::*;

    /// RabbitMQ's Java client looks for a connection by its name in that form.
    #[test]
    fn tables_of_amqp_are_printed_as_terms() {
        let row = json!({"client_properties": {"product": "RabbitMQ", "connection_name": "c1"}});
        let value = value(&row, ("client_properties", Same), &Processes::default());
        let expected = r#"[{"product","RabbitMQ"},{"connection_name","c1"}]"#;
        assert_eq!(cell(&value), expected);
    }
}
