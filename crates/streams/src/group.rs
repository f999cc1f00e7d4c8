//! What is written as one: the changes of a vhost's streams, and the records that a store may have after them.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_queues::{
    MessageContent, Position, QueueId, Record, StreamAppend, StreamChange, StreamLimits,
    find_lasting,
};

use crate::orders::Submission;

/// Approximate memory of a change beside its message's bytes.
const CHANGE_BYTES: usize = 96;

/// Submissions of one vhost.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) records: Vec<Record>,
    pub(crate) position: Position,
    pub(crate) submissions: usize,
    /// Approximate memory.
    pub(crate) bytes: usize,
    /// The messages of each stream.
    pub(crate) appends: Vec<(QueueId, Vec<StreamAppend>)>,
    places: HashMap<QueueId, usize>,
    pub(crate) deleted: Vec<QueueId>,
    /// Streams whose bounds have changed.
    pub(crate) bounded: Vec<(QueueId, StreamLimits)>,
    /// Records of submissions that only remove messages.
    departures: Vec<Record>,
    pub(crate) warning: Option<String>,
    /// All streams of the vhost go.
    pub(crate) is_vhost_gone: bool,
    /// It could not be written, and is tried again then.
    pub(crate) retry_at: Option<Instant>,
}

impl Group {
    /// Messages of a stream that is deleted behind them are left out.
    fn add(&mut self, submission: Submission) {
        // A deleted vhost must not be in the store again by the records before.
        let removes = |record: &Record| match record {
            Record::VhostDeleted => false,
            record => record.is_departure() || record.is_delivery(),
        };
        if submission.changes.is_empty() && submission.records.iter().all(removes) {
            let departures = submission.records.iter().filter(|r| r.is_departure());
            self.departures.extend(departures.cloned());
        }
        self.records.extend(submission.records);
        self.position = submission.position;
        self.submissions += 1;
        self.bytes += submission.bytes;
        self.is_vhost_gone |= submission.is_vhost_gone;
        for change in submission.changes {
            match change {
                StreamChange::Appended { id, append } => {
                    let place = *self.places.entry(id).or_insert_with(|| {
                        self.appends.push((id, Vec::new()));
                        self.appends.len() - 1
                    });
                    self.appends[place].1.push(append);
                }
                StreamChange::Bounded { id, limits } => {
                    self.bounded.retain(|(known, _)| *known != id);
                    self.bounded.push((id, limits));
                }
                StreamChange::Deleted { id } => {
                    if let Some(place) = self.places.get(&id) {
                        self.appends[*place].1.clear();
                    }
                    self.deleted.push(id);
                }
            }
        }
    }

    pub(crate) fn has_appends(&self) -> bool {
        self.appends.iter().any(|(_, appends)| !appends.is_empty())
    }

    /// Whether it has to be tried again after a failure.
    pub(crate) fn has_rest(&self) -> bool {
        self.is_vhost_gone || self.has_appends()
    }

    /// Removes records that cancel each other.
    fn cancel(&mut self) {
        let kept = find_lasting(self.records.iter().map(|record| ((), record)));
        let mut kept = kept.iter();
        // As many marks as records.
        self.records.retain(|_| *kept.next().unwrap_or(&true));
    }
}

pub(crate) fn change_bytes(change: &StreamChange) -> usize {
    match change {
        StreamChange::Appended { append, .. } => append_bytes(append),
        StreamChange::Bounded { .. } | StreamChange::Deleted { .. } => CHANGE_BYTES,
    }
}

fn append_bytes(append: &StreamAppend) -> usize {
    CHANGE_BYTES + append.content.memory_bytes()
}

pub(crate) fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Enqueued { message, .. } => CHANGE_BYTES + message.content.memory_bytes(),
        _ => CHANGE_BYTES,
    }
}

/// Adds submissions to the groups of their vhosts, in their order.
pub(crate) fn add(groups: &mut Vec<(Arc<str>, Group)>, taken: Vec<Submission>) {
    for submission in taken {
        let known = groups.iter().position(|(of, _)| *of == submission.vhost);
        let at = known.unwrap_or_else(|| {
            groups.push((Arc::clone(&submission.vhost), Group::default()));
            groups.len() - 1
        });
        groups[at].1.add(submission);
    }
}

/// A group that could not be written. Its owner refuses the publications of it that somebody waits for. What is left
/// is tried again: a dead letter's original, which its records remove, must not be gone before the letter is written.
#[derive(Debug)]
pub struct Unwritten<'a> {
    pub error: &'a str,
    /// The keeper ends, and drops what is left.
    pub is_last: bool,
    group: &'a mut Group,
}

impl<'a> Unwritten<'a> {
    pub(crate) fn new(group: &'a mut Group, error: &'a str, is_last: bool) -> Self {
        Self {
            error,
            is_last,
            group,
        }
    }

    /// Everything up to there is in it.
    pub fn position(&self) -> Position {
        self.group.position
    }

    /// The queues and places of messages that its records store.
    pub fn stored(&self) -> Vec<(QueueId, i64)> {
        let records = self.group.records.iter();
        records.filter_map(stored_at).collect()
    }

    /// Records that a store may have at once, and again with the others: they make room on a full disk.
    pub fn take_departures(&mut self) -> Vec<Record> {
        mem::take(&mut self.group.departures)
    }

    /// Leaves out the messages of streams that are refused; returns those.
    pub fn refuse(
        &mut self,
        is_refused: impl Fn(&MessageContent) -> bool,
    ) -> Vec<Arc<MessageContent>> {
        let mut refused = Vec::new();
        for (_, appends) in &mut self.group.appends {
            let gone = appends.extract_if(.., |append| is_refused(&append.content));
            refused.extend(gone.map(|append| append.content));
        }
        refused
    }

    /// Leaves out the records of messages that were withdrawn from queues.
    pub fn leave_out(&mut self, withdrawn: &HashSet<(QueueId, i64)>) {
        self.group.records.retain(|record| {
            let place = stored_at(record);
            place.is_none_or(|place| !withdrawn.contains(&place))
        });
        self.group.cancel();
        let appends = self.group.appends.iter().flat_map(|(_, appends)| appends);
        let of_appends = appends.map(append_bytes).sum::<usize>();
        self.group.bytes = of_appends + self.group.records.iter().map(record_bytes).sum::<usize>();
    }

    /// Whether messages of streams are left.
    pub fn has_rest(&self) -> bool {
        self.group.has_appends()
    }

    /// Leaves out all messages of streams.
    pub fn give_up(&mut self) {
        self.refuse(|_| true);
    }
}

/// The queue and place of a message that a record stores.
fn stored_at(record: &Record) -> Option<(QueueId, i64)> {
    match record {
        Record::Enqueued { queue, place, .. } => Some((*queue, *place)),
        _ => None,
    }
}
