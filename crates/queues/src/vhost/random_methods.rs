//! Arguments and methods that the random inputs of a vhost choose.

use crosstie_amqp::method::*;
use crosstie_amqp::{Method, TableBuf, Value};

use crate::policy::{Policies, Policy, PolicyKind, PolicyParts, PolicyValue};
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

/// Some policies.
pub(super) fn policies(random: &mut Random) -> Policies {
    let below = &mut |bound: u64| random.next() % bound;
    let mut kinds = [Vec::new(), Vec::new()];
    for name in ["p", "q", "r"] {
        let is_operator = below(3) == 0;
        let kind = match is_operator {
            true => PolicyKind::Operator,
            false => PolicyKind::User,
        };
        let keys: &[(&str, PolicyValue)] = &[
            ("max-length", PolicyValue::from(below(4) as i64)),
            ("message-ttl", PolicyValue::from(below(60) as i64)),
            ("expires", PolicyValue::from(1 + below(100) as i64)),
            ("delivery-limit", PolicyValue::from(below(3) as i64)),
            ("max-length-bytes", PolicyValue::from(below(60) as i64)),
            ("consumer-timeout", PolicyValue::from(below(2_000) as i64)),
            ("overflow", PolicyValue::from(OVERFLOWS[below(3) as usize])),
            ("dead-letter-exchange", PolicyValue::from("")),
            ("dead-letter-routing-key", PolicyValue::from("a")),
            ("dead-letter-strategy", PolicyValue::from("at-least-once")),
            ("alternate-exchange", PolicyValue::from("amq.fanout")),
        ];
        let keys = &keys[..if is_operator { 5 } else { keys.len() }];
        let mut definition = Vec::new();
        for (key, value) in keys {
            if below(3) == 0 {
                definition.push(((*key).to_owned(), value.clone()));
            }
        }
        let pattern = ["", "a|b", "^[c-e]", "amq", "z"][below(5) as usize];
        let parts = PolicyParts {
            name,
            pattern: &PolicyValue::from(pattern),
            definition: &PolicyValue::Map(definition),
            priority: Some(&PolicyValue::from(below(3) as i64)),
            apply_to: None,
        };
        // One without any key is none.
        kinds[usize::from(is_operator)].extend(Policy::parse(kind, parts));
    }
    let [user, operator] = kinds;
    Policies::new(user, operator)
}

const OVERFLOWS: [&str; 3] = ["drop-head", "reject-publish", "reject-publish-dlx"];
