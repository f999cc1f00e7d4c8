//! A server's objects at a broker: its queues, with a consumer on each.

use crosstie_amqp::method::{BasicCancel, BasicConsume, QueueBind, QueueDeclare};

use super::{CHANNEL, Target, expiring};
use crosstie_amqp_client::TransportUrl;
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions};

/// Connects, creates the queues of `target`, and consumes from them.
pub(super) fn open(
    url: &TransportUrl,
    options: &ConnectionOptions,
    target: &Target,
    fanout_queue: &str,
) -> Result<Connection, ConnectionError> {
    let mut connection = Connection::open(url, options)?;
    connection.open_channel(CHANNEL)?;
    declare(&mut connection, target, fanout_queue)?;
    Ok(connection)
}

/// Stops deliveries.
pub(super) fn cancel(connection: &mut Connection) -> Result<(), ConnectionError> {
    for consumer_tag in CONSUMER_TAGS {
        let cancel = BasicCancel {
            consumer_tag,
            no_wait: false,
        };
        connection.call(CHANNEL, &cancel)?;
    }
    Ok(())
}

/// Exchanges, queues, bindings and consumers, in oslo.messaging's order.
fn declare(
    connection: &mut Connection,
    target: &Target,
    fanout_queue: &str,
) -> Result<(), ConnectionError> {
    let own = format!(
        "{}.{}",
        target.topic,
        target.server.as_deref().unwrap_or("")
    );
    let fanout = target.fanout_exchange();
    let expiring = expiring();
    let queues = [
        (target.topic.as_str(), target.exchange.as_str(), false),
        (&own, &target.exchange, false),
        (fanout_queue, &fanout, true),
    ];
    for (queue, exchange, is_fanout) in queues {
        let of = Target {
            fanout: is_fanout,
            ..target.clone()
        };
        connection.call(CHANNEL, &of.exchange_declare(exchange))?;
        let mut declare = QueueDeclare::named(queue);
        if is_fanout {
            declare.arguments = expiring.as_table();
        }
        connection.call(CHANNEL, &declare)?;
        let bind = QueueBind::of(queue).to(exchange, if is_fanout { &target.topic } else { queue });
        connection.call(CHANNEL, &bind)?;
    }
    for ((queue, ..), consumer_tag) in queues.into_iter().zip(CONSUMER_TAGS) {
        let consume = BasicConsume {
            queue,
            consumer_tag,
            ..BasicConsume::default()
        };
        connection.call(CHANNEL, &consume)?;
    }
    Ok(())
}

const CONSUMER_TAGS: [&str; 3] = ["1", "2", "3"];
