//! Random appends, failures, retention and ends: what was confirmed is there, and what was refused is not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crosstie_disk::Disk;
use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{StreamFrom, StreamLimits, Time};

use super::chance::Chance;
use super::{append, read_all, reopen};
use crate::log::Log;
use crate::writer::Writer;

struct Run {
    disk: SimulatedDisk,
    chance: Chance,
    limits: StreamLimits,
    log: Arc<Log>,
    writer: Writer,
    now_ms: u64,
    /// The next offset, as a vhost counts it.
    next: u64,
    confirmed: BTreeMap<u64, Vec<u8>>,
    times: BTreeMap<u64, u64>,
    refused: BTreeSet<u64>,
    /// Neither: the process has ended before it knew.
    open: BTreeMap<u64, Vec<u8>>,
    /// Messages before it had to go; a power loss may bring some back.
    floor: u64,
    /// Files of old segments are still removed.
    is_removing: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let disk = SimulatedDisk::new(seed, u64::MAX);
        let mut chance = Chance(seed);
        let some = |chance: &mut Chance, least: u64, most: u64| match chance.below(3) {
            0 => None,
            _ => Some(least + chance.below(most)),
        };
        let limits = StreamLimits {
            bytes_max: some(&mut chance, 0, 20_000),
            age_max_ms: some(&mut chance, 1, 20_000),
            segment_bytes_max: Some(1 + chance.below(4_000)),
        };
        let (log, damages) = reopen(&disk, limits);
        assert!(damages.is_empty());
        Self {
            writer: Writer::new(Arc::new(disk.clone())),
            disk,
            chance,
            limits,
            log,
            now_ms: 1_000,
            next: 0,
            confirmed: BTreeMap::new(),
            times: BTreeMap::new(),
            refused: BTreeSet::new(),
            open: BTreeMap::new(),
            floor: 0,
            is_removing: true,
        }
    }

    /// Writes a group as the writer's thread does. Returns whether it was confirmed.
    fn append(&mut self, is_last: bool) -> bool {
        let mut appends = Vec::new();
        let mut bodies = BTreeMap::new();
        for _ in 0..1 + self.chance.below(12) {
            self.now_ms += self.chance.below(50);
            let size = match self.chance.below(20) {
                0 => 70_000,
                _ => self.chance.below(300),
            };
            let body: Vec<u8> = (0..size).map(|at| (self.next + at) as u8).collect();
            appends.push(append(self.next, self.now_ms, &body, self.limits));
            bodies.insert(self.next, body);
            self.times.insert(self.next, self.now_ms);
            self.next += 1;
        }
        let staged = self.writer.stage(&self.log, &appends).and_then(|staged| {
            let synced = self.writer.sync(&staged);
            let named = || self.writer.sync_names([&staged].into_iter());
            match synced.and_then(|()| named()) {
                Ok(()) => Ok(staged),
                Err(error) => {
                    self.writer.take_back(&staged);
                    Err(error)
                }
            }
        });
        match staged {
            Ok(staged) => {
                let (page, is_begun) = self.writer.publish(staged);
                if let Some(page) = page {
                    let offsets = (0..page.len()).filter_map(|at| page.message(at));
                    let offsets: Vec<u64> = offsets.map(|message| message.offset).collect();
                    assert!(offsets.iter().eq(bodies.keys()));
                }
                self.confirmed.extend(bodies);
                if is_begun {
                    self.retire();
                }
                true
            }
            Err(_) if is_last => {
                self.open.extend(bodies);
                false
            }
            Err(_) => {
                self.refused.extend(bodies.keys());
                false
            }
        }
    }

    fn retire(&mut self) {
        let before = self.log.table().clone();
        let paths = self.writer.retire(&self.log, self.now_ms);
        let after = self.log.table().clone();
        assert!(!after.segments.is_empty(), "the newest segment stays");
        let gone = before.segments.len() - after.segments.len();
        if let Some(age_max) = self.limits.age_max_ms
            && self.limits.bytes_max.is_none()
        {
            for segment in before.segments.iter().take(gone) {
                assert!(self.now_ms - segment.last_at_ms > age_max);
            }
        }
        for path in paths {
            // The oldest go first. The process may end in between.
            self.is_removing &= self.chance.below(8) > 0;
            if self.is_removing {
                self.is_removing = self.disk.remove(&path).is_ok();
            }
        }
    }

    /// Ends the process, with the power or without, and starts it again.
    fn end(&mut self, with_power: bool) {
        if with_power {
            self.disk = self.disk.lose_power();
        }
        self.disk.work_again();
        self.is_removing = true;
        self.writer = Writer::new(Arc::new(self.disk.clone()));
        let first = self.log.table().extent().first;
        let before = self.log.table().clone();
        let head = self
            .disk
            .open_to_read(&crate::files::head(super::DIRECTORY));
        let head = head.map(|file| crate::head::Head::read(&*file));
        let (log, damages) = reopen(&self.disk, self.limits);
        // A power loss may bring segments back that had to go, and not all of them.
        assert!(
            damages.iter().all(|d| with_power && d.to <= first),
            "nothing is damaged: {damages:?}, {head:?}, {before:?}"
        );
        self.log = log;
        self.floor = self.floor.max(first);
        let extent = self.log.table().extent();
        if let Some((last, _)) = self.confirmed.last_key_value() {
            assert!(
                extent.end > *last,
                "offset {last} is given twice: {extent:?}, {:?}",
                (self.disk.paths(), before)
            );
        }
        assert!(extent.first <= first.max(extent.end));
        self.next = extent.end;
        // Other messages get the offsets of those that were refused behind the end.
        self.refused.retain(|offset| *offset < extent.end);
        // What was in flight may be there or not.
        let open = std::mem::take(&mut self.open);
        let (found, _) = read_all(&self.disk, &self.log, StreamFrom::Offset(0), 10_000);
        let is_found = |(offset, _): &(u64, Vec<u8>)| found.contains_key(offset);
        self.confirmed.extend(open.into_iter().filter(is_found));
    }

    fn check(&mut self) {
        let extent = self.log.table().extent();
        let bytes_max = 1 + self.chance.below(100_000) as usize;
        let from = match self.chance.below(3) {
            0 => StreamFrom::Offset(0),
            _ => StreamFrom::Offset(extent.first),
        };
        let (found, damages) = read_all(&self.disk, &self.log, from, bytes_max);
        assert!(damages.iter().all(|damage| damage.to <= self.floor));
        let floor = extent.first.max(self.floor);
        let expected = self.confirmed.range(floor..);
        let expected: Vec<_> = expected.map(|(offset, body)| (*offset, body)).collect();
        let (old, read): (Vec<_>, Vec<_>) = found
            .iter()
            .map(|(offset, body)| (*offset, body))
            .partition(|(offset, _)| *offset < floor);
        assert!(
            old.iter()
                .all(|(offset, body)| self.confirmed.get(offset) == Some(body))
        );
        assert!(read == expected, "{:?}", diff(&read, &expected));
        assert!(found.keys().all(|offset| !self.refused.contains(offset)));
        let at_ms = self.chance.below(self.now_ms + 2);
        let since = StreamFrom::Since(Time(at_ms));
        let (found, _) = read_all(&self.disk, &self.log, since, bytes_max);
        let expected = self.confirmed.range(floor..);
        let mut expected = expected.map(|(offset, _)| *offset);
        let first = expected.find(|offset| self.times[offset] >= at_ms);
        let read = found.keys().copied().find(|offset| *offset >= floor);
        assert_eq!(read, first, "since {at_ms}");
    }
}

