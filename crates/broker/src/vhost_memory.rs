//! The memory of a vhost's messages, as the flow control knows it: a message counts once.
//!
//! The owner of a replicated vhost has most messages in two places: the vhost, and the ledger of its log. Either may have let
//! messages out of memory that the other one still has. So the vhost counts its messages, and those of the ledger that are
//! more than the vhost has of the log's. These are the ones with a record that the log has acknowledged: transient messages,
//! and those whose batch is not sent yet, are in no ledger. A batch in flight counts twice for that long.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_queues::Vhost;

use super::peer::Peer;
use super::vhost::{Keeper, SharedVhost};

impl SharedVhost {
    /// Notes the bytes of messages that the ledger of the vhost's log has in memory. The flow control knows them from the next
    /// turn on.
    pub(super) fn set_ledger_bytes(&self, bytes: usize) {
        if let Keeper::Replicated { ledger_bytes, .. } = &self.keeper {
            ledger_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// The same at once, also if the vhost is at rest. [`FlowControl::judge_memory`] follows.
    ///
    /// [`FlowControl::judge_memory`]: super::flow::FlowControl::judge_memory
    pub(super) fn note_ledger_bytes(&self, bytes: usize) {
        let vhost = self.lock();
        self.set_ledger_bytes(bytes);
        self.note_memory(&vhost);
    }

    /// Notes the bytes in memory, under the lock. Returns whether they have changed.
    pub(super) fn note_memory(&self, vhost: &Vhost<Arc<Peer>>) -> bool {
        let after = vhost.memory_bytes() + self.bytes_of_ledger_alone(vhost);
        let before = self.memory_bytes.swap(after, Ordering::Relaxed);
        if after != before {
            self.shared.flow.memory_changed(before, after);
        }
        after != before
    }

    fn bytes_of_ledger_alone(&self, vhost: &Vhost<Arc<Peer>>) -> usize {
        let Keeper::Replicated {
            journal,
            ledger_bytes,
            ..
        } = &self.keeper
        else {
            return 0;
        };
        let in_log = vhost.stored_bytes().saturating_sub(journal.waiting_bytes());
        ledger_bytes.load(Ordering::Relaxed).saturating_sub(in_log)
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::TableBuf;
    use crosstie_metadata::LogPlace;
    use crosstie_queues::{
        MessageContent, Position, QueueId, Record, StoredMessage, Time, VhostConfig,
    };
    use tokio::runtime::Handle;

    use super::super::clock::Clock;
    use super::super::flow::FlowControl;
    use super::super::incomplete::Incomplete;
    use super::super::outbox::VhostOutbox;
    use super::super::replicated::Journal;
    use super::super::shared::Shared;
    use super::*;

    const QUEUE: QueueId = QueueId(1);
    const COUNT: i64 = 100;

    fn enqueued(place: i64) -> Record {
        let content = MessageContent::new("", "q", &[0, 0], &[7; 1000]);
        Record::enqueued(QUEUE, place, StoredMessage::new(Arc::new(content)))
    }

    /// A vhost whose log has all of its messages.
    fn restored() -> Vhost<Arc<Peer>> {
        let mut vhost = Vhost::new(VhostConfig::named("/"), 1);
        let declared = Record::queue_declared(QUEUE, "q", TableBuf::new());
        vhost.restore(Time(1), declared);
        (1..=COUNT).for_each(|place| vhost.restore(Time(1), enqueued(place)));
        vhost.restored(Time(1), &mut VhostOutbox::default());
        vhost
    }

    #[tokio::test]
    async fn messages_that_the_vhost_and_its_ledger_have_count_once() {
        let flow = FlowControl::new(usize::MAX, usize::MAX);
        let shared = Arc::new(Shared::new(flow, Incomplete::new(usize::MAX, 1, None)));
        let journal = Arc::new(Journal::new());
        let vhost = restored();
        let (own, of_log) = (vhost.memory_bytes(), vhost.stored_bytes());
        let vhost = Arc::new(SharedVhost::new(
            "/".into(),
            vhost,
            Clock::begin(),
            Arc::clone(&shared),
            Handle::current(),
            Keeper::replicated(&journal, usize::MAX, false, LogPlace::default()),
        ));
        let total = || shared.flow.memory_bytes();
        vhost.note_ledger_bytes(of_log);
        assert_eq!(total(), own);
        // The vhost has let some out of memory, and the ledger has not.
        vhost.note_ledger_bytes(of_log + 5_000);
        assert_eq!(total(), own + 5_000);
        // Of the vhost's messages, the log does not have all yet.
        let waiting = journal.submit(vec![enqueued(1), enqueued(2)], Position(2));
        assert!(waiting > 2_000);
        vhost.note_ledger_bytes(of_log);
        assert_eq!(total(), own + waiting);
        // The vhost's messages leave. The ledger has its own until the log has acknowledged that.
        let mut turn = vhost.turn(std::time::Instant::now());
        let (entered, now, outbox) = turn.enter();
        let purged = entered.purge_queue(now, "q", outbox);
        assert!(purged.is_ok());
        turn.work(10_000);
        turn.finish();
        assert_eq!(total(), of_log);
        vhost.note_ledger_bytes(0);
        assert_eq!(total(), 0);
    }
}
