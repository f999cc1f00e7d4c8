//! Families of queues, channels, connections and exchanges.

use crosstie_broker::inspection::{ChannelView, ConnectionView};
use crosstie_queues::{ExchangeStatus, QueueStatus};

use super::table::{Column, Table, dense, sparse};
use super::text::{counter, gauge, labels};

const COARSE: &[&str] = &["queue_coarse_metrics"];
const OF_QUEUE: &[&str] = &["queue_metrics"];
const OF_CONSUMERS: &[&str] = &["queue_consumer_count", "queue_metrics"];
const OF_PUBLICATIONS: &[&str] = &["channel_queue_exchange_metrics"];
const OF_DELIVERIES: &[&str] = &["channel_queue_metrics"];
const OF_CHANNEL: &[&str] = &["channel_metrics"];
const OF_PUBLISHERS: &[&str] = &["channel_exchange_metrics"];
const OF_OCTETS: &[&str] = &["connection_coarse_metrics"];
const OF_CONNECTION: &[&str] = &["connection_metrics"];

#[rustfmt::skip]
pub(super) static QUEUES: [Column; 16] = [
    dense(gauge("queue_messages_ready", "Messages ready to be delivered to consumers"), COARSE),
    dense(gauge("queue_messages_unacked", "Messages delivered and not yet acknowledged"), COARSE),
    dense(gauge("queue_messages", "Ready and unacknowledged messages"), COARSE),
    dense(gauge("queue_consumers", "Consumers of a queue"), OF_CONSUMERS),
    dense(gauge("queue_messages_bytes", "Bytes of the bodies of ready messages"), OF_QUEUE),
    dense(gauge("queue_messages_ready_bytes", "Bytes of the bodies of ready messages"), OF_QUEUE),
    dense(gauge("queue_messages_ram", "Messages in memory"), OF_QUEUE),
    dense(gauge("queue_messages_paged_out", "Messages on the disk alone"), OF_QUEUE),
    sparse(counter("queue_messages_published_total", "Messages published to a queue"), OF_PUBLICATIONS),
    sparse(counter("channel_get_ack_total", "Messages fetched with basic.get, to be acknowledged"), OF_DELIVERIES),
    sparse(counter("channel_get_total", "Messages fetched with basic.get, without acknowledgement"), OF_DELIVERIES),
    sparse(counter("channel_get_empty_total", "Answers to basic.get without a message"), OF_DELIVERIES),
    sparse(counter("channel_messages_delivered_total", "Messages delivered without acknowledgement"), OF_DELIVERIES),
    sparse(counter("channel_messages_delivered_ack_total", "Messages delivered, to be acknowledged"), OF_DELIVERIES),
    sparse(counter("channel_messages_redelivered_total", "Messages delivered again"), OF_DELIVERIES),
    sparse(counter("channel_messages_acked_total", "Messages acknowledged"), OF_DELIVERIES),
];

pub(super) fn push_queue(table: &mut Table<16>, vhost: &str, queue: &QueueStatus) {
    let count = |count: usize| count as u64;
    let (ready, held) = (queue.messages_ready, queue.messages_unacknowledged);
    let in_memory = queue.messages_in_memory.min(ready);
    let (tally, out) = (&queue.tally, &queue.tally.out);
    table.push(
        || labels([("vhost", vhost), ("queue", &queue.name)]),
        [
            count(ready),
            count(held),
            count(ready + held),
            count(queue.consumers),
            count(queue.message_bytes),
            count(queue.message_bytes),
            count(in_memory + held),
            count(ready - in_memory),
            tally.published,
            out.got,
            out.got_no_ack,
            out.got_empty,
            out.sent_no_ack(),
            out.sent_to_ack,
            out.redelivered,
            out.acknowledged,
        ],
    );
}

