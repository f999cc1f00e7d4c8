//! The target of a planned move: builds the vhost while the owner goes on serving, and keeps what it has built up to
//! date from the log. So the time without an owner does not depend on the vhost's contents.

use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crosstie_jetstream::Stream;
use crosstie_queues::{Record, find_lasting};
use tokio::task::{JoinError, JoinHandle};

use super::driver::{Driver, Obstacle};
use super::heartbeats::Beats;
use super::monitor;
use super::task::{Building, Holder};

/// Interval of heartbeats between the owner and the target of a move.
pub(super) const PREPARING_BEAT_EVERY: Duration = Duration::from_millis(50);

/// A vhost as far as its log has been read.
pub(super) struct Built {
    vhost: Box<dyn Building>,
    /// For the node's copy: the records so far; `None` if the node keeps no copy.
    records: Option<Vec<Record>>,
    /// Number of records from which on those that cancel each other are removed.
    records_max: usize,
}

/// The preparation for a move.
pub(super) struct Preparation {
    /// The epoch of the owner that wants to move the vhost.
    epoch: u64,
    state: State,
}

enum State {
    /// With the records that were read meanwhile.
    Building(JoinHandle<Built>, Vec<Record>),
    Done(Built),
    /// Only the log had some of the messages meanwhile. A vhost that was built does not follow those, and is built anew in
    /// the end, from the few that the ledger has.
    Stale,
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Of the vhost, with its messages, which the ledger has too.
    pub(super) vhost_bytes: usize,
    /// Of records, without their messages.
    pub(super) records_bytes: usize,
}

/// Approximate memory of a record that is kept, beside its message.
const RECORD_BYTES: usize = 160;

/// Number of kept records from which on those that cancel each other are removed.
const RECORDS_MIN: usize = 10_000;

impl Built {
    /// Builds the vhost from these records. Takes time in proportion to their number.
    pub(super) fn new(holder: Arc<dyn Holder>, records: Vec<Record>, is_copied: bool) -> Self {
        let mut built = Self {
            vhost: holder.build(),
            records: is_copied.then(Vec::new),
            records_max: RECORDS_MIN,
        };
        built.restore(records);
        built
    }

    fn restore(&mut self, records: Vec<Record>) {
        if let Some(all) = &mut self.records {
            all.extend(records.iter().cloned());
            if all.len() > self.records_max {
                cancel(all);
                self.records_max = RECORDS_MIN.max(2 * all.len());
            }
        }
        self.vhost.restore(records);
    }

    fn memory_bytes(&self) -> Held {
        let records = self.records.as_ref().map_or(0, Vec::len);
        Held {
            vhost_bytes: self.vhost.memory_bytes(),
            records_bytes: records * RECORD_BYTES,
        }
    }

    /// The vhost without the records for a copy.
    pub(super) fn into_parts(self) -> (Box<dyn Building>, Option<Vec<Record>>) {
        (self.vhost, self.records)
    }
}

impl Preparation {
    /// Notes new records of the log; `is_deep`: only the log has some of the messages.
    pub(super) fn restore(&mut self, records: Vec<Record>, is_deep: bool) {
        match &mut self.state {
            _ if is_deep => self.note_deep(),
            State::Building(_, waiting) => waiting.extend(records),
            State::Done(built) => built.restore(records),
            State::Stale => {}
        }
    }

    /// Notes that only the log has some of the messages.
    pub(super) fn note_deep(&mut self) {
        if !matches!(self.state, State::Stale) {
            self.end();
        }
    }

    /// What was built is of no use any more. Dropping it takes time in proportion to its messages.
    fn end(&mut self) {
        let before = mem::replace(&mut self.state, State::Stale);
        drop(tokio::task::spawn_blocking(move || drop(before)));
    }

    pub(super) fn memory_bytes(&self) -> Held {
        match &self.state {
            State::Building(_, waiting) => Held {
                vhost_bytes: 0,
                records_bytes: waiting.len() * RECORD_BYTES,
            },
            State::Done(built) => built.memory_bytes(),
            State::Stale => Held::default(),
        }
    }

    /// The epoch whose successor this node is prepared to be; 0 while it builds the vhost.
    pub(super) fn prepared(&self) -> u64 {
        match &self.state {
            State::Building(..) => 0,
            State::Done(_) | State::Stale => self.epoch,
        }
    }

    /// The vhost, if it is built.
    pub(super) fn into_built(self) -> Option<Built> {
        match self.state {
            State::Done(built) => Some(built),
            State::Building(..) | State::Stale => None,
        }
    }
}

impl Driver {
    /// Begins to prepare if the owner wants to move the vhost to this node; ends that if the owner does not any more.
    pub(super) async fn prepare(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
    ) -> Result<(), Obstacle> {
        let epoch = self.preparation.as_ref().map(|found| found.epoch);
        let is_warm = self.task.settings.is_standby_warm;
        match self.others.wanted() {
            wanted if wanted == epoch => {}
            Some(wanted) => {
                self.check_sync().await?;
                if !is_warm {
                    self.begin_anew();
                    let end = self.examine(stream, beats).await?.last;
                    self.read_to(stream, end).await?;
                }
                self.preparation = Some(self.begin_to_build(wanted));
            }
            // The owner has handed the vhost over.
            None if self.others.is_for_this() => {}
            // A cold standby keeps nothing of the log.
            None if !is_warm => self.begin_anew(),
            None => self.preparation = None,
        }
        Ok(())
    }

