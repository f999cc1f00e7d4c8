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
    /// Departures of single messages that were submitted with messages of streams, for example of a dead letter's
    /// original. A store must not have them before the streams have these messages, and may have them at any time after.
    held: Vec<Record>,
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
    pub(crate) warning: Option<String>,
    /// All streams of the vhost go.
    pub(crate) is_vhost_gone: bool,
    /// It could not be written, and is tried again then.
    pub(crate) retry_at: Option<Instant>,
}

impl Group {
    /// Messages of a stream that is deleted behind them are left out.
    fn add(&mut self, submission: Submission) {
        let mut changes = submission.changes.iter();
        let has_appends = changes.any(|change| matches!(change, StreamChange::Appended { .. }));
        let (held, records) = submission
            .records
            .into_iter()
            .partition::<Vec<_>, _>(|record| has_appends && may_be_later(record));
        self.held.extend(held);
        self.records.extend(records);
        self.position = submission.position;
        self.submissions += 1;
        self.bytes += submission.bytes;
        for change in submission.changes {
            match change {
                StreamChange::Appended { id, append } => self.appends_of(id).push(append),
                StreamChange::Bounded { id, limits } => {
                    self.bounded.retain(|(known, _)| *known != id);
                    self.bounded.push((id, limits));
                }
                StreamChange::Deleted { id } => {
                    self.appends_of(id).clear();
                    self.deleted.push(id);
                }
            }
        }
        if submission.is_vhost_gone {
            self.is_vhost_gone = true;
            self.appends.clear();
            self.places.clear();
            self.held.clear();
        }
    }

    fn appends_of(&mut self, id: QueueId) -> &mut Vec<StreamAppend> {
        let place = *self.places.entry(id).or_insert_with(|| {
            self.appends.push((id, Vec::new()));
            self.appends.len() - 1
        });
        &mut self.appends[place].1
    }

    /// Adds a later group's messages and records.
    fn merge(&mut self, later: Self) {
        for (id, appends) in later.appends {
            self.appends_of(id).extend(appends);
        }
        self.records.extend(later.records);
        self.held.extend(later.held);
        self.position = self.position.max(later.position);
        self.submissions += later.submissions;
        self.bytes += later.bytes;
        self.deleted.extend(later.deleted);
        self.bounded.extend(later.bounded);
        self.is_vhost_gone |= later.is_vhost_gone;
    }

    /// Whether a submission has to be written behind it: of a stream, the earlier messages come first, and confirms keep
    /// their order.
    fn precedes(&self, submission: &Submission) -> bool {
        let mut changes = submission.changes.iter();
        let touches = |change: &StreamChange| match change {
            StreamChange::Appended { id, .. }
            | StreamChange::Bounded { id, .. }
            | StreamChange::Deleted { id } => self.places.contains_key(id),
        };
        self.submissions > 0 || submission.is_vhost_gone || changes.any(touches)
    }

    /// Takes out what has to be tried again, after all that can be refused has been. The rest may be stored.
    pub(crate) fn split_rest(&mut self) -> Option<Self> {
        if !self.has_appends() {
            return None;
        }
        let appends: Vec<_> = mem::take(&mut self.appends)
            .into_iter()
            .filter(|(_, appends)| !appends.is_empty())
            .collect();
        let places = appends.iter().enumerate();
        let mut rest = Self {
            places: places.map(|(place, (id, _))| (*id, place)).collect(),
            appends,
            held: mem::take(&mut self.held),
            ..Self::default()
        };
        self.places.clear();
        rest.count();
        self.count();
        Some(rest)
    }

    /// The records that a store may have once the streams have the messages.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        let mut records = mem::take(&mut self.records);
        records.append(&mut self.held);
        records
    }

    fn count(&mut self) {
        let appends = self.appends.iter().flat_map(|(_, appends)| appends);
        let records = self.records.iter().chain(&self.held);
        self.bytes =
            appends.map(append_bytes).sum::<usize>() + records.map(record_bytes).sum::<usize>();
    }

    pub(crate) fn has_appends(&self) -> bool {
        self.appends.iter().any(|(_, appends)| !appends.is_empty())
    }

    /// Removes records that cancel each other. A message whose departure waits is to be stored until then: its publisher
    /// may get a confirm.
    fn cancel(&mut self) {
        if !self.has_appends() {
            self.records.append(&mut self.held);
        }
        let kept = find_lasting(self.records.iter().map(|record| ((), record)));
        let mut kept = kept.iter();
        // As many marks as records.
        self.records.retain(|_| *kept.next().unwrap_or(&true));
    }
}

/// Whether a record may be stored behind all later ones: no other message ever has that place.
fn may_be_later(record: &Record) -> bool {
    matches!(record, Record::Dequeued { .. } | Record::Cleared { .. })
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

/// Adds submissions to the groups of their vhosts, in their order. A group that waits for another attempt delays only
/// those that have to be behind it.
pub(crate) fn add(groups: &mut Vec<(Arc<str>, Group)>, taken: Vec<Submission>) {
    for submission in taken {
        let vhost = Arc::clone(&submission.vhost);
        let precedes = |of: &Arc<str>, group: &Group| *of == vhost && group.precedes(&submission);
        let mut preceding = Vec::new();
        for (of, group) in groups.extract_if(.., |(of, group)| precedes(of, group)) {
            drop(of);
            preceding.push(group);
        }
        // One that has only messages of streams left is the earlier one.
        preceding.sort_by_key(|group| group.submissions > 0);
        let mut preceding = preceding.into_iter();
        let mut group = preceding.next().unwrap_or_default();
        preceding.for_each(|later| group.merge(later));
        group.add(submission);
        groups.push((vhost, group));
    }
}

/// A group that could not be written. Its owner refuses those of its messages whose publisher waits for a confirm. Other
/// messages are tried again, and the departures that were submitted with them wait for that: a dead letter's original must
/// not be gone before the letter is written. All other records may be stored.
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
    }

    /// The streams with messages that are left.
    pub fn streams(&self) -> impl Iterator<Item = QueueId> {
        let appends = self.group.appends.iter();
        let left = appends.filter(|(_, appends)| !appends.is_empty());
        left.map(|(id, _)| *id)
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
