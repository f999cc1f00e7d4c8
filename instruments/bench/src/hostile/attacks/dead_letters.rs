//! Queues without room that are each other's dead-letter target: every message dies in each of them, on every path from
//! one to the next.

use crosstie_amqp::method::{BasicPublish, BasicQos, ExchangeDeclare, QueueBind, QueueDeclare};
use crosstie_amqp::{TableBuf, Value};

use super::{EXPIRES_MS, own_name};
use crate::hostile::amqp::{content, method};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;

const QUEUES: usize = 10;
const PUBLICATIONS: usize = 400;

pub(in crate::hostile) fn strike(strike: &mut Strike) -> Result<(), WorkerError> {
    let exchange = own_name("dead");
    let mut peer = strike.amqp(1)?;
    let declare = ExchangeDeclare {
        exchange: &exchange,
        kind: "fanout",
        auto_delete: true,
        ..ExchangeDeclare::default()
    };
    peer.ask(1, &declare)?;
    for number in 0..QUEUES {
        let queue = format!("{exchange}-{number}");
        let arguments = TableBuf::new()
            .with("x-max-length", Value::I32(0))
            .with(
                "x-dead-letter-exchange",
                Value::LongString(exchange.as_bytes()),
            )
            .with("x-expires", Value::I32(EXPIRES_MS));
        let declare = QueueDeclare {
            queue: &queue,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        };
        peer.ask(1, &declare)?;
        let bind = QueueBind::of(&queue).to(&exchange, "");
        peer.ask(1, &bind)?;
    }
    let publications = strike.size(PUBLICATIONS);
    for _ in 0..publications {
        let publish = BasicPublish::to(&exchange, "");
        method(1, &publish, &mut peer.output);
        content(1, &[0, 0], &[], &mut peer.output);
    }
    peer.ask(1, &BasicQos::default())?;
    strike.made("publications", publications as u64);
    Ok(())
}
