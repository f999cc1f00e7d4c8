//! Families of the node: what it is, its bounds, and counters that never fall.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crosstie_broker::sums::{Churn, Octets};
use crosstie_queues::{Counts, Deliveries, QueueKind, SIZES};

use super::text::{Family, Kind, Text, counter, gauge, labels, untyped};
use crate::call::Api;
use crate::{node, process, stats};

const PROTOCOL: &str = "protocol=\"amqp091\"";

/// The figures of the node, read at one time.
pub(super) struct Node {
    /// Counters of all vhosts, also of those that are gone.
    counters: Counts,
    /// Gauges of the open vhosts.
    present: Counts,
    octets: Octets,
    churn: Churn,
    /// The epochs of replicated vhosts.
    terms: u64,
    /// The longest of the vhosts.
    commit_latency: Duration,
}

impl Node {
    pub(super) fn read(api: &Api) -> Self {
        let broker = api.operators.broker();
        let mut present = Counts::default();
        let mut commit_latency = Duration::ZERO;
        for vhost in broker.vhosts() {
            commit_latency = commit_latency.max(vhost.commit_latency());
            let totals = vhost.totals();
            present.connections += totals.connections;
            present.channels += totals.channels;
            present.consumers += totals.consumers;
            present.queues += totals.queues;
            present.publishers += totals.publishers;
            present.recorded += totals.recorded;
            present.stored += totals.stored;
        }
        let replicated = broker.replicated().iter();
        Self {
            counters: broker.counters(),
            commit_latency,
            present,
            octets: broker.octets(),
            churn: broker.churn(),
            terms: replicated.map(|vhost| vhost.seen().epoch).sum(),
        }
    }

    /// The families that each answer has.
    pub(super) fn write_identity(api: &Api, endpoint: &str, text: &mut Text<'_>) {
        let particulars = &api.operators.broker().particulars;
        let version = particulars.version.as_str();
        let crosstie = concat!("Crosstie ", env!("CARGO_PKG_VERSION"));
        let build = untyped("build_info", "RabbitMQ's version, and Crosstie's");
        text.begin(&build);
        let pairs = [
            ("rabbitmq_version", version),
            ("prometheus_plugin_version", version),
            ("prometheus_client_version", env!("CARGO_PKG_VERSION")),
            ("erlang_version", crosstie),
        ];
        text.sample(build.name, &labels(pairs), 1);
        let identity = untyped("identity_info", "The node and its cluster");
        text.begin(&identity);
        let cluster = particulars.cluster_name.as_str();
        let name = node::name(api);
        let pairs = [
            ("rabbitmq_node", name.as_str()),
            ("rabbitmq_cluster", cluster),
            ("rabbitmq_cluster_permanent_id", cluster),
            ("rabbitmq_endpoint", endpoint),
        ];
        text.sample(identity.name, &labels(pairs), 1);
    }

    /// The families of the node that `/metrics/detailed` has, too: those that are wanted; `None`: all.
    pub(super) fn write_parts(&self, api: &Api, wanted: Option<&[String]>, text: &mut Text<'_>) {
        let wants = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
        if wants("connection_churn_metrics") {
            self.write_churn(text);
        }
        if wants("node_coarse_metrics") {
            write_use(api, text);
        }
        if wants("node_metrics") {
            write_bounds(api, text);
        }
        if wants("ra_metrics") {
            self.write_journal(text);
        }
        if wants("auth_attempt_metrics") {
            write_logins(api, text);
        }
    }

    /// The families without a part in `/metrics/detailed`.
    pub(super) fn write_whole(&self, api: &Api, text: &mut Text<'_>) {
        let flow = &api.operators.broker().shared.flow;
        let help = "1 while the alarm is in effect";
        text.single(untyped("alarms_file_descriptor_limit", help), 0);
        let is_low = u8::from(flow.is_disk_low());
        text.single(untyped("alarms_free_disk_space_watermark", help), is_low);
        let is_full = u8::from(flow.is_memory_full());
        text.single(untyped("alarms_memory_used_watermark", help), is_full);
        let present = &self.present;
        for (family, count) in [
            (
                gauge("connections", "Connections open"),
                present.connections,
            ),
            (gauge("channels", "Channels open"), present.channels),
            (gauge("queues", "Queues"), present.queues),
            (gauge("consumers", "Consumers"), present.consumers),
        ] {
            text.single(family, count);
        }
        self.write_global(text);
        self.write_deliveries(text);
        self.write_sizes(text);
    }

