//! The messages that only the log has, for a copy of the vhost.
//!
//! ```text
//! records ─▶ begin_filling ─▶ next_absent ─▶ (the caller reads these entries) ─▶ absent_messages ─▶ … ─▶ end_filling
//!    │                                                                                │
//!    ▼                                                                                ▼
//! the copy ◀── each submitted record, before the ledger has it ────────────── the copy, in between
//! ```
//!
//! A copy gets each message once. It has those of shallow queues from [`Ledger::records`], and those that come later as
//! submitted records. So an extent adds the messages of queues that were deep when the filling began, which no record
//! has removed from then on, whether or not the log has that record yet. No batch joins an extent from before the
//! filling, and none of its records are written again until the filling ends.

use std::collections::{HashMap, HashSet};

use crosstie_queues::{QueueId, Record};

use crate::broken::Broken;
use crate::ledger::{Ledger, Sequence};
use crate::missing::Missing;

/// An extent with messages that a copy lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    pub extent: u64,
    /// Its first entry and its last; `None` while some of it is on its way to the log.
    pub entries: Option<(Sequence, Sequence)>,
}

/// The effects of submitted records that are in no batch yet on messages before them.
#[derive(Default)]
struct Waiting {
    emptied: HashSet<QueueId>,
    gone: HashSet<(QueueId, i64)>,
    cleared: Vec<(QueueId, i64, i64)>,
    deliveries: HashMap<(QueueId, i64), u32>,
}

impl Ledger {
    /// Begins to fill a copy that has all of [`Self::records`]. Returns whether it lacks messages.
    pub fn begin_filling(&mut self) -> bool {
        let live = &mut self.history.live;
        if !live.is_deep() {
            return false;
        }
        self.filling = Some(Missing {
            queues: live.deep_queues(),
            behind: 0,
            until: live.extents.seal(),
        });
        true
    }

    /// The next extent with messages that the copy lacks.
    pub fn next_absent(&self) -> Option<Absent> {
        let Missing {
            queues,
            behind,
            until,
        } = self.filling.as_ref()?;
        let live = &self.history.live;
        let mut extents = live.extents.between(*behind, *until);
        let is_absent = |number| live.is_absent(number, |queue| queues.contains(queue));
        let (number, extent) = extents.find(|(number, _)| is_absent(*number))?;
        let is_in_log = extent.is_within(self.acknowledged);
        Some(Absent {
            extent: number,
            entries: is_in_log.then_some((Sequence(extent.first), Sequence(extent.last))),
        })
    }

    /// The messages of that extent that the copy lacks, found in all of its entries. An error means that they are not what
    /// the node has read or written before.
    pub fn absent_messages<'e>(
        &mut self,
        extent: u64,
        entries: impl IntoIterator<Item = (Sequence, &'e [u8])>,
    ) -> Result<Vec<Record>, Broken> {
        let mut records = self.live_messages(extent, entries)?;
        let Some(filling) = &mut self.filling else {
            return Ok(Vec::new());
        };
        filling.behind = extent;
        let live = &self.history.live;
        let waiting = Waiting::of(self.waiting.iter().flat_map(|(records, _)| records));
        records.retain_mut(|record| {
            let Record::Enqueued {
                queue,
                place,
                message,
            } = record
            else {
                return false;
            };
            // One that is in memory was among the records.
            let is_missing =
                filling.queues.contains(queue) && live.content(*queue, *place).is_none();
            if let Some(deliveries) = waiting.deliveries.get(&(*queue, *place)) {
                message.deliveries = *deliveries;
            }
            is_missing && !waiting.remove(*queue, *place)
        });
        Ok(records)
    }

    /// Whether the log is to be cleaned and cannot be, because a copy is being filled.
    pub fn is_held_up(&self) -> bool {
        self.filling.is_some() && self.is_long(2)
    }

    /// The copy has everything, or there is none any more.
    pub fn end_filling(&mut self) {
        self.filling = None;
    }
}

impl Waiting {
    fn of<'r>(records: impl Iterator<Item = &'r Record>) -> Self {
        let mut waiting = Self::default();
        for record in records {
            match record {
                Record::Dequeued { queue, place } => {
                    waiting.gone.insert((*queue, *place));
                }
                Record::Purged { queue } | Record::QueueDeleted { id: queue } => {
                    waiting.emptied.insert(*queue);
                }
                Record::Cleared { queue, from, to } => waiting.cleared.push((*queue, *from, *to)),
                Record::Delivered {
                    queue,
                    place,
                    deliveries,
                } => {
                    waiting.deliveries.insert((*queue, *place), *deliveries);
                }
                _ => {}
            }
        }
        waiting
    }

    /// Whether one of them removes that message.
    fn remove(&self, queue: QueueId, place: i64) -> bool {
        let mut cleared = self.cleared.iter();
        self.emptied.contains(&queue)
            || self.gone.contains(&(queue, place))
            || cleared.any(|(of, from, to)| *of == queue && (*from..=*to).contains(&place))
    }
}
