//! The tables of `bench mqtt`, and the lines below them.

use super::case::{Case, Kind};
use super::figures::{ACKNOWLEDGED, CLIENT_BYTES, CONNECTION_CPU, CONNECTIONS, CPU, RATE};
use super::idle::FIRST;
use super::options::MqttOptions;
use super::subjects::MqttPeer;
use crate::frame::Column;
use crate::report::table::{number, thousands};

pub(super) fn columns(case: Case) -> Vec<Column> {
    let mosquitto = MqttPeer::Mosquitto.name();
    match case.kind() {
        Kind::Messages => of_messages(case),
        Kind::Connections { .. } => vec![
            Column::rate("per s", CONNECTIONS, thousands),
            Column::spread("broker CPU µs", CONNECTION_CPU, number),
            Column::median("driver CPU µs", "driver_cpu_us_per_connection", number),
            Column::median("broker busy", "broker_busy_cores", number),
            Column::median("p50 µs", "connect_p50_us", thousands),
            Column::median("p99 µs", "connect_p99_us", thousands),
            Column::over_floor("CPU ÷ floor", CONNECTION_CPU),
            Column::over("rate ÷ mosquitto", mosquitto, CONNECTIONS),
            Column::over("CPU ÷ mosquitto", mosquitto, CONNECTION_CPU),
        ],
        Kind::Memory => vec![
            Column::median("clients", "clients", thousands),
            Column::spread("bytes per client", CLIENT_BYTES, thousands),
            Column::over("÷ mosquitto", mosquitto, CLIENT_BYTES),
        ],
    }
}

fn of_messages(case: Case) -> Vec<Column> {
    let (mosquitto, rabbitmq) = (MqttPeer::Mosquitto.name(), MqttPeer::RabbitMq.name());
    let mut columns = vec![Column::rate("per s", RATE, thousands)];
    if case.qos() > 0 && case != Case::DurableKept {
        columns.push(Column::rate("acknowledged/s", ACKNOWLEDGED, thousands));
    }
    columns.extend([
        Column::spread("broker CPU µs", CPU, number),
        Column::median("driver CPU µs", "driver_cpu_us_per_message", number),
        Column::median("broker busy", "broker_busy_cores", number),
    ]);
    if case != Case::DurableKept {
        columns.push(Column::median("messages/read", "messages_per_read", number));
    }
    if case == Case::FanOutPaced {
        columns.push(Column::median("p50 µs", "latency_p50_us", thousands));
        columns.push(Column::median("p99 µs", "latency_p99_us", thousands));
    }
    if case.has_floor() {
        columns.push(Column::over_floor("CPU ÷ floor", CPU));
    }
    match case.is_durable() {
        true => columns.push(Column::over("rate ÷ rabbitmq", rabbitmq, ACKNOWLEDGED)),
        false => {
            columns.push(Column::over("rate ÷ mosquitto", mosquitto, RATE));
            columns.push(Column::over("CPU ÷ mosquitto", mosquitto, CPU));
        }
    }
    columns
}

/// The load of a case, its check and its floor.
pub(super) fn below(options: &MqttOptions, case: Case) -> Vec<String> {
    let (fan, rate) = (options.fan, options.rate);
    let outstanding = thousands(options.outstanding as f64);
    let load = match case {
        Case::FanOut => format!(
            "1 publisher, {fan} subscribers, {outstanding} publications outstanding; a message is \
             one that arrived at one subscriber"
        ),
        Case::FanOutPaced => format!(
            "1 publisher, {fan} subscribers, {rate} publications a second, each at its time; \
             latency from that time to each subscriber"
        ),
        Case::FanIn => format!(
            "{fan} publishers in turn, each with a topic, 1 subscriber of all by `#`, \
             {outstanding} publications outstanding"
        ),
        Case::QoS0 | Case::QoS1 | Case::QoS2 => format!(
            "1 publisher, 1 subscriber, both with QoS {}, {outstanding} publications outstanding: \
             not arrived or not acknowledged",
            case.qos()
        ),
        Case::Durable => format!(
            "QoS 1, 1 publisher, 1 subscriber whose session is kept and who acknowledges at once, \
             {outstanding} outstanding; a message that is acknowledged before its commit never \
             reaches the disk"
        ),
        Case::DurableKept => format!(
            "QoS 1, 1 publisher, {outstanding} outstanding, the subscriber is away: acknowledged in \
             the window counts; afterwards the session is resumed and all of it has to arrive"
        ),
        Case::Connections | Case::ConnectionsTls => format!(
            "{} clients, each with one connection after the other: connect to CONNACK, DISCONNECT \
             until the broker closes",
            options.connections
        ),
        Case::Idle => format!(
            "clients without subscriptions; the difference between {FIRST} and {} of them{}",
            thousands(options.clients as f64),
            match options.common.is_foreign {
                true => "",
                false => ", on a fresh broker in each round",
            }
        ),
    };
    let floor = match case {
        Case::Durable | Case::DurableKept => {
            "mosquitto acknowledges without a sync: it writes its sessions every half hour; no \
             floor: it keeps nothing"
        }
        Case::ConnectionsTls => {
            "TLS 1.3, key exchange and certificate on P-256, no resumption; no floor: it does not \
             encrypt"
        }
        Case::Connections => "floor: a broker that answers CONNECT, and no more",
        Case::Idle => "no floor: it has no sessions",
        _ => {
            "floor: a broker that knows who subscribes to what, and no more; each message is \
             checked by its number"
        }
    };
    [load.as_str(), floor]
        .map(|line| format!("  {line}"))
        .to_vec()
}