    /// In the place of the sums of objects' counters.
    pub(super) fn write_sums(&self, text: &mut Text<'_>) {
        let octets = &self.octets;
        let names = [
            ("connection_incoming_bytes_total", octets.received_bytes),
            ("connection_outgoing_bytes_total", octets.sent_bytes),
            ("connection_incoming_packets_total", octets.reads),
            ("connection_outgoing_packets_total", octets.writes),
            ("queue_messages_published_total", self.counters.routed),
        ];
        let [published, confirmed, returned, dropped, of_queues @ ..] =
            stats::of_counts(&self.counters);
        let of_channels = [
            ("channel_messages_published_total", published),
            ("channel_messages_confirmed_total", confirmed),
            ("channel_messages_unroutable_returned_total", returned),
            ("channel_messages_unroutable_dropped_total", dropped),
        ];
        let names_of_queues = [
            "channel_messages_delivered_ack_total",
            "channel_messages_delivered_total",
            "channel_get_ack_total",
            "channel_get_total",
            "channel_get_empty_total",
            "channel_messages_redelivered_total",
            "channel_messages_acked_total",
        ];
        let of_queues = names_of_queues.into_iter().zip(of_queues);
        for (name, count) in names.into_iter().chain(of_channels).chain(of_queues) {
            text.single(counter(name, "Of all since the start"), count);
        }
        let consumers = gauge("channel_consumers", "Consumers of all channels");
        text.single(consumers, self.present.consumers);
        let channels = gauge("connection_channels", "Channels of all connections");
        text.single(channels, self.present.channels);
    }

    fn write_churn(&self, text: &mut Text<'_>) {
        let names = [
            "connections_opened_total",
            "connections_closed_total",
            "channels_opened_total",
            "channels_closed_total",
            "queues_declared_total",
            "queues_created_total",
            "queues_deleted_total",
        ];
        let counts = stats::of_churn(self.churn, &self.counters);
        for (name, count) in names.into_iter().zip(counts) {
            text.single(counter(name, "Since the start"), count);
        }
    }

    fn write_global(&self, text: &mut Text<'_>) {
        let counts = &self.counters;
        let dropped = counts.unroutable.saturating_sub(counts.returned);
        for (name, count) in [
            ("global_messages_received_total", counts.published),
            (
                "global_messages_received_confirm_total",
                counts.published_to_confirm,
            ),
            ("global_messages_routed_total", counts.routed),
            ("global_messages_confirmed_total", counts.confirmed),
            ("global_messages_unroutable_dropped_total", dropped),
            ("global_messages_unroutable_returned_total", counts.returned),
        ] {
            let family = counter(name, "Of all vhosts since the start");
            text.begin(&family);
            text.sample(name, PROTOCOL, count);
        }
        for (name, help, count) in [
            (
                "global_publishers",
                "Channels that have published",
                self.present.publishers,
            ),
            ("global_consumers", "Consumers", self.present.consumers),
        ] {
            text.begin(&gauge(name, help));
            text.sample(name, PROTOCOL, count);
        }
    }

    fn write_deliveries(&self, text: &mut Text<'_>) {
        for (name, read) in OF_TYPES {
            text.begin(&counter(name, "Of all queues of a type since the start"));
            for (kind, out) in QueueKind::ALL.iter().zip(&self.counters.deliveries) {
                let queue_type = labels([("protocol", "amqp091"), ("queue_type", kind.module())]);
                text.sample(name, &queue_type, read(out));
            }
        }
    }

    fn write_sizes(&self, text: &mut Text<'_>) {
        let family = Family {
            name: "message_size_bytes",
            kind: Kind::Histogram,
            help: "Sizes of the bodies of published messages",
        };
        text.begin(&family);
        let (sizes, count) = (&self.counters.sizes, self.counters.published);
        let cumulated = sizes.cumulated(count);
        for (bound, count) in SIZES.iter().zip(cumulated) {
            let le = format!("{PROTOCOL},le=\"{}\"", shown(*bound));
            text.sample("message_size_bytes_bucket", &le, count);
        }
        let le = format!("{PROTOCOL},le=\"+Inf\"");
        text.sample("message_size_bytes_bucket", &le, count);
        text.sample("message_size_bytes_count", PROTOCOL, count);
        text.sample("message_size_bytes_sum", PROTOCOL, sizes.bytes);
    }