fn diff(read: &[(u64, &Vec<u8>)], expected: &[(u64, &Vec<u8>)]) -> (Vec<u64>, Vec<u64>) {
    let only = |these: &[(u64, &Vec<u8>)], those: &[(u64, &Vec<u8>)]| {
        let these = these.iter().filter(|one| !those.contains(one));
        these.map(|(offset, _)| *offset).collect()
    };
    (only(read, expected), only(expected, read))
}

#[test]
fn what_is_confirmed_survives_and_what_is_refused_does_not() {
    for seed in 0..400 {
        let mut run = Run::new(seed);
        for _ in 0..60 {
            match run.chance.below(10) {
                0 => {
                    let with_power = run.chance.below(2) == 0;
                    run.end(with_power);
                }
                1 => {
                    // The process ends in the middle of a group.
                    let after = run.chance.below(12);
                    run.disk
                        .fail_in(after, io::ErrorKind::StorageFull, u64::MAX);
                    run.append(true);
                    let with_power = run.chance.below(2) == 0;
                    run.end(with_power);
                }
                2 => {
                    let after = run.chance.below(12);
                    run.disk.fail_in(after, io::ErrorKind::StorageFull, 1);
                    run.append(false);
                    run.disk.work_again();
                }
                3 => run.check(),
                4 => {
                    run.now_ms += run.chance.below(10_000);
                    if run.log.table().segments.len() > 1 {
                        run.retire();
                    }
                }
                _ => {
                    assert!(run.append(false), "seed {seed}");
                }
            }
        }
        run.check();
    }
}
