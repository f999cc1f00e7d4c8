//! The extents of a log: consecutive batches, and which of their records are live.

use std::collections::BTreeMap;

use crosstie_queues::QueueId;

use crate::key::Key;

/// Batches that are in the log, or on their way there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// Its first entry and its last; 0 while the log has acknowledged none.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Including those of incomplete batches before it.
    pub(crate) bytes: u64,
    /// Number of its batches, and of those that the log has not acknowledged.
    batches: u32,
    open: u32,
    /// Number of its live records, and of the messages among them.
    pub(crate) live: usize,
    pub(crate) messages: usize,
    /// The keys of all declarations in it, live or not, and of all runs of messages.
    pub(crate) keys: Vec<Key>,
    pub(crate) runs: Vec<(QueueId, i64)>,
}

/// Extents without live records at the front of the log. They stay without: a record is in the batch written last.
#[derive(Clone, Copy, Debug, Default)]
struct Idle {
    /// The extent behind them.
    next: u64,
    /// The last entry of them; 0 if there is none.
    last: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    /// By their first batches.
    extents: BTreeMap<u64, Extent>,
    /// The extent of the last batch, and that batch.
    current: u64,
    begun: u64,
    /// No batch joins the current one any more.
    is_sealed: bool,
    /// The front of the log without live records, as far as [`Self::idle_front`] has found it.
    idle: Idle,
    /// The number of keys in the extents.
    keys: usize,
    /// Octets of the entries in the log.
    log_bytes: u64,
    /// A batch joins the extent before it if that has fewer octets.
    joined_bytes: u64,
}

/// Maximum number of batches in an extent: those without live records are purged together.
const BATCHES_MAX: u32 = 1024;

/// Approximate number of extents of a log, and the size from which on there are more.
const EXTENTS: u64 = 1024;
const EXTENT_BYTES_MAX: u64 = 4 << 20;

const EXTENT_MEMORY_BYTES: usize = size_of::<Extent>() + 40;
const KEY_MEMORY_BYTES: usize = size_of::<Key>();

impl Extents {
    /// Of an empty log. A batch joins the extent before it if that has fewer octets than these.
    pub(crate) fn new(joined_bytes: u64) -> Self {
        Self {
            joined_bytes,
            ..Self::default()
        }
    }

    /// Begins a batch: the records from now on are in it.
    pub(crate) fn begin(&mut self, batch: u64) {
        if batch == self.begun {
            return;
        }
        let extent_bytes = self.extent_bytes();
        let before = self.extents.get_mut(&self.current);
        let joined = before.filter(|extent| {
            let has_room = extent.batches < BATCHES_MAX && extent.bytes < extent_bytes;
            batch > self.begun && has_room && !self.is_sealed
        });
        self.begun = batch;
        if let Some(extent) = joined {
            extent.batches += 1;
            extent.open += 1;
            return;
        }
        (self.current, self.is_sealed) = (batch, false);
        let extent = self.extents.entry(batch).or_default();
        extent.batches += 1;
        extent.open += 1;
    }

    /// The size from which on the next batch begins an extent. A long log has large ones: each takes memory for every
    /// queue with messages in it.
    fn extent_bytes(&self) -> u64 {
        let of_log = (self.log_bytes / EXTENTS).min(EXTENT_BYTES_MAX);
        self.joined_bytes.max(of_log)
    }

    /// Has the next batch begin an extent; returns the last one before that.
    pub(crate) fn seal(&mut self) -> u64 {
        self.is_sealed = true;
        self.current
    }

    /// Records that a batch is in the log, from its first entry to its last.
    pub(crate) fn end(&mut self, batch: u64, (first, last): (u64, u64), bytes: u64) {
        self.log_bytes += bytes;
        let of_batch = self.extents.range_mut(..=batch).next_back();
        let Some((_, extent)) = of_batch else {
            return;
        };
        if extent.first == 0 {
            extent.first = first;
        }
        extent.open = extent.open.saturating_sub(1);
        extent.last = last;
        extent.bytes += bytes;
    }

