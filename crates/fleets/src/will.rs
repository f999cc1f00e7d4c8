//! Wills of clients that are lost: published at once, or by a queue in which they wait.
//!
//! The message expires in the queue, and its dead letter is the will. So a will outlives a restart, and a client that comes
//! back in time deletes the queue.

use crosstie_amqp::method::QueueDeclare;
use crosstie_amqp::{BasicProperties, Properties, TableBuf, Value};
use crosstie_broker::guest::{Answered, Guest};
use crosstie_spaces::{Dropped, Figures};

use crate::fleet::Fleet;
use crate::methods::{delete_queue, send};
use crate::names;
use crate::session::{Session, Will};

/// Time for which the queue stays after its message has expired.
const EXPIRES_AFTER_MS: i64 = 60_000;

/// Queues expire by a number of milliseconds of 32 bits.
const DELAY_S_MAX: u32 = u32::MAX / 1_000 - 60;

/// Publishes the will of a client that is lost, after its delay or at the end of its session.
pub(crate) fn publish(guest: &mut Guest, fleet: &Fleet, exchange: &str, session: &mut Session) {
    let Some(will) = session.will.take() else {
        return;
    };
    let delay_s = will.delay_s.min(session.expiry_s).min(DELAY_S_MAX);
    let answered = match delay_s {
        0 => {
            let retained = will.retain.then_some(fleet.retained_max);
            let names = (exchange, &*will.key);
            send(guest, names, &will.properties, &will.body, retained)
        }
        _ => delay(guest, exchange, (&session.client_id, delay_s), &will),
    };
    match answered {
        Answered::Done => {}
        Answered::Waits | Answered::Over | Answered::Refused(_) => {
            Figures::get().count_dropped(Dropped::Denied);
        }
    }
}

/// The client is back, with its session or a new one: a will that waits is not published.
pub(crate) fn cancel(guest: &mut Guest, client_id: &str) -> Answered {
    delete_queue(guest, &names::will_queue(client_id))
}

fn delay(
    guest: &mut Guest,
    exchange: &str,
    (client_id, delay_s): (&str, u32),
    will: &Will,
) -> Answered {
    let queue = names::will_queue(client_id);
    let delay_ms = i64::from(delay_s) * 1_000;
    let arguments = TableBuf::new()
        .with("x-expires", Value::I64(delay_ms + EXPIRES_AFTER_MS))
        .with("x-message-ttl", Value::I64(delay_ms))
        .with(
            "x-dead-letter-exchange",
            Value::LongString(exchange.as_bytes()),
        )
        .with(
            "x-dead-letter-routing-key",
            Value::LongString(will.key.as_bytes()),
        );
    let declare = QueueDeclare {
        queue: &queue,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: true,
        arguments: arguments.as_table(),
    };
    // Its expiry begins with its publication.
    let found = Properties::from_checked_bytes(&will.properties).parse();
    let mut properties = Vec::new();
    BasicProperties {
        expiration: None,
        timestamp: None,
        ..found
    }
    .write(&mut properties);
    let published = guest.may_publish(exchange, &will.key);
    if !matches!(published, Answered::Done) {
        return published;
    }
    // That of an earlier connection has other arguments.
    let mut answered = delete_queue(guest, &queue);
    if matches!(answered, Answered::Done) {
        answered = guest.handle(&declare.into());
    }
    if matches!(answered, Answered::Done) {
        answered = send(guest, ("", &queue), &properties, &will.body, None);
    }
    match answered {
        // Without a right to the queue, or before the backend has told it. Too early is better than never.
        Answered::Refused(_) | Answered::Waits => {
            guest.stop_waiting();
            delete_queue(guest, &queue);
            let names = (exchange, &*will.key);
            send(guest, names, &will.properties, &will.body, None)
        }
        answered => answered,
    }
}
