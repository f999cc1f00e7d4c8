//! Methods of a client's vhost that several packets need.

use crosstie_amqp::Properties;
use crosstie_amqp::method::{BasicPublish, QueueDelete};
use crosstie_broker::guest::{Answered, Guest};
use crosstie_spaces::{Dropped, Figures};

use crate::fleet::Fleet;

pub(crate) fn send(
    guest: &mut Guest,
    exchange: &str,
    key: &str,
    properties: &[u8],
    body: &[u8],
) -> Answered {
    let publish = BasicPublish::to(exchange, key);
    guest.publish(&publish, Properties::from_checked_bytes(properties), body)
}

pub(crate) fn retain(fleet: &Fleet, key: &str, properties: &[u8], body: &[u8]) {
    if !fleet.retained.lock().set(key, properties, body) {
        Figures::get().count_dropped(Dropped::RetainedMax);
    }
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
