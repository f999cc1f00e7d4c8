//! Finds the records worth writing: a message that came and went costs no write.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::{QueueId, Record};

impl Record {
    /// Whether it removes messages, so that records before it may be redundant.
    pub fn is_departure(&self) -> bool {
        matches!(
            self,
            Self::Dequeued { .. }
                | Self::Purged { .. }
                | Self::Cleared { .. }
                | Self::QueueDeleted { .. }
                | Self::VhostDeleted
        )
    }
}

impl Record {
    /// Whether it only says that a message was delivered.
    pub fn is_delivery(&self) -> bool {
        matches!(self, Self::Delivered { .. })
    }
}

/// For each record of a batch, from the first, whether later ones leave it meaningful. Each is given with the name of
/// its vhost.
pub fn find_lasting<'r, V: Copy + Eq + Hash>(
    records: impl DoubleEndedIterator<Item = (V, &'r Record)>,
) -> Vec<bool> {
    // From the last to the first.
    let mut lasting: Vec<bool> = Vec::new();
    // Entries that later records remove.
    let mut cleared: HashSet<(V, QueueId)> = HashSet::new();
    let mut dequeued: HashMap<(V, QueueId, i64), usize> = HashMap::new();
    let mut deleted: HashSet<V> = HashSet::new();
    let mut set: HashSet<(V, &str)> = HashSet::new();
    for (vhost, record) in records.rev() {
        let index = lasting.len();
        let is_lasting = match record {
            _ if deleted.contains(&vhost) => false,
            Record::VhostDeleted => deleted.insert(vhost),
            Record::Purged { queue } | Record::QueueDeleted { id: queue } => {
                cleared.insert((vhost, *queue));
                true
            }
            Record::Dequeued { queue, .. } if cleared.contains(&(vhost, *queue)) => false,
            Record::Dequeued { queue, place } => {
                dequeued.insert((vhost, *queue, *place), index);
                true
            }
            Record::Enqueued { queue, .. } if cleared.contains(&(vhost, *queue)) => false,
            Record::Enqueued { queue, place, .. } => {
                match dequeued.remove(&(vhost, *queue, *place)) {
                    Some(undone_at) => {
                        lasting[undone_at] = false;
                        false
                    }
                    None => true,
                }
            }
            Record::Delivered { queue, place, .. } => {
                !cleared.contains(&(vhost, *queue))
                    && !dequeued.contains_key(&(vhost, *queue, *place))
            }
            Record::Setting { key, .. } => set.insert((vhost, &**key)),
            Record::ExchangeDeclared { .. }
            | Record::ExchangeDeleted { .. }
            | Record::QueueDeclared { .. }
            | Record::Bound { .. }
            | Record::Unbound { .. }
            | Record::Cleared { .. }
            | Record::Kept(_)
            | Record::Rested { .. }
            | Record::VhostCreated => true,
        };
        lasting.push(is_lasting);
    }
    lasting.reverse();
    lasting
}