    /// Adds an entry without a batch to the last batch in the log.
    pub(crate) fn extend(&mut self, last: u64, bytes: u64) {
        let ended = self.extents.values_mut().rev().find(|of| of.last > 0);
        if let Some(extent) = ended {
            self.idle = Idle::default();
            self.log_bytes += bytes;
            extent.last = last;
            extent.bytes += bytes;
        }
    }

    /// Removes extents without live records from the front, up to `last`; returns the entry up to which the log can be
    /// purged, and the octets that this frees.
    /// Called for each append, so that what has been found before is not looked at again.
    pub(crate) fn idle_front(&mut self, last: u64) -> Option<(u64, u64)> {
        for (batch, extent) in self.extents.range(self.idle.next..) {
            // The current one may have live records yet.
            if extent.live > 0 || !extent.is_within(last) || *batch == self.current {
                break;
            }
            self.idle.next = batch + 1;
            self.idle.last = extent.last;
            self.idle.bytes += extent.bytes;
        }
        let Idle { last, bytes, .. } = self.idle;
        (last > 0).then_some((last, bytes))
    }

    /// Makes one of the extents without live records at the front, on a node that does not purge the log.
    pub(crate) fn merge_idle(&mut self) {
        loop {
            let mut front = self.extents.iter();
            let is_idle =
                |number: u64, of: &Extent| of.live == 0 && of.open == 0 && number != self.current;
            let (Some((first, idle)), Some((next, behind))) = (front.next(), front.next()) else {
                return;
            };
            if !is_idle(*first, idle) || !is_idle(*next, behind) {
                return;
            }
            let next = *next;
            self.idle = Idle::default();
            if let Some((_, idle)) = self.extents.pop_first()
                && let Some(behind) = self.extents.get_mut(&next)
            {
                behind.first = idle.first;
                behind.bytes += idle.bytes;
            }
        }
    }

    /// Records a purge up to and including an entry.
    pub(crate) fn purged(&mut self, last: u64) {
        self.idle = Idle::default();
        while let Some(first) = self.extents.first_entry()
            && first.get().is_within(last)
            && first.get().live == 0
            && *first.key() != self.current
        {
            self.log_bytes = self.log_bytes.saturating_sub(first.remove().bytes);
        }
    }

    /// The extents with live records, the oldest first, that are in the log up to and including `last`.
    pub(crate) fn oldest(&self, last: u64) -> impl Iterator<Item = (u64, &Extent)> {
        let behind = self.extents.range(self.idle.next..);
        // What the current one has would be written into the same.
        let within = behind
            .take_while(move |(number, extent)| extent.is_within(last) && **number != self.current);
        let live = within.filter(|(_, extent)| extent.live > 0);
        live.map(|(number, extent)| (*number, extent))
    }

    /// The extents behind that one, up to and including the last.
    pub(crate) fn between(&self, behind: u64, last: u64) -> impl Iterator<Item = (u64, &Extent)> {
        let extents = self.extents.range(behind + 1..);
        let extents = extents.take_while(move |(number, _)| **number <= last);
        extents.map(|(number, extent)| (*number, extent))
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Extent> {
        self.extents.get(&number)
    }

    /// Counts a live declaration of the current batch; returns its extent.
    pub(crate) fn count(&mut self, key: Key) -> u64 {
        let extent = self.extents.entry(self.current).or_default();
        extent.live += 1;
        extent.keys.push(key);
        self.keys += 1;
        self.current
    }

    /// Counts a live message of the current batch; returns its extent.
    pub(crate) fn count_message(&mut self) -> u64 {
        let extent = self.extents.entry(self.current).or_default();
        extent.live += 1;
        extent.messages += 1;
        self.current
    }

    /// Notes a run of messages.
    pub(crate) fn add_run(&mut self, number: u64, run: (QueueId, i64)) {
        if let Some(extent) = self.extents.get_mut(&number) {
            extent.runs.push(run);
        }
    }

    /// Records that a declaration in an extent is not live any more.
    pub(crate) fn forget(&mut self, number: u64) {
        if let Some(extent) = self.extents.get_mut(&number) {
            extent.live -= 1;
            self.keys -= extent.clear();
        }
    }

    /// Records that so many messages in an extent are not live any more.
    pub(crate) fn forget_messages(&mut self, number: u64, count: usize) {
        if let Some(extent) = self.extents.get_mut(&number) {
            extent.live -= count;
            extent.messages -= count;
            self.keys -= extent.clear();
        }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.extents.len() * EXTENT_MEMORY_BYTES + self.keys * KEY_MEMORY_BYTES
    }
}

impl Extent {
    /// Forgets the keys if nothing is live; returns the number of those of declarations.
    fn clear(&mut self) -> usize {
        if self.live > 0 {
            return 0;
        }
        self.runs = Vec::new();
        std::mem::take(&mut self.keys).len()
    }

