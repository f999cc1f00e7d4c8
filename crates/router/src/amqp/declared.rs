//! Arguments of queues that are accepted and not honoured; declaring one logs a warning.

use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp::{Method, Table, Value};

/// Why dead letters can be lost all the same.
pub(super) const AT_MOST_ONCE: &str = "dead letters are published at most once: they are lost while \
                                       no queue takes them";

/// Whether a queue's dead letters are to be kept until their target confirms them.
pub(super) fn is_at_least_once(arguments: Table<'_>) -> bool {
    let strategy = arguments.find("x-dead-letter-strategy");
    strategy == Some(Value::LongString(b"at-least-once"))
}

/// The queue that a method declares so, if it does.
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
