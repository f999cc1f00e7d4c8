//! The end of a vhost in good order.

use std::collections::BTreeMap;

use super::Vhost;
use crate::{Outbox, QueueKey, Record, Time};

impl<H> Vhost<H> {
    /// Ends the vhost in good order: all connections are closed, and no more are accepted. The journal records which
    /// messages have been delivered before, so that `redelivered` is exact after a restart. This is the last input; it
    /// takes as long as there is work.
    pub fn rest(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.has_ended = true;
        let connections = self.channels.connection_keys();
        // First all of them: messages that one held are not sent to another.
        for connection in &connections {
            self.shut_connection(*connection, out);
        }
        for connection in connections {
            self.begin();
            self.go_on_closing(now, connection, out);
        }
        while self.has_backlog() {
            self.work(now, u32::MAX, out);
        }
        for record in self.delivered() {
            self.ledger.record(record);
        }
    }

    /// The same records of a vhost that continues: for a copy of its store, in which unacknowledged messages are back
    /// in their queues.
    pub fn delivered(&self) -> Vec<Record> {
        let mut held = BTreeMap::<QueueKey, Vec<i64>>::new();
        let unacked = self
            .channels
            .iter()
            .flat_map(|(_, channel)| channel.unacked.iter());
        let settling = self
            .settlements
            .iter()
            .flat_map(|settling| settling.deliveries());
        let in_transactions = self.transactions.deliveries();
        for (_, delivery) in unacked.chain(settling).chain(in_transactions) {
            let entry = &delivery.entry;
            if entry.is_stored {
                held.entry(delivery.queue).or_default().push(entry.place);
            }
        }
        self.queues.rest(&held)
    }
}
