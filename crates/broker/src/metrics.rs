//! The metrics of AMQP.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_queues::QueueStatus;
use prometheus_client::metrics::counter::Counter as Count;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::broker::Broker;
use super::status::Named;
use super::vhost::SharedVhost;
use super::vhost_times::VhostTimes;

type Labels<const N: usize> = [(&'static str, String); N];
type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
type Counts<const N: usize> = Family<Labels<N>, Count>;

/// Maximum number of queues with their own lines: those with the most messages and consumers, over all routers.
const QUEUES_MAX: usize = 1000;

/// Registers the AMQP metrics of the routers that have AMQP.
pub fn register<'b>(registry: &mut Registry, brokers: impl Iterator<Item = Named<'b>>) {
    let brokers: Vec<_> = brokers.collect();
    if brokers.is_empty() {
        return;
    }
    register_brokers(registry, &brokers);
    let vhosts = brokers.iter().flat_map(|(worker, broker)| {
        let vhosts = broker.vhosts().into_iter();
        vhosts.map(move |vhost| Listed::of(worker, &vhost))
    });
    let vhosts: Vec<_> = vhosts.collect();
    register_vhosts(registry, &vhosts);
    register_queues(registry, vhosts);
}

/// A vhost's figures, taken as close to one moment as possible.
struct Listed {
    labels: Labels<2>,
    counts: crosstie_queues::Counts,
    queues: Vec<QueueStatus>,
}

impl Listed {
    fn of(worker: &str, vhost: &SharedVhost) -> Self {
        let queues = vhost.unsorted_queues();
        Self {
            labels: [
                ("worker", worker.to_owned()),
                ("vhost", vhost.name().to_string()),
            ],
            counts: vhost.counts(&queues),
            queues,
        }
    }
}

/// The times and sizes of all vhosts, by worker.
pub fn vhost_times<'b>(
    brokers: impl Iterator<Item = Named<'b>>,
) -> impl Iterator<Item = (&'b str, VhostTimes)> {
    brokers.flat_map(|(worker, broker)| {
        let vhosts = broker.vhosts().into_iter();
        vhosts.map(move |vhost| (worker, vhost.times()))
    })
}

/// A metric's name, its help text, and the function that reads it.
type Metric<Read> = (&'static str, &'static str, Read);

type OfBroker = fn(&Broker) -> u64;
type TotalOfBroker = fn(&Broker) -> &AtomicU64;

const BROKER_GAUGES: [Metric<OfBroker>; 8] = [
    (
        "connections_blocked",
        "AMQP connections blocked because memory or disk is low",
        |broker| broker.shared.flow.blocked() as u64,
    ),
    (
        "splices_open",
        "Open AMQP connections that are forwarded to another node",
        |broker| broker.splices.open.load(Ordering::Relaxed),
    ),
    (
        "memory_bytes",
        "Bytes of AMQP messages in memory",
        |broker| broker.shared.flow.memory_bytes() as u64,
    ),
    (
        "incomplete_bytes",
        "Bytes of incomplete AMQP messages, and of open transactions",
        |broker| broker.shared.incomplete.bytes() as u64,
    ),
    (
        "memory_full",
        "1 while AMQP publishers are blocked because memory is low",
        |broker| broker.shared.flow.is_memory_full().into(),
    ),
    (
        "store_waiting_bytes",
        "Bytes that the store has not written",
        |broker| broker.shared.store_waiting_bytes() as u64,
    ),
    (
        "disk_low",
        "1 while less than disk_free_bytes_min is free for the store",
        |broker| broker.shared.flow.is_disk_low().into(),
    ),
    (
        "store_failing",
        "1 while the store cannot write",
        |broker| broker.shared.flow.is_store_failing().into(),
    ),
];

