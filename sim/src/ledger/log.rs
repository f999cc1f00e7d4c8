//! The log, and the messages to and from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_ledger::Sequence;

#[derive(Debug, Default)]
pub(super) struct Log {
    pub entries: BTreeMap<u64, Arc<[u8]>>,
    pub last: u64,
    pub purges: usize,
}

/// Something that arrives, for a node as it was when it was sent.
#[derive(Clone, Debug)]
pub(super) enum Arrival {
    Append {
        after: Sequence,
        entry: Arc<[u8]>,
    },
    Appended(Sequence),
    Refused(Sequence),
    Read {
        after: Sequence,
    },
    End {
        after: Sequence,
        last: Sequence,
        entries: Vec<(Sequence, Arc<[u8]>)>,
    },
    Purge(Sequence),
    Purged(Sequence),
}

impl Log {
    /// Takes an entry behind the one that its writer expects to be the last.
    pub(super) fn append(&mut self, after: Sequence, entry: &Arc<[u8]>) -> Option<Sequence> {
        if after.0 != self.last {
            return None;
        }
        self.last += 1;
        self.entries.insert(self.last, Arc::clone(entry));
        Some(Sequence(self.last))
    }

    pub(super) fn behind(&self, after: Sequence) -> Vec<(Sequence, Arc<[u8]>)> {
        let behind = self.entries.range(after.0 + 1..);
        behind
            .map(|(sequence, entry)| (Sequence(*sequence), Arc::clone(entry)))
            .collect()
    }

    pub(super) fn purge(&mut self, to: Sequence) {
        self.purges += 1;
        self.entries = self.entries.split_off(&(to.0 + 1));
    }
}
