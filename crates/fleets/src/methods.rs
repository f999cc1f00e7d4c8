//! Methods of a client's vhost that several packets need.

use crosstie_amqp::Properties;
use crosstie_amqp::method::{BasicPublish, QueueDelete};
use crosstie_broker::RetainedMax;
use crosstie_broker::guest::{Answered, Guest};
use crosstie_spaces::{Dropped, Figures};

/// Publishes a message, and retains it if there are bounds for that.
pub(crate) fn send(
    guest: &mut Guest,
    (exchange, key): (&str, &str),
    properties: &[u8],
    body: &[u8],
    retained: Option<RetainedMax>,
) -> Answered {
    let publish = BasicPublish::to(exchange, key);
    let content = (Properties::from_checked_bytes(properties), body);
    let (answered, has_room) = guest.publish(&publish, content, retained);
    if !has_room {
        Figures::get().count_dropped(Dropped::RetainedMax);
    }
    answered
}

/// Deletes a queue, if it exists.
pub(crate) fn delete_queue(guest: &mut Guest, queue: &str) -> Answered {
    if !guest.has_queue(queue) {
        return Answered::Done;
    }
    let delete = QueueDelete {
        queue,
        if_unused: false,
        if_empty: false,
        no_wait: true,
    };
    guest.handle(&delete.into())
}
