//! The log, and the messages to and from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_ledger::{Broken, Excerpt, Ledger, Sequence};
use crosstie_queues::{Record, StoredMessage};

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
    /// Entries that the node reads again.
    Fetch {
        first: Sequence,
        last: Sequence,
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

    /// Reads messages again.
    pub(super) fn read(
        &self,
        mut excerpt: Excerpt,
    ) -> Result<(Vec<(i64, StoredMessage)>, i64), Broken> {
        while let Some((next, last)) = excerpt.next_read() {
            // The log's front may be purged.
            let mut entries = self.entries.range(next.0..=last.0);
            let (at, entry) = entries.next().ok_or(Broken::Missing)?;
            excerpt.take(Sequence(*at), entry)?;
        }
        // One page was asked for.
        excerpt.finish().remove(0)
    }

    /// What a ledger has, with the messages that only the log has.
    pub(super) fn contents(&self, ledger: &Ledger) -> Result<Vec<Record>, String> {
        let mut records = Vec::new();
        for record in ledger.records() {
            let Record::Kept(kept) = record else {
                records.push(record);
                continue;
            };
            let (mut from, before) = (kept.from, records.len());
            while from <= kept.to {
                let excerpt = ledger.excerpt(kept.queue, (from, kept.to), 200);
                let read = self.read(excerpt);
                let (messages, upto) = read.map_err(|broken| format!("{kept:?}: {broken}"))?;
                from = upto + 1;
                records.extend(
                    messages
                        .into_iter()
                        .map(|(place, message)| Record::Enqueued {
                            queue: kept.queue,
                            place,
                            message,
                        }),
                );
            }
            if records.len() - before != kept.messages {
                return Err(format!("the log has other messages than {kept:?}"));
            }
        }
        Ok(records)
    }
}
