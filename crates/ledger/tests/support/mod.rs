//! The set-up that the ledger's tests share.

use std::sync::Arc;

use crosstie_amqp::Properties;
use crosstie_ledger::{Config, Owner};
use crosstie_queues::{MessageContent, QueueId, Record, StoredMessage, Time};

pub(crate) const NOW: Time = Time(1000);

pub(crate) const CONFIG: Config = Config {
    part_bytes_max: 100,
    batch_bytes_max: 1000,
    log_bytes_min: 4000,
    extent_bytes: 0,
    purge_bytes_min: 1000,
    ..Config::DEFAULT
};

pub(crate) fn owner(node: &str) -> Owner {
    Owner {
        node: node.into(),
        address: "10.0.0.1:5672".into(),
        incarnation: 7,
    }
}

pub(crate) fn enqueued(place: i64, body_bytes: usize) -> Record {
    Record::enqueued(QueueId(1), place, message(&vec![b'x'; body_bytes]))
}

pub(crate) fn message(body: &[u8]) -> StoredMessage {
    let content = MessageContent::new("", "q", Properties::EMPTY.bytes(), body);
    StoredMessage::new(Arc::new(content))
}
