//! The target of a planned move: builds the vhost while the owner goes on serving, and keeps what it has built up to
//! date from the log. So the time without an owner does not depend on the vhost's contents.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crosstie_jetstream::Stream;
use crosstie_queues::Record;
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
    /// For the node's copy: all records so far; `None` if the node keeps no copy.
    pub(super) records: Option<Vec<Record>>,
}

/// The preparation for a move.
pub(super) struct Preparation {
    /// The epoch of the owner that wants to move the vhost.
    epoch: u64,
    state: State,
    /// Only the log had some of the messages meanwhile. What is built does not follow those, and is built anew in the end,
    /// from the few that the ledger has.
    is_stale: bool,
}

enum State {
    /// With the records that were read meanwhile.
    Building(JoinHandle<Built>, Vec<Record>),
    Done(Built),
}

impl Built {
    /// Builds the vhost from these records. Takes time in proportion to their number.
    pub(super) fn new(holder: Arc<dyn Holder>, records: Vec<Record>, is_copied: bool) -> Self {
        let mut built = Self {
            vhost: holder.build(),
            records: is_copied.then(Vec::new),
        };
        built.restore(records);
        built
    }

    fn restore(&mut self, records: Vec<Record>) {
        if let Some(all) = &mut self.records {
            all.extend(records.iter().cloned());
        }
        self.vhost.restore(records);
    }

    /// The vhost without the records for a copy.
    pub(super) fn into_parts(self) -> (Box<dyn Building>, Option<Vec<Record>>) {
        (self.vhost, self.records)
    }
}

impl Preparation {
    /// Notes new records of the log; `is_deep`: only the log has some of the messages.
    pub(super) fn restore(&mut self, records: Vec<Record>, is_deep: bool) {
        self.is_stale |= is_deep;
        if self.is_stale {
            return;
        }
        match &mut self.state {
            State::Building(_, waiting) => waiting.extend(records),
            State::Done(built) => built.restore(records),
        }
    }

    /// The epoch whose successor this node is prepared to be; 0 while it builds the vhost.
    pub(super) fn prepared(&self) -> u64 {
        match &self.state {
            State::Building(..) => 0,
            State::Done(_) => self.epoch,
        }
    }

    /// The vhost, if it is built.
    pub(super) fn into_built(self) -> Option<Built> {
        match self.state {
            State::Done(built) if !self.is_stale => Some(built),
            State::Building(..) | State::Done(_) => None,
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
        let records: Vec<Record> = match self.ledger.is_deep() {
            true => Vec::new(),
            false => self.ledger.records().collect(),
        };
        let holder = Arc::clone(&self.task.holder);
        let is_copied = self.task.settings.is_kept_locally;
        let building = tokio::task::spawn_blocking(move || Built::new(holder, records, is_copied));
        Preparation {
            epoch,
            state: State::Building(building, Vec::new()),
            is_stale: self.ledger.is_deep(),
        }
    }

    /// Whether the vhost is built, as far as the log has been read.
    pub(super) fn is_prepared(&self) -> bool {
        let prepared = self.preparation.as_ref();
        prepared.is_some_and(|prepared| prepared.prepared() > 0)
    }

    /// Handles the end of [`built`].
    pub(super) fn handle_built(&mut self, built: Result<Built, JoinError>) {
        let Some(Preparation {
            epoch,
            state,
            is_stale,
        }) = self.preparation.take()
        else {
            return;
        };
        // A thread that panicked has logged that; the owner waits in vain, and goes on serving.
        if let (Ok(mut built), State::Building(_, waiting)) = (built, state) {
            built.restore(waiting);
            let state = State::Done(built);
            self.preparation = Some(Preparation {
                epoch,
                state,
                is_stale,
            });
        }
    }
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
