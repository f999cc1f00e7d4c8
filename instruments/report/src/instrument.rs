//! The figures of each bench: its headlines, and the columns of its table.
//!
//! A catalogue. A bench that is not in it is shown too, guided by its figures' names.

use crate::metric::{Metric, Unit, percentiles};
use crate::run::Run;

/// One bench, as presented on the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instrument {
    pub(crate) bench: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// The main figures of the run, the most important first: compared with the floor, and drawn.
    pub(crate) headlines: &'static [&'static str],
    /// The same with more than one operation in flight, where waiting is not a figure of the subject.
    pub(crate) headlines_loaded: &'static [&'static str],
    /// In the table, as far as the run has them.
    pub(crate) columns: &'static [&'static str],
}

/// In the order of the page.
pub(crate) const INSTRUMENTS: &[Instrument] = &[
    Instrument {
        bench: "rpc",
        title: "Call round trip",
        about: "A caller calls a procedure, the router passes the call on to the callee and the \
                result back. The floor is a relay that moves the same number of bytes on each hop \
                and looks at none of them.",
        headlines: &["rtt_p50_us"],
        headlines_loaded: &["router_cpu_us_per_call", "calls_per_s"],
        columns: &[
            "calls_per_s",
            "rtt_avg_us",
            "rtt_p50_us",
            "rtt_p99_us",
            "rtt_p99_9_us",
            "rtt_max_us",
            "router_cpu_us_per_call",
            "router_pss_bytes",
        ],
    },
    Instrument {
        bench: "handshake",
        title: "WebSocket handshakes",
        about: "TCP connect, opening handshake, closing handshake, TCP close, as wsperf counts \
                them. The floor is a minimal server that waits with epoll.",
        headlines: &["server_cpu_us_per_handshake", "handshakes_per_s"],
        headlines_loaded: &[],
        columns: &[
            "handshakes",
            "handshakes_per_s",
            "open_median_ms",
            "open_p50_us",
            "open_p99_us",
            "open_p99_9_us",
            "open_max_us",
            "server_cpu_us_per_handshake",
            "driver_cpu_us_per_handshake",
            "left_open",
        ],
    },
    Instrument {
        bench: "echo",
        title: "WebSocket echo",
        about: "Messages that an echo server sends back, several outstanding on each connection; \
                every one is compared with what was sent.",
        headlines: &["messages_per_s", "server_cpu_us_per_message"],
        headlines_loaded: &[],
        columns: &[
            "messages",
            "messages_per_s",
            "mbit_per_s",
            "megabits_per_s",
            "rtt_p50_us",
            "rtt_p99_us",
            "rtt_p99_9_us",
            "rtt_max_us",
            "server_cpu_us_per_message",
            "driver_cpu_us_per_message",
        ],
    },
    Instrument {
        bench: "stream",
        title: "Stream transport",
        about: "netperf's questions asked of a server that echoes bytes: requests and responses \
                on one connection (RR), on a new connection each (CRR), and throughput (STREAM), \
                where only what came back or was read counts.",
        headlines: &["transactions_per_s", "megabits_per_s", "mbit_per_s"],
        headlines_loaded: &[],
        columns: &[
            "transactions_per_s",
            "megabits_per_s",
            "mbit_per_s",
            "rtt_p50_us",
            "rtt_p99_us",
            "rtt_p99_9_us",
            "rtt_max_us",
            "server_cpu_us_per_transaction",
            "server_cpu_ns_per_byte",
        ],
    },
    Instrument {
        bench: "accept",
        title: "Connections held",
        about: "Connections opened in batches and held open; afterwards one byte is echoed on \
                each.",
        headlines: &["elapsed_ms", "server_bytes_per_connection"],
        headlines_loaded: &[],
        columns: &[
            "established",
            "failed",
            "lost",
            "elapsed_ms",
            "established_per_s",
            "connect_p50_us",
            "connect_p99_us",
            "connect_max_us",
            "server_cpu_us_per_connection",
            "server_bytes_per_connection",
        ],
    },
    Instrument {
        bench: "pubsub",
        title: "Publish & Subscribe",
        about: "One publisher sends batches of events at a given rate, many subscribers receive \
                each. A latency is taken from when the event was due, so that a router that falls \
                behind cannot hide it. The floor sends the same bytes to as many receivers, one \
                write for each event.",
        headlines: &[
            "max_events_per_s",
            "latency_p50_us",
            "latency_p99_us",
            "router_cpu_us_per_event",
        ],
        headlines_loaded: &["router_cpu_us_per_event", "events_per_s"],
        columns: &[
            "max_events_per_s",
            "events_per_s",
            "latency_avg_us",
            "latency_p50_us",
            "latency_p99_us",
            "latency_max_us",
            "mbit_per_s",
            "router_cpu_us_per_event",
        ],
    },
    Instrument {
        bench: "node",
        title: "A whole node",
        about: "A node directory as a user starts it: controller, router, and the components that \
                it names, which are the load. Two pairs of caller and callee call one after the \
                other at the same time; nothing is pinned, as in the document. The floor of the \
                native pairs is the same pairs as plain processes around a router that is no node.",
        headlines: &["rtt_avg_us", "node_pss_bytes", "start_ms"],
        headlines_loaded: &[],
        columns: &[
            "start_ms",
            "first_call_ms",
            "all_calls_per_s",
            "node_cpu_percent",
            "node_cpu_us_per_call",
            "node_pss_bytes",
            "node_rss_bytes",
            "node_threads",
            "hosted_pss_bytes",
            "idle_percent",
            "end_ms",
            "rtt_avg_us",
            "calls_per_s",
            "own_clock_calls_per_s",
        ],
    },
    Instrument {
        bench: "oslo",
        title: "oslo.messaging over AMQP",
        about: "A client calls (the reply is waited for) or casts (the broker's confirm is), one \
                operation after the other, with what oslo.messaging does on the wire, or with \
                oslo.messaging itself. Delayed cases have a link on one side, which delays the way \
                to the broker; their limit is one round trip for each operation that has to wait for \
                it. The floor is a broker that knows who consumes what, and no more.",
        headlines: &[
            "operations_per_s",
            "broker_cpu_us_per_operation",
            "with_setup_per_s",
        ],
        headlines_loaded: &[],
        columns: &[
            "operations_per_s",
            "with_setup_per_s",
            "limit_per_s",
            "over_limit",
            "rtt_p50_us",
            "rtt_p99_us",
            "broker_cpu_us_per_operation",
            "driver_cpu_us_per_operation",
            "setup_ms",
        ],
    },
    Instrument {
        bench: "amqp",
        title: "Messages through a queue",
        about: "Publishers, a queue, consumers; what has arrived counts, and every message is \
                checked by its number. Transient: no confirms, automatic acknowledgements. Durable: \
                persistent messages in a durable queue, confirms, acknowledgements; one \
                that is acknowledged before its commit is never written. Durable-kept: without a \
                consumer, so that every message is. The floor is a \
                broker that knows who consumes what, and no more; it keeps nothing on a disk.",
        headlines: &["broker_cpu_us_per_message", "messages_per_s"],
        headlines_loaded: &[],
        columns: &[
            "messages_per_s",
            "broker_cpu_us_per_message",
            "driver_cpu_us_per_message",
            "broker_busy_cores",
            "messages_per_read",
        ],
    },
    Instrument {
        bench: "mqtt",
        title: "MQTT",
        about: "Publishers and subscribers of MQTT, all in one thread. A message counts at each \
                subscriber, and is checked by its number. Fan-out and fan-in are at QoS 0; the cases \
                of one publisher and one subscriber are at each QoS. Durable: the subscriber's \
                session is kept; durable-kept: the subscriber is away, so that every message has to \
                be kept before it is acknowledged. Connections: connect, DISCONNECT, with TLS 1.3 on \
                P-256 or without. Idle: memory for each client. The floor is a broker that knows who \
                subscribes to what, and no more.",
        headlines: &[
            "broker_cpu_us_per_message",
            "messages_per_s",
            "broker_cpu_us_per_connection",
            "connections_per_s",
            "pss_bytes_per_client",
        ],
        headlines_loaded: &[],
        columns: &[
            "messages_per_s",
            "acknowledged_per_s",
            "broker_cpu_us_per_message",
            "driver_cpu_us_per_message",
            "messages_per_read",
            "latency_p50_us",
            "latency_p99_us",
            "connections_per_s",
            "broker_cpu_us_per_connection",
            "connect_p50_us",
            "connect_p99_us",
            "pss_bytes_per_client",
        ],
    },
    Instrument {
        bench: "hostile",
        title: "One hostile peer",
        about: "What one peer can do to everybody else: an attack on a fresh node, and beside it a \
                witness of well-behaved sessions that do one thing at a time. What counts is how long \
                each of its operations waited at the worst, what it lost, and what the attack cost in \
                processor time and memory. Idle is the witness alone.",
        headlines: &["worst_ms"],
        headlines_loaded: &[],
        columns: &[
            "call_worst_ms",
            "event_worst_ms",
            "timeout_worst_ms",
            "join_worst_ms",
            "health_worst_ms",
            "message_worst_ms",
            "confirm_worst_ms",
            "connect_worst_ms",
            "cpu_s",
            "rss_before_bytes",
            "rss_most_bytes",
            "rss_after_bytes",
            "lost",
            "events_dropped",
        ],
    },
    Instrument {
        bench: "join",
        title: "Joining",
        about: "Sessions that join and leave, by each method of authentication: connect, HELLO to \
                WELCOME, GOODBYE, close. Beside guessers: clients that try one wrong ticket after the \
                other. Observed: somebody is told who joins. Others run the same node directory.",
        headlines: &["joins_per_s", "server_cpu_us_per_join"],
        headlines_loaded: &[],
        columns: &[
            "joins_per_s",
            "server_cpu_us_per_join",
            "join_p50_us",
            "join_p99_us",
            "guesses_per_s",
            "events_per_s",
        ],
    },
    Instrument {
        bench: "fabric",
        title: "A realm on several nodes",
        about: "Calls and events between the clients of two nodes that share a realm over NATS, beside a \
                node without a fabric (off) and one that is alone with one. The floor is NATS without \
                nodes, by the codec that nodes use. The processor time of two nodes is both of theirs.",
        headlines: &["rtt_p50_us"],
        headlines_loaded: &[
            "router_cpu_us_per_call",
            "calls_per_s",
            "router_cpu_us_per_event",
            "events_per_s",
        ],
        columns: &[
            "calls_per_s",
            "events_per_s",
            "rtt_p50_us",
            "rtt_p99_us",
            "rtt_max_us",
            "router_cpu_us_per_call",
            "beside_cpu_us_per_call",
            "router_cpu_us_per_event",
            "beside_cpu_us_per_event",
        ],
    },
    Instrument {
        bench: "http",
        title: "Web services",
        about: "HTTP requests over connections that stay open, each after the answer to the one \
                before: a file of 1 KiB, a call of a procedure of somebody else, a publication that \
                is acknowledged. Every answer is checked. Others run the same node directory; a web \
                server has the file alone.",
        headlines: &["requests_per_s", "server_cpu_us_per_request"],
        headlines_loaded: &[],
        columns: &[
            "requests_per_s",
            "server_cpu_us_per_request",
            "driver_cpu_us_per_request",
            "request_p50_us",
            "request_p99_us",
        ],
    },
    Instrument {
        bench: "footprint",
        title: "Footprint",
        about: "The cost of the router before it routes anything.",
        headlines: &[],
        headlines_loaded: &[],
        columns: &[
            "start_ms",
            "router_pss_bytes",
            "router_rss_bytes",
            "router_bytes_per_session",
            "kernel_bytes_per_session",
            "binary_bytes",
        ],
    },
];

