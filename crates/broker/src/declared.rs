//! Queue arguments that are accepted and not honoured; declaring them logs a warning.

use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp::{Method, Table, Value};

/// The reason why dead letters can be lost nevertheless.
pub(super) const AT_MOST_ONCE: &str = "dead letters are published at most once: they are lost while \
                                       no queue takes them";

/// Whether a queue must keep its dead letters until their target confirms them.
pub(super) fn is_at_least_once(arguments: Table<'_>) -> bool {
    let strategy = arguments.find("x-dead-letter-strategy");
    strategy == Some(Value::LongString(b"at-least-once"))
}

/// The queue that a method declares with that strategy, if any.
pub(super) fn at_least_once<'m>(method: &Method<'m>) -> Option<&'m str> {
    match method {
        Method::QueueDeclare(QueueDeclare {
            queue,
            passive: false,
            arguments,
            ..
        }) if is_at_least_once(*arguments) => Some(*queue),
        _ => None,
    }
}
