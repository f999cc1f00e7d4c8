//! Queue arguments that are accepted and not honoured; declaring them logs a warning.

use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp::{Method, Table, Value};

/// The reason why dead letters can be lost nevertheless.
pub(super) const AT_MOST_ONCE: &str = "dead letters are published at most once: they are lost while \
                                       no queue takes them. 'x-dead-letter-strategy: \
                                       at-least-once' needs 'x-dead-letter-exchange' and \
                                       'x-overflow: reject-publish'";

/// Whether a queue is to keep its dead letters until their targets have accepted them, and its other arguments prevent
/// that.
pub(super) fn is_at_most_once(arguments: Table<'_>) -> bool {
    let is = |name, text: &[u8]| arguments.find(name) == Some(Value::LongString(text));
    is("x-dead-letter-strategy", b"at-least-once")
        && !(arguments.find("x-dead-letter-exchange").is_some()
            && is("x-overflow", b"reject-publish"))
}

/// The queue that a method declares so, if any.
pub(super) fn at_most_once<'m>(method: &Method<'m>) -> Option<&'m str> {
    match method {
        Method::QueueDeclare(QueueDeclare {
            queue,
            passive: false,
            arguments,
            ..
        }) if is_at_most_once(*arguments) => Some(*queue),
        _ => None,
    }
}