/// Maximum number of columns of a guessed table.
const COLUMNS_MAX: usize = 9;

/// The instrument of a run; `None` for a bench that is not in the catalogue.
pub(crate) fn instrument(run: &Run) -> Option<&'static Instrument> {
    INSTRUMENTS.iter().find(|known| known.bench == run.bench)
}

/// The position of a run's section on the page.
pub(crate) fn position(run: &Run) -> usize {
    let known = INSTRUMENTS
        .iter()
        .position(|known| known.bench == run.bench);
    known.unwrap_or(INSTRUMENTS.len())
}

/// Concurrent operations.
pub(crate) fn in_flight(run: &Run) -> f64 {
    let setting = |name| run.setting(name).unwrap_or(1.0);
    setting("outstanding") * setting("pairs")
}

/// The main figures of the run, as far as it has them.
pub(crate) fn headlines(run: &Run) -> Vec<&str> {
    let names = run.figure_names();
    let Some(instrument) = instrument(run) else {
        // For an unknown bench the rates and the cost of an operation are a good guess.
        let telling = |name: &&&str| name.ends_with("_per_s") || name.contains("_us_per_");
        return names.iter().filter(telling).copied().take(2).collect();
    };
    let loaded = in_flight(run) > 1.0 && !instrument.headlines_loaded.is_empty();
    let headlines = match loaded {
        true => instrument.headlines_loaded,
        false => instrument.headlines,
    };
    headlines
        .iter()
        .copied()
        .filter(|name| names.contains(name))
        .collect()
}

/// The figures in the table, and those for the list of all others.
pub(crate) fn columns(run: &Run) -> (Vec<&str>, Vec<&str>) {
    let names = run.figure_names();
    let chosen: Vec<&str> = match instrument(run) {
        Some(known) => known
            .columns
            .iter()
            .copied()
            .filter(|c| names.contains(c))
            .collect(),
        None => Vec::new(),
    };
    let chosen = match chosen.is_empty() {
        true => guess(&names),
        false => chosen,
    };
    let rest = names.iter().copied().filter(|name| !chosen.contains(name));
    (chosen.clone(), rest.collect())
}

/// Rates, latencies and figures with a unit, before counts.
fn guess<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let latencies = percentiles(names);
    let is_latency = |name: &str| {
        latencies
            .iter()
            .any(|(_, points)| points.iter().any(|(_, known)| *known == name))
    };
    let rank = |name: &str| match Metric::of(name).unit {
        Unit::PerSecond | Unit::MegabitsPerSecond => 0,
        _ if is_latency(name) => 1,
        Unit::Number => 3,
        _ => 2,
    };
    let mut chosen = names.to_vec();
    chosen.sort_by_key(|name| rank(name));
    chosen.truncate(COLUMNS_MAX);
    chosen
}
