//! Exchanges with so many bindings that routing one message is a long walk.

use crosstie_amqp::method::{BasicPublish, BasicQos, ExchangeDeclare, QueueBind};
use crosstie_amqp::{BasicProperties, Table, TableBuf, Value};

use super::{declare_queue, own_name};
use crate::broker::wire::properties;
use crate::hostile::amqp::{AmqpPeer, content, method};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const CC_PATTERNS: usize = 2_000;
const CC_KEYS: usize = 450;
const TOPIC_PATTERNS: usize = 20_000;
const TOPIC_PUBLICATIONS: usize = 223;
const HEADERS_BINDINGS: usize = 300_000;
const HEADERS_PUBLICATIONS: usize = 800;

/// Bindings of one write.
const BURST: usize = 100;

/// Words of a routing key, as many as fit into its 255 bytes.
const WORDS: usize = 120;

/// One publication with many additional routing keys.
pub(in crate::hostile) fn cc(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    let exchange = topic_exchange(strike, &mut peer, CC_PATTERNS)?;
    let keys = strike.size(CC_KEYS);
    let mut list = Vec::new();
    for number in 0..keys {
        let key = format!("{}.{number}", ["a"; WORDS].join("."));
        list.push(b'S');
        list.extend_from_slice(&(key.len() as u32).to_be_bytes());
        list.extend_from_slice(key.as_bytes());
    }
    let mut headers = b"\x02CCA".to_vec();
    headers.extend_from_slice(&(list.len() as u32).to_be_bytes());
    headers.extend_from_slice(&list);
    let headers = Table::from_bytes(&headers).map_err(WorkerError::handshake)?;
    publish(&mut peer, &exchange, headers, 1)?;
    strike.made("keys", keys as u64);
    Ok(())
}

/// Publications that all patterns nearly match.
pub(in crate::hostile) fn topic(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    let exchange = topic_exchange(strike, &mut peer, TOPIC_PATTERNS)?;
    let publications = strike.size(TOPIC_PUBLICATIONS);
    publish(&mut peer, &exchange, Table::default(), publications)?;
    strike.made("publications", publications as u64);
    Ok(())
}

/// Publications that no binding of a headers exchange matches.
pub(in crate::hostile) fn headers(strike: &mut Strike) -> Result<(), WorkerError> {
    let mut peer = strike.amqp(1)?;
    let (exchange, queue) = declare(&mut peer, "headers")?;
    let bindings = strike.size(HEADERS_BINDINGS);
    let push = |number: usize, peer: &mut AmqpPeer| {
        let value = number.to_string();
        let arguments = TableBuf::new()
            .with("x-match", Value::LongString(b"all"))
            .with("k", Value::LongString(value.as_bytes()));
        let bind = QueueBind {
            queue: &queue,
            exchange: &exchange,
            no_wait: true,
            arguments: arguments.as_table(),
            ..QueueBind::default()
        };
        method(1, &bind, &mut peer.output);
    };
    bind(strike, &mut peer, bindings, "bindings", push)?;
    let publications = strike.size(HEADERS_PUBLICATIONS);
    let headers = TableBuf::new().with("k", Value::LongString(b"none of these"));
    publish(&mut peer, &exchange, headers.as_table(), publications)?;
    strike.made("publications", publications as u64);
    Ok(())
}

/// An exchange and a queue, not yet bound.
fn declare(peer: &mut AmqpPeer, kind: &str) -> Result<(String, String), WorkerError> {
    let (exchange, queue) = (own_name(kind), own_name("bound"));
    declare_queue(peer, &queue)?;
    let declare = ExchangeDeclare {
        exchange: &exchange,
        kind,
        auto_delete: true,
        ..ExchangeDeclare::default()
    };
    peer.ask(1, &declare)?;
    Ok((exchange, queue))
}

fn topic_exchange(
    strike: &mut Strike,
    peer: &mut AmqpPeer,
    patterns: usize,
) -> Result<String, WorkerError> {
    let (exchange, queue) = declare(peer, "topic")?;
    let patterns = strike.size(patterns);
    let push = |number: usize, peer: &mut AmqpPeer| {
        let bind = QueueBind {
            queue: &queue,
            exchange: &exchange,
            routing_key: &pattern(number),
            no_wait: true,
            ..QueueBind::default()
        };
        method(1, &bind, &mut peer.output);
    };
    bind(strike, peer, patterns, "patterns", push)?;
    Ok(exchange)
}

/// Binds so many, or as many as are accepted: a channel that a refusal closes is reopened.
fn bind(
    strike: &mut Strike,
    peer: &mut AmqpPeer,
    bindings: usize,
    what: &str,
    push: impl Fn(usize, &mut AmqpPeer),
) -> Result<(), WorkerError> {
    let mut bound = 0;
    while bound < bindings {
        let burst = BURST.min(bindings - bound);
        for number in bound..bound + burst {
            push(number, peer);
        }
        match peer.ask(1, &BasicQos::default()) {
            Ok(()) => bound += burst,
            Err(error @ WorkerError::Dismissed(_)) => {
                strike.end_by(error)?;
                strike.made(&format!("{what} and less than {BURST} more"), bound as u64);
                return peer.reopen();
            }
            Err(error) => return Err(error),
        }
    }
    strike.made(what, bound as u64);
    Ok(())
}

/// The bits of a number as `a` and `*`, then `#.z`: a key of `a` alone walks down every branch, tries every word behind
/// it, and matches nothing.
fn pattern(number: usize) -> String {
    let mut pattern = String::new();
    for bit in 0..15 {
        pattern.push_str(if number >> bit & 1 == 0 { "a." } else { "*." });
    }
    pattern + "#.z"
}

/// Publishes all in one write, and waits until all were accepted.
fn publish(
    peer: &mut AmqpPeer,
    exchange: &str,
    headers: Table<'_>,
    publications: usize,
) -> Result<(), WorkerError> {
    let properties = properties(&BasicProperties {
        headers: Some(headers),
        ..BasicProperties::default()
    });
    let routing_key = ["a"; WORDS].join(".");
    let publish = BasicPublish::to(exchange, &routing_key);
    for _ in 0..publications {
        method(1, &publish, &mut peer.output);
        content(1, &properties, &[], &mut peer.output);
    }
    peer.ask(1, &BasicQos::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_differ() {
        let all: std::collections::BTreeSet<_> = (0..TOPIC_PATTERNS).map(pattern).collect();
        assert_eq!(all.len(), TOPIC_PATTERNS);
        assert_eq!(pattern(1), format!("*.{}#.z", "a.".repeat(14)));
    }
}