    /// The journals of the vhosts, which take the place of Raft's logs.
    fn write_journal(&self, text: &mut Text<'_>) {
        let Counts {
            recorded, stored, ..
        } = self.present;
        let seconds = self.commit_latency.as_secs_f64();
        for (name, help, figure) in [
            (
                "raft_log_commit_index",
                "Records that the store has",
                stored,
            ),
            ("raft_commit_index", "Records that the store has", stored),
            ("raft_log_last_written_index", "Records made", recorded),
            ("raft_last_written_index", "Records made", recorded),
            ("raft_log_last_applied_index", "Records made", recorded),
            (
                "raft_log_snapshot_index",
                "Records that the store has",
                stored,
            ),
            ("raft_snapshot_index", "Records that the store has", stored),
            (
                "raft_term",
                "Owners of replicated vhosts so far",
                self.terms,
            ),
        ] {
            text.single(gauge(name, help), figure);
        }
        let term = counter("raft_term_total", "Owners of replicated vhosts so far");
        text.single(term, self.terms);
        for name in [
            "raft_entry_commit_latency_seconds",
            "raft_commit_latency_seconds",
        ] {
            let help = "Time from a record to its commit, of one measured last";
            text.single(gauge(name, help), seconds);
        }
    }
}

type OfType = fn(&Deliveries) -> u64;

const OF_TYPES: [(&str, OfType); 8] = [
    ("global_messages_acknowledged_total", |out| out.acknowledged),
    ("global_messages_delivered_total", Deliveries::all),
    ("global_messages_delivered_consume_auto_ack_total", |out| {
        out.sent_no_ack()
    }),
    (
        "global_messages_delivered_consume_manual_ack_total",
        |out| out.sent_to_ack,
    ),
    ("global_messages_delivered_get_auto_ack_total", |out| {
        out.got_no_ack
    }),
    ("global_messages_delivered_get_manual_ack_total", |out| {
        out.got
    }),
    ("global_messages_redelivered_total", |out| out.redelivered),
    ("global_messages_get_empty_total", |out| out.got_empty),
];

/// A bound as Prometheus writes it.
fn shown(bound: u64) -> String {
    match bound {
        ..1_000_000 => format!("{bound}.0"),
        _ => {
            let exponent = bound.ilog10();
            let digit = bound / 10_u64.pow(exponent);
            format!("{digit}e+{exponent:02}")
        }
    }
}

fn write_use(api: &Api, text: &mut Text<'_>) {
    let broker = api.operators.broker();
    let (open, _) = process::descriptors();
    let (free, _) = process::disk_bytes(&broker.particulars.store).unwrap_or_default();
    for (name, help, figure) in [
        ("process_open_fds", "Open file descriptors", open),
        (
            "process_open_tcp_sockets",
            "AMQP connections",
            broker.peers() as u64,
        ),
        (
            "process_resident_memory_bytes",
            "Memory that counts for the watermark: that of messages",
            broker.shared.flow.memory_bytes() as u64,
        ),
        (
            "disk_space_available_bytes",
            "Free disk space of the store",
            free,
        ),
    ] {
        text.single(gauge(name, help), figure);
    }
}

fn write_bounds(api: &Api, text: &mut Text<'_>) {
    let broker = api.operators.broker();
    let flow = &broker.shared.flow;
    let (_, total) = process::disk_bytes(&broker.particulars.store).unwrap_or_default();
    let (_, max) = process::descriptors();
    for (name, help, figure) in [
        ("process_max_fds", "Limit of open file descriptors", max),
        ("process_max_tcp_sockets", "Limit of open sockets", max),
        (
            "resident_memory_limit_bytes",
            "Memory of messages above which publishers are blocked",
            flow.memory_bytes_max() as u64,
        ),
        (
            "disk_space_available_limit_bytes",
            "Free disk space below which publishers are blocked",
            flow.disk_free_bytes_min(total),
        ),
    ] {
        text.single(gauge(name, help), figure);
    }
    let uptime = broker.particulars.uptime().as_secs_f64();
    let family = gauge("erlang_uptime_seconds", "Time since the start");
    text.single(family, uptime);
}

fn write_logins(api: &Api, text: &mut Text<'_>) {
    let failed = api.logins.failed.load(Ordering::Relaxed);
    let succeeded = api.logins.succeeded.load(Ordering::Relaxed);
    let (amqp_succeeded, amqp_failed) = api.operators.broker().logins();
    for (name, http, amqp) in [
        (
            "auth_attempts_total",
            succeeded + failed,
            amqp_succeeded + amqp_failed,
        ),
        ("auth_attempts_succeeded_total", succeeded, amqp_succeeded),
        ("auth_attempts_failed_total", failed, amqp_failed),
    ] {
        text.begin(&counter(name, "Logins since the start"));
        text.sample(name, "protocol=\"http\"", http);
        text.sample(name, PROTOCOL, amqp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_prometheus_writes_them() {
        let shown: Vec<String> = SIZES.iter().map(|bound| shown(*bound)).collect();
        let expected = [
            "100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "5e+07", "1e+08",
        ];
        assert_eq!(shown, expected);
    }
}