#[rustfmt::skip]
const BROKER_TOTALS: [Metric<TotalOfBroker>; 15] = [
    ("connections_opened", "AMQP connections that entered a vhost", |broker| &broker.totals.connections_opened),
    ("connections_closed", "AMQP connections that left their vhost", |broker| &broker.totals.connections_closed),
    (
        "connections_refused",
        "AMQP connections that were not admitted to a vhost",
        |broker| &broker.totals.connections_refused,
    ),
    (
        "connections_closed_incomplete",
        "AMQP connections closed because of incomplete messages",
        |broker| &broker.shared.incomplete.closed,
    ),
    (
        "auth_backend_allowed",
        "Logins and accesses that an HTTP backend allowed, and tokens that were right",
        |broker| &broker.asked.allowed,
    ),
    (
        "auth_backend_denied",
        "Logins and accesses that an HTTP backend denied, and tokens that were wrong",
        |broker| &broker.asked.denied,
    ),
    (
        "auth_backend_failed",
        "Questions that an HTTP backend did not answer, and fetches of token keys that failed",
        |broker| &broker.asked.failed,
    ),
    (
        "auth_backend_kept",
        "Logins and accesses that were allowed by an earlier answer of an HTTP backend",
        |broker| &broker.asked.kept,
    ),
    ("logins_failed", "Failed logins", |broker| &broker.logins.failed),
    ("logins_delayed", "Logins delayed or queued because of earlier failures", |broker| &broker.logins.delayed),
    ("splices_opened", "AMQP connections that were forwarded to another node", |broker| &broker.splices.opened),
    (
        "splices_refused",
        "AMQP clients refused because no node owns their vhost, or the owner did not accept them",
        |broker| &broker.splices.refused,
    ),
    ("splices_sent_bytes", "Bytes forwarded from clients to other nodes", |broker| &broker.splices.sent_bytes),
    ("splices_received_bytes", "Bytes forwarded from other nodes to clients", |broker| &broker.splices.received_bytes),
    (
        "splices_strangers",
        "Connections to the nodes' address that did not prove to be a node of the vhost",
        |broker| &broker.splices.strangers,
    ),
];

/// The counters of AMQP without labels, by their names without `crosstie_amqp_` and `_total`.
pub fn totals<'b>(brokers: impl Iterator<Item = Named<'b>>) -> BTreeMap<&'static str, u64> {
    let mut totals: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (_, broker) in brokers {
        for (name, _, total) in BROKER_TOTALS {
            *totals.entry(name).or_default() += total(&broker).load(Ordering::Relaxed);
        }
        for vhost in broker.vhosts() {
            let counts = vhost.totals();
            for (name, _, read) in VHOST_COUNTS {
                *totals.entry(name).or_default() += read(&counts);
            }
        }
    }
    totals
}

type OfVhost<T> = fn(&crosstie_queues::Counts) -> T;

#[rustfmt::skip]
const VHOST_GAUGES: [Metric<OfVhost<usize>>; 15] = [
    ("connections", "AMQP connections", |c| c.connections),
    ("channels", "AMQP channels", |c| c.channels),
    ("consumers", "AMQP consumers", |c| c.consumers),
    ("queues", "Queues", |c| c.queues),
    ("exchanges", "Exchanges", |c| c.exchanges),
    ("bindings", "Bindings", |c| c.bindings),
    ("pattern_nodes", "Words and fields in the patterns of topic and headers exchanges", |c| c.pattern_nodes),
    ("messages_ready", "Messages ready for delivery", |c| c.messages_ready),
    ("messages_unacked", "Messages delivered and not acknowledged", |c| c.messages_unacknowledged),
    ("uncommitted_bytes", "Bytes of messages in open transactions", |c| c.uncommitted_bytes),
    ("history_messages", "Messages that exchanges keep for later bindings", |c| c.history_messages),
    ("history_bytes", "Bytes of the messages that exchanges keep for later bindings", |c| c.history_bytes),
    ("messages_delayed", "Messages that exchanges hold back until they are due", |c| c.messages_delayed),
    ("dead_letters_waiting", "Dead letters on their way to their exchange", |c| c.dead_letters_waiting),
    ("dead_letters_kept", "Dead letters that queues keep until their targets accept them", |c| c.dead_letters_kept),
];

#[rustfmt::skip]
const VHOST_COUNTS: [Metric<OfVhost<u64>>; 14] = [
    ("messages_published", "Messages published", |c| c.published),
    ("messages_delivered", "Messages delivered", |c| c.delivered),
    ("messages_redelivered", "Messages delivered again", |c| c.redelivered),
    ("messages_acked", "Messages acknowledged", |c| c.acknowledged),
    ("messages_confirmed", "Messages confirmed to publishers", |c| c.confirmed),
    ("messages_returned", "Messages returned to publishers", |c| c.returned),
    ("messages_unroutable", "Messages that were routed to no queue", |c| c.unroutable),
    ("messages_expired", "Messages whose TTL expired", |c| c.expired),
    ("messages_dropped", "Messages dropped at a queue's bound, or rejected", |c| c.dropped),
    ("dead_letters_published", "Dead letters that reached their targets", |c| c.dead_lettered),
    ("dead_letters_cut", "Dead letters dropped because one message caused too many", |c| c.dead_letters_cut),
    ("history_evicted", "Messages that left a history because all histories were too large", |c| c.history_evicted),
    ("transactions_committed", "Transactions committed", |c| c.committed),
    ("transactions_rolled_back", "Transactions rolled back", |c| c.rolled_back),
];