#[rustfmt::skip]
pub(super) static CHANNELS: [Column; 10] = [
    dense(gauge("channel_consumers", "Consumers on a channel"), OF_CHANNEL),
    dense(gauge("channel_messages_unacked", "Delivered but not yet acknowledged messages"), OF_CHANNEL),
    dense(gauge("channel_messages_unconfirmed", "Published but not yet confirmed messages"), OF_CHANNEL),
    dense(gauge("channel_messages_uncommitted", "Messages of an open transaction"), OF_CHANNEL),
    dense(gauge("channel_acks_uncommitted", "Acknowledgements of an open transaction"), OF_CHANNEL),
    dense(gauge("channel_prefetch", "Limit of unacknowledged messages for all consumers"), OF_CHANNEL),
    sparse(counter("channel_messages_published_total", "Messages published"), OF_PUBLISHERS),
    sparse(counter("channel_messages_confirmed_total", "Messages confirmed to publishers"), OF_PUBLISHERS),
    sparse(counter("channel_messages_unroutable_returned_total", "Messages without a route, returned"), OF_PUBLISHERS),
    sparse(counter("channel_messages_unroutable_dropped_total", "Messages without a route, dropped"), OF_PUBLISHERS),
];

pub(super) fn push_channel(table: &mut Table<10>, channel: &ChannelView) {
    let status = &channel.status;
    let tally = &status.tally;
    let count = |count: usize| count as u64;
    table.push(
        || {
            let name = format!("{} ({})", channel.connection, status.number);
            labels([("channel", &name), ("vhost", &channel.vhost)])
        },
        [
            count(status.consumers),
            count(status.messages_unacknowledged),
            count(status.messages_unconfirmed),
            count(status.uncommitted.messages),
            count(status.uncommitted.acknowledgements),
            status.prefetch_count_global.into(),
            tally.published,
            tally.confirmed,
            tally.returned,
            tally.dropped,
        ],
    );
}

#[rustfmt::skip]
pub(super) static CONNECTIONS: [Column; 6] = [
    dense(counter("connection_incoming_bytes_total", "Bytes received on a connection"), OF_OCTETS),
    dense(counter("connection_outgoing_bytes_total", "Bytes sent on a connection"), OF_OCTETS),
    dense(counter("connection_incoming_packets_total", "Reads from a connection"), OF_CONNECTION),
    dense(counter("connection_outgoing_packets_total", "Writes to a connection"), OF_CONNECTION),
    dense(gauge("connection_pending_packets", "Bytes waiting to be sent on a connection"), OF_CONNECTION),
    dense(gauge("connection_channels", "Channels on a connection"), OF_CONNECTION),
];

pub(super) fn push_connection(table: &mut Table<6>, connection: &ConnectionView) {
    let octets = &connection.octets;
    table.push(
        // RabbitMQ calls the label so, too.
        || labels([("channel", &connection.title)]),
        [
            octets.received_bytes,
            octets.sent_bytes,
            octets.reads,
            octets.writes,
            connection.queued_bytes as u64,
            connection.status.channels as u64,
        ],
    );
}

/// In `/metrics/detailed` alone, with the prefix `rabbitmq_cluster_`.
pub(super) static EXCHANGES: [Column; 2] = [
    dense(
        gauge("exchange_bindings", "Bindings of an exchange"),
        &["exchange_bindings"],
    ),
    dense(
        gauge("exchange_name", "1 for each exchange"),
        &["exchange_names"],
    ),
];

pub(super) fn push_exchange(table: &mut Table<2>, vhost: &str, exchange: &ExchangeStatus) {
    table.push(
        || {
            labels([
                ("vhost", vhost),
                ("exchange", &exchange.name),
                ("type", &exchange.kind),
            ])
        },
        [exchange.bindings as u64, 1],
    );
}

pub(super) static VHOSTS: [Column; 1] = [dense(
    gauge("vhost_status", "Whether a vhost is running"),
    &["vhost_status"],
)];

pub(super) fn push_vhost(table: &mut Table<1>, vhost: &str) {
    table.push(|| labels([("vhost", vhost)]), [1]);
}