    /// Whether all of it is in the log, and not behind that entry.
    pub(crate) fn is_within(&self, last: u64) -> bool {
        self.open == 0 && (1..=last).contains(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of the extents without live records at the front, looked at anew.
    fn idle(extents: &Extents, last: u64) -> Option<(u64, u64)> {
        let all = extents.extents.iter();
        let idle = all.take_while(|(number, of)| {
            of.live == 0 && of.is_within(last) && **number != extents.current
        });
        idle.fold(None, |sum, (_, of)| {
            Some((of.last, sum.map_or(0, |(_, bytes)| bytes) + of.bytes))
        })
    }

    #[test]
    fn a_long_log_has_few_large_extents() {
        const BATCH_BYTES: u64 = 100 << 10;
        let mut extents = Extents::new(256 << 10);
        for (mib, extents_max) in [(100, 400), (1 << 10, 2200), (10 << 10, 5500)] {
            while extents.log_bytes() < mib << 20 {
                let next = extents.begun + 1;
                extents.begin(next);
                extents.count_message();
                extents.end(next, (next, next), BATCH_BYTES);
            }
            let found = extents.extents.len();
            assert!(found < extents_max, "{found} of {mib} MiB");
        }
        let largest = extents.extents.values().map(|of| of.bytes).max();
        assert!(largest < Some(EXTENT_BYTES_MAX + 2 * BATCH_BYTES));
    }

    #[test]
    fn the_idle_front_and_the_keys_are_counted_along() {
        for joined_bytes in [0, 35] {
            let mut extents = Extents::new(joined_bytes);
            let (mut chance, mut met) = (1_u64, [0; 3]);
            let mut live = Vec::new();
            let mut random = |count: u64| {
                chance = chance
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (chance >> 33) % count
            };
            for batch in 1..3000_u64 {
                extents.begin(batch);
                if random(3) == 0 {
                    live.push(extents.count(Key::Queue(QueueId(batch))));
                }
                if random(3) < 2 && !live.is_empty() {
                    let at = random(live.len().min(8) as u64);
                    extents.forget(live.swap_remove(at as usize));
                }
                extents.end(batch, (batch, batch), 10);
                let last = batch - random(3).min(batch);
                let expected = idle(&extents, last);
                let found = extents.idle_front(last);
                // Less of the log may be asked for than before: what was idle stays so.
                assert!(found >= expected, "{found:?} {expected:?}");
                assert!(found <= idle(&extents, batch));
                met[0] += u64::from(found.is_some());
                match random(20) {
                    0 => {
                        extents.extend(batch, 5);
                        met[1] += 1;
                    }
                    1 => {
                        if let Some((to, _)) = found {
                            extents.purged(to);
                            met[2] += 1;
                        }
                    }
                    _ => {}
                }
                let all = extents.extents.values();
                let keys: usize = all.map(|of| of.keys.len()).sum();
                assert_eq!(extents.keys, keys);
            }
            assert!(met.iter().all(|times| *times > 20), "{met:?}");
        }
    }
}
