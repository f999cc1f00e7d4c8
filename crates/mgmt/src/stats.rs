//! `message_stats` and its kin: counters with their rates, in RabbitMQ's groups.
//!
//! A group is absent until one of its counters has counted.

use crosstie_broker::sums::Churn;
use crosstie_queues::{ChannelTally, Counts, Deliveries, QueueTally};

use crate::row::Row;

const DELIVERIES: [&str; 7] = [
    "deliver",
    "deliver_no_ack",
    "get",
    "get_no_ack",
    "get_empty",
    "redeliver",
    "ack",
];
/// How many of them are messages that were sent, whose sum is `deliver_get`.
const SENT: usize = 4;
const PUBLICATIONS: [&str; 4] = ["publish", "confirm", "return_unroutable", "drop_unroutable"];
const OF_EXCHANGES: [&str; 2] = ["publish_in", "publish_out"];
pub(crate) const OF_CONNECTIONS: [&str; 2] = ["recv_oct", "send_oct"];
pub(crate) const CHURN: [&str; 7] = [
    "connection_created",
    "connection_closed",
    "channel_created",
    "channel_closed",
    "queue_declared",
    "queue_created",
    "queue_deleted",
];

/// The counters of a queue, in the order of its sample.
pub(crate) fn of_queue(tally: &QueueTally) -> [u64; 8] {
    let [a, b, c, d, e, f, g] = deliveries(&tally.out);
    [tally.published, a, b, c, d, e, f, g]
}

/// Those of a channel.
pub(crate) fn of_channel(tally: &ChannelTally) -> [u64; 11] {
    let publications = [
        tally.published,
        tally.confirmed,
        tally.returned,
        tally.dropped,
    ];
    joined(publications, deliveries(&tally.out))
}

/// Those of a vhost, or of several.
pub(crate) fn of_counts(counts: &Counts) -> [u64; 11] {
    let publications = [
        counts.published,
        counts.confirmed,
        counts.returned,
        counts.unroutable.saturating_sub(counts.returned),
    ];
    let mut out = Deliveries::default();
    counts.deliveries.iter().for_each(|kind| out.add(kind));
    joined(publications, deliveries(&out))
}

/// The same, and the octets of connections.
pub(crate) fn with_octets(counters: [u64; 11], octets: [u64; 2]) -> [u64; 13] {
    let mut all = [0; 13];
    all[..11].copy_from_slice(&counters);
    all[11..].copy_from_slice(&octets);
    all
}

/// Those of a node: what was opened and closed.
pub(crate) fn of_churn(connections: Churn, counts: &Counts) -> [u64; 7] {
    [
        connections.opened,
        connections.closed,
        counts.channels_opened,
        counts.channels_closed,
        counts.queues_declared,
        counts.queues_created,
        counts.queues_deleted,
    ]
}

fn deliveries(out: &Deliveries) -> [u64; 7] {
    [
        out.sent_to_ack,
        out.sent_no_ack(),
        out.got,
        out.got_no_ack,
        out.got_empty,
        out.redelivered,
        out.acknowledged,
    ]
}

fn joined(publications: [u64; 4], deliveries: [u64; 7]) -> [u64; 11] {
    let mut joined = [0; 11];
    joined[..4].copy_from_slice(&publications);
    joined[4..].copy_from_slice(&deliveries);
    joined
}

/// `message_stats` of a queue.
pub(crate) fn write_of_queue(counters: &[u64; 8], rates: &[f64; 8], row: &mut Row<'_, '_>) {
    if counters.iter().all(|count| *count == 0) {
        return;
    }
    row.pruned("message_stats", |row| {
        if counters[0] > 0 {
            counter(row, "publish", counters[0], rates[0]);
        }
        write_deliveries(&counters[1..], &rates[1..], row);
    });
}

/// `message_stats` of a channel, a vhost, or of several of these; nothing, if nothing was counted.
pub(crate) fn write_of_channel(counters: &[u64], rates: &[f64], row: &mut Row<'_, '_>) {
    let (publications, deliveries) = counters.split_at(PUBLICATIONS.len());
    let (publication_rates, delivery_rates) = rates.split_at(PUBLICATIONS.len());
    if publications.iter().any(|count| *count > 0) {
        write_each(&PUBLICATIONS, publications, publication_rates, row);
    }
    write_deliveries(deliveries, delivery_rates, row);
}

fn write_deliveries(counters: &[u64], rates: &[f64], row: &mut Row<'_, '_>) {
    if counters.iter().all(|count| *count == 0) {
        return;
    }
    write_each(&DELIVERIES, counters, rates, row);
    let sent = counters[..SENT].iter().sum();
    counter(row, "deliver_get", sent, rates[..SENT].iter().sum());
}

/// `message_stats` of an exchange.
pub(crate) fn write_of_exchange(counters: &[u64; 2], rates: &[f64; 2], row: &mut Row<'_, '_>) {
    if counters[0] > 0 {
        row.pruned("message_stats", |row| {
            // Without a route there is nothing that went out.
            let groups = if counters[1] > 0 { 2 } else { 1 };
            write_each(&OF_EXCHANGES[..groups], counters, rates, row);
        });
    }
}

pub(crate) fn write_each(names: &[&str], counters: &[u64], rates: &[f64], row: &mut Row<'_, '_>) {
    for ((name, count), rate) in names.iter().zip(counters).zip(rates) {
        counter(row, name, *count, *rate);
    }
}

fn counter(row: &mut Row<'_, '_>, name: &str, count: u64, rate: f64) {
    row.int(name, count);
    details(row, name, rate);
}

/// `X_details`
pub(crate) fn details(row: &mut Row<'_, '_>, name: &str, rate: f64) {
    row.pruned(&format!("{name}_details"), |row| row.float("rate", rate));
}

/// `messages` with the ready and the unacknowledged ones.
pub(crate) fn write_messages([ready, held]: [u64; 2], rates: [f64; 2], row: &mut Row<'_, '_>) {
    row.int("messages", ready + held);
    details(row, "messages", rates[0] + rates[1]);
    row.int("messages_ready", ready);
    details(row, "messages_ready", rates[0]);
    row.int("messages_unacknowledged", held);
    details(row, "messages_unacknowledged", rates[1]);
}