fn register_brokers(registry: &mut Registry, brokers: &[Named<'_>]) {
    for (name, help, read) in BROKER_GAUGES {
        let family = Gauges::<1>::default();
        for (worker, broker) in brokers {
            let labels = [("worker", (*worker).to_owned())];
            family.get_or_create(&labels).set(read(broker) as i64);
        }
        registry.register(format!("amqp_{name}"), help, family);
    }
    for (name, help, total) in BROKER_TOTALS {
        let family = Counts::<1>::default();
        for (worker, broker) in brokers {
            let labels = [("worker", (*worker).to_owned())];
            let count = total(broker).load(Ordering::Relaxed);
            family.get_or_create(&labels).inc_by(count);
        }
        registry.register(format!("amqp_{name}"), help, family);
    }
}

fn register_vhosts(registry: &mut Registry, vhosts: &[Listed]) {
    let gauges = VHOST_GAUGES.map(|(name, help, read)| (name, help, read, Gauges::<2>::default()));
    let counts = VHOST_COUNTS.map(|(name, help, read)| (name, help, read, Counts::<2>::default()));
    for Listed {
        labels,
        counts: counted,
        ..
    } in vhosts
    {
        for (_, _, read, family) in &gauges {
            family.get_or_create(labels).set(read(counted) as i64);
        }
        for (_, _, read, family) in &counts {
            family.get_or_create(labels).inc_by(read(counted));
        }
    }
    for (name, help, _, family) in gauges {
        registry.register(format!("amqp_{name}"), help, family);
    }
    for (name, help, _, family) in counts {
        registry.register(format!("amqp_{name}"), help, family);
    }
}

fn register_queues(registry: &mut Registry, vhosts: Vec<Listed>) {
    let mut queues: Vec<(usize, QueueStatus)> = Vec::new();
    // By vhost: the number of queues without their own lines, and their sums.
    let mut others: Vec<(Labels<2>, i64, [i64; 3])> = Vec::new();
    for (number, vhost) in vhosts.into_iter().enumerate() {
        queues.extend(vhost.queues.into_iter().map(|queue| (number, queue)));
        others.push((vhost.labels, 0, [0; 3]));
    }
    let figures = |queue: &QueueStatus| {
        let QueueStatus {
            messages_ready,
            messages_unacknowledged,
            consumers,
            ..
        } = *queue;
        [messages_ready, messages_unacknowledged, consumers].map(|figure| figure as i64)
    };
    if queues.len() > QUEUES_MAX {
        let weight = |queue: &QueueStatus| queue.messages_ready + queue.messages_unacknowledged;
        queues.select_nth_unstable_by_key(QUEUES_MAX, |(_, queue)| {
            Reverse((weight(queue), queue.consumers))
        });
        for (number, queue) in queues.drain(QUEUES_MAX..) {
            let (_, count, sums) = &mut others[number];
            *count += 1;
            for (sum, figure) in sums.iter_mut().zip(figures(&queue)) {
                *sum += figure;
            }
        }
    }
    let whats = ["ready", "unacked", "consumers"];
    for (place, what) in whats.into_iter().enumerate() {
        let family = Gauges::<3>::default();
        for (number, queue) in &queues {
            let [worker, vhost] = others[*number].0.clone();
            let labels = [worker, vhost, ("queue", queue.name.to_string())];
            family.get_or_create(&labels).set(figures(queue)[place]);
        }
        let help = format!("Of a queue: {what} (the {QUEUES_MAX} queues that hold most)");
        registry.register(format!("amqp_queue_{what}"), help, family);
        let family = Gauges::<2>::default();
        for (labels, _, sums) in &others {
            family.get_or_create(labels).set(sums[place]);
        }
        let help = format!("Of all queues without a series of their own: {what}");
        registry.register(format!("amqp_other_queues_{what}"), help, family);
    }
    let family = Gauges::<2>::default();
    for (labels, count, _) in &others {
        family.get_or_create(labels).set(*count);
    }
    let help = "Queues without a series of their own";
    registry.register("amqp_other_queues", help, family);
}