    /// Checks that the NATS servers sync what they acknowledge.
    pub(super) async fn check_sync(&self) -> Result<(), Obstacle> {
        let checked = monitor::check(&self.asking, &self.task.settings.monitor).await;
        if let Some(warning) = checked.map_err(Obstacle::Alarm)? {
            tracing::warn!("vhost '{}': {warning}", self.task.vhost);
        }
        Ok(())
    }

    fn begin_to_build(&self, epoch: u64) -> Preparation {
        // Of a deep queue nothing is to be built yet.
        if self.ledger.is_deep() {
            let state = State::Stale;
            return Preparation { epoch, state };
        }
        let records: Vec<Record> = self.ledger.records().collect();
        let holder = Arc::clone(&self.task.holder);
        let is_copied = self.task.settings.is_kept_locally;
        let building = tokio::task::spawn_blocking(move || Built::new(holder, records, is_copied));
        let state = State::Building(building, Vec::new());
        Preparation { epoch, state }
    }

    /// Whether the vhost is built, as far as the log has been read.
    pub(super) fn is_prepared(&self) -> bool {
        let prepared = self.preparation.as_ref();
        prepared.is_some_and(|prepared| prepared.prepared() > 0)
    }

    /// Handles the end of [`built`].
    pub(super) fn handle_built(&mut self, built: Result<Built, JoinError>) {
        let Some(Preparation { epoch, state }) = self.preparation.take() else {
            return;
        };
        // A thread that panicked has logged that; the owner waits in vain, and goes on serving.
        if let (Ok(mut built), State::Building(_, waiting)) = (built, state) {
            built.restore(waiting);
            let state = State::Done(built);
            self.preparation = Some(Preparation { epoch, state });
        }
    }
}

/// Removes records that cancel each other: a message that has left is in memory for them alone.
fn cancel(records: &mut Vec<Record>) {
    let lasting = find_lasting(records.iter().map(|record| ((), record)));
    let mut lasting = lasting.iter();
    // As many marks as records.
    records.retain(|_| *lasting.next().unwrap_or(&true));
}

/// Waits until the vhost is built.
pub(super) async fn built(preparation: &mut Option<Preparation>) -> Result<Built, JoinError> {
    match preparation {
        Some(Preparation {
            state: State::Building(building, _),
            ..
        }) => building.await,
        _ => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::Properties;
    use crosstie_queues::{MessageContent, QueueId, StoredMessage};

    use super::super::journal::Journal;
    use super::super::task::Beginning;
    use super::*;

    /// Counts a vhost's messages as bytes.
    #[derive(Default)]
    struct Counted(usize);

    impl Building for Counted {
        fn restore(&mut self, records: Vec<Record>) {
            for record in records {
                match record {
                    Record::Enqueued { .. } => self.0 += 1,
                    _ => self.0 -= 1,
                }
            }
        }

        fn memory_bytes(&self) -> usize {
            self.0
        }

        fn open(self: Box<Self>, _beginning: Beginning, _journal: &Arc<Journal>) {}
    }

    #[tokio::test]
    async fn what_is_prepared_is_counted_and_keeps_no_message_that_has_left() {
        let queue = QueueId(1);
        let content = || {
            let content = MessageContent::new("", "q", Properties::EMPTY.bytes(), b"a body");
            Arc::new(content)
        };
        let message = |content: &Arc<MessageContent>| StoredMessage {
            content: Arc::clone(content),
            expires_at: None,
            deliveries: 0,
        };
        let built = Built {
            vhost: Box::new(Counted::default()),
            records: Some(Vec::new()),
            records_max: RECORDS_MIN,
        };
        let state = State::Done(built);
        let mut preparation = Preparation { epoch: 7, state };
        let first = content();
        for place in 0..3 * RECORDS_MIN as i64 {
            let content = if place == 0 {
                Arc::clone(&first)
            } else {
                content()
            };
            let enqueued = Record::enqueued(queue, place, message(&content));
            preparation.restore(vec![enqueued], false);
            // Six stay.
            if place % (RECORDS_MIN as i64 / 2) != 1 {
                preparation.restore(vec![Record::dequeued(queue, place)], false);
            }
        }
        let held = preparation.memory_bytes();
        assert_eq!(held.vhost_bytes, 6);
        assert!(
            held.records_bytes <= (RECORDS_MIN + 1) * RECORD_BYTES,
            "{held:?}"
        );
        assert_eq!(Arc::strong_count(&first), 1, "its body is gone");
        // Once only the log has messages, nothing that was built is of use.
        preparation.note_deep();
        assert_eq!(preparation.memory_bytes(), Held::default());
        assert_eq!(preparation.prepared(), 7);
        assert!(preparation.into_built().is_none());
    }
}
