//! The contents of vhosts in a worker's store, from before they were replicated.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_queues::Record;
use crosstie_store::Restored;

/// The contents of a vhost there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub queues: u64,
    pub messages: u64,
}

impl Held {
    /// The contents of a store, by vhost.
    pub(crate) fn by_vhost(restored: &[Restored]) -> BTreeMap<Arc<str>, Self> {
        let mut held = BTreeMap::<Arc<str>, Self>::new();
        for found in restored {
            let of = held.entry(Arc::clone(&found.vhost)).or_default();
            match found.record {
                Record::QueueDeclared { .. } => of.queues += 1,
                Record::Enqueued { .. } => of.messages += 1,
                _ => {}
            }
        }
        held
    }
}
