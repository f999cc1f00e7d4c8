//! Arguments and methods that the random inputs of a vhost choose.

use crosstie_amqp::method::*;
use crosstie_amqp::{Method, TableBuf, Value};

use crate::random::Random;

/// The name of a queue, of a consumer, or a routing key.
pub(super) fn name(below: &mut dyn FnMut(u64) -> u64) -> &'static str {
    ["a", "b", "c", "d", "e"][below(5) as usize]
}

/// Arguments of a queue.
pub(super) fn arguments(random: &mut Random) -> TableBuf {
    let below = &mut |bound: u64| random.next() % bound;
    let mut table = TableBuf::new();
    let kind: &[u8] = match below(4) {
        0 => b"quorum",
        _ => b"classic",
    };
    table = table.with("x-queue-type", Value::LongString(kind));
    if below(2) == 0 {
        table = table.with("x-max-length", Value::I32(below(5) as i32));
    }
    if below(3) == 0 {
        table = table.with("x-message-ttl", Value::I32(below(60) as i32));
    }
    if kind == b"classic" && below(2) == 0 {
        let max = [1, 3, 255][below(3) as usize];
        table = table.with("x-max-priority", Value::I32(max));
    }
    if below(3) == 0 {
        table = table.with("x-overflow", Value::LongString(b"reject-publish"));
    }
    if below(2) == 0 {
        let key = name(below).as_bytes();
        table = table
            .with("x-dead-letter-exchange", Value::LongString(b""))
            .with("x-dead-letter-routing-key", Value::LongString(key));
    }
    if below(4) == 0 {
        table = table.with("x-single-active-consumer", Value::Bool(true));
    }
    if below(4) == 0 {
        table = table.with("x-expires", Value::I32(1 + below(100) as i32));
    }
    if kind == b"quorum" && below(2) == 0 {
        table = table.with(
            "x-dead-letter-strategy",
            Value::LongString(b"at-least-once"),
        );
    }
    if kind == b"quorum" {
        table = table.with("x-delivery-limit", Value::I32(below(3) as i32));
    }
    table
}

/// Methods about deliveries, confirms and transactions.
pub(super) fn end_of_delivery(
    drawn: u64,
    delivery_tag: u64,
    multiple: bool,
    requeue: bool,
) -> Method<'static> {
    match drawn {
        15..=18 => BasicAck {
            delivery_tag,
            multiple,
        }
        .into(),
        19..=20 => BasicNack {
            delivery_tag,
            multiple,
            requeue,
        }
        .into(),
        21 => BasicRecover { requeue: true }.into(),
        23 => ConfirmSelect { no_wait: false }.into(),
        24..=25 => TxSelect {}.into(),
        26..=28 => TxCommit {}.into(),
        _ => TxRollback {}.into(),
    }
}
