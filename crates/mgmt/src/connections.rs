//! Connections: lists, and single ones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use crosstie_broker::arguments::to_json;
use crosstie_broker::inspection::ConnectionView;
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::list::{self, Source};
use crate::row::{self, Columns, Row};
use crate::sampler::Figures;
use crate::{node, stats};

/// The connections that the user sees: all with the tag `monitoring`, else the user's own.
pub(crate) fn visible(call: &Call<'_>) -> Vec<ConnectionView> {
    let mut found = call.api.operators.connection_views();
    if !call.caller.is_monitoring() {
        found.retain(|found| found.status.user == call.caller.name());
    }
    found
}

pub(crate) fn connections(call: &Call<'_>) -> Answer {
    listed(call, visible(call))
}

pub(crate) fn of_vhost(call: &Call<'_>, vhost: &str) -> Answer {
    if call.vhost(vhost).is_err() {
        return Answer::not_found();
    }
    let mut found = visible(call);
    found.retain(|found| found.status.vhost == vhost);
    listed(call, found)
}

pub(crate) fn of_user(call: &Call<'_>, user: &str) -> Answer {
    let mut found = visible(call);
    found.retain(|found| found.status.user == user);
    listed(call, found)
}

fn listed(call: &Call<'_>, mut found: Vec<ConnectionView>) -> Answer {
    found.sort_by(|a, b| a.title.cmp(&b.title));
    let node = node::name(call.api);
    let api = Arc::clone(call.api);
    let found = found.into_iter().map(Arc::new).collect();
    let is_operator = call.query.rows.is_some();
    let source = Source::of(found, move |found: &Arc<ConnectionView>, row| {
        // RabbitMQ's API has no name of this kind; its command-line tools have.
        if is_operator {
            row.int("number", found.status.number);
        }
        write(found, &node, true, row);
        write_octets(&api, found, row);
    });
    list::pages(&call.query, source, |found| found.title.to_string())
}

pub(crate) fn connection(call: &Call<'_>, name: &str) -> Answer {
    let mut found = visible(call).into_iter();
    let Some(found) = found.find(|found| *found.title == *name) else {
        return Answer::not_found();
    };
    let mut out = Vec::new();
    row::object(&mut out, &Columns::default(), |row| {
        write(&found, &node::name(call.api), false, row);
        write_octets(call.api, &found, row);
    });
    Answer::of_bytes(out)
}

/// Closes a connection.
pub(crate) fn close(call: &Call<'_>, name: &str) -> Result<Answer, Answer> {
    let mut found = visible(call).into_iter();
    let found = found.find(|found| *found.title == *name);
    let found = found.ok_or_else(Answer::not_found)?;
    close_one(call, &found);
    Ok(Answer::no_content())
}

/// Closes all connections of a user.
pub(crate) fn close_of_user(call: &Call<'_>, user: &str) -> Result<Answer, Answer> {
    for found in visible(call) {
        if found.status.user == user {
            close_one(call, &found);
        }
    }
    Ok(Answer::no_content())
}

fn close_one(call: &Call<'_>, found: &ConnectionView) {
    let reason = call.head.headers.reason.as_deref();
    let reason = reason.unwrap_or("Closed via management plugin");
    let number = found.status.number;
    call.api.operators.close_connection_saying(number, reason);
}

/// Values that only TLS connections have are null in lists, and empty in single objects, as in RabbitMQ.
const OF_TLS: [&str; 8] = [
    "ssl_protocol",
    "ssl_key_exchange",
    "ssl_cipher",
    "ssl_hash",
    "peer_cert_subject",
    "peer_cert_issuer",
    "peer_cert_validity",
    "peer_cert_fingerprint",
];

fn write(found: &ConnectionView, node: &str, is_listed: bool, row: &mut Row<'_, '_>) {
    let ConnectionView { status, about, .. } = found;
    row.text("name", &found.title);
    if !about.name.is_empty() {
        row.text("user_provided_name", &about.name);
    }
    row.text("node", node);
    row.text("vhost", &status.vhost);
    row.text("user", &status.user);
    row.text("user_who_performed_action", &status.user);
    row.text("state", status.state);
    row.text("type", "network");
    let protocol = match about.protocol {
        "" => "AMQP 0-9-1",
        other => other,
    };
    row.text("protocol", protocol);
    row.text("auth_mechanism", about.mechanism);
    let end = |address: Option<SocketAddr>| match address {
        Some(address) => (address.ip().to_string(), address.port()),
        None => ("unknown".to_owned(), 0),
    };
    let (host, port) = end(found.own);
    row.text("host", &host);
    row.int("port", port);
    let (peer_host, peer_port) = end(found.peer);
    row.text("peer_host", &peer_host);
    row.int("peer_port", peer_port);
    row.boolean("ssl", found.is_tls);
    for name in OF_TLS
        .iter()
        .filter(|name| **name != "peer_cert_fingerprint")
    {
        match is_listed {
            true => row.null(name),
            false => row.text(name, ""),
        }
    }
    row.int("send_pend", found.queued_bytes);
    row.int("channels", status.channels);
    row.int("channel_max", about.channels_max);
    row.int("frame_max", found.frame_bytes_max);
    row.int("timeout", about.heartbeat_s);
    let since = status.since.duration_since(UNIX_EPOCH);
    row.int(
        "connected_at",
        since.map_or(0, |since| since.as_millis() as u64),
    );
    if row.wants("client_properties") {
        row.json("client_properties", &client_properties(found));
    }
}

/// The bytes that came and went, and the system calls for them.
fn write_octets(api: &Arc<Api>, found: &ConnectionView, row: &mut Row<'_, '_>) {
    let octets = &found.octets;
    let counters = [octets.received_bytes, octets.sent_bytes];
    let sampler = &api.sampler;
    let key = sampler.key(found.status.number);
    let gauges = [];
    let rates = sampler
        .connections
        .rates(Instant::now(), key, Figures { counters, gauges });
    sampler.sweep_later(api.operators.context());
    stats::write_each(&stats::OF_CONNECTIONS, &counters, &rates.counters, row);
    row.int("recv_cnt", octets.reads);
    row.int("send_cnt", octets.writes);
}

/// The properties that the client has sent. Of a client of another node these are its product, version and name.
fn client_properties(found: &ConnectionView) -> Json {
    let mut properties = to_json(found.about.properties.table());
    if !found.about.name.is_empty() {
        properties["connection_name"] = found.about.name.as_str().into();
    }
    properties
}
