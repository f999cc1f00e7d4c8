//! A log under random commits, failures and crashes, beside a model of what it must have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{MessageContent, StoredMessage};

use super::super::clean::Cleaning;
use super::super::contents::{Contents, Found, Item, Snapshot, Wanted};
use super::super::log::{Fault, Log, LogConfig, Purpose};
use super::super::manifest::Manifest;
use super::super::message;
use super::super::record::QueueKey;
use super::super::recover::{Recovered, recover};

pub(super) const SEGMENT_BYTES: u64 = 16 << 10;
const QUEUES: u64 = 4;

/// The expected bodies.
type Messages = BTreeMap<(QueueKey, i64), Vec<u8>>;

pub(super) struct Run {
    pub(super) disk: SimulatedDisk,
    pub(super) log: Log,
    pub(super) kept: Messages,
    /// Messages of commits that failed since the last one that did not, and acknowledgements of such.
    unsure: BTreeSet<(QueueKey, i64)>,
    /// Messages that were refused, and whose absence a later commit has sealed.
    refused: BTreeSet<(QueueKey, i64)>,
    place_next: i64,
    random: u64,
}

pub(super) fn config() -> LogConfig {
    LogConfig {
        segment_bytes: SEGMENT_BYTES,
        bytes_max: None,
        has_thread: false,
    }
}

pub(super) fn stored(body: &[u8]) -> StoredMessage {
    let properties = crosstie_amqp::Properties::EMPTY.bytes();
    StoredMessage::new(Arc::new(MessageContent::new("", "q", properties, body)))
}

pub(super) fn all(
    disk: &SimulatedDisk,
    recovered: &Recovered,
) -> BTreeMap<(QueueKey, i64), Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for part in Snapshot::all(&recovered.state).parts {
        let mut add = |queue, place, item| {
            let Item::Message(message) = item else {
                return Ok(());
            };
            let body = message.map(|message: StoredMessage| message.content.body().to_vec());
            let before = found.insert((queue, place), body);
            assert!(before.is_none(), "{queue:?} {place} is there twice");
            Ok(())
        };
        part.visit(disk, recovered.manifest.store, &mut add)
            .expect("a disk that can be read");
    }
    found
}

impl Run {
    pub(super) fn begin(seed: u64, disk_bytes: u64) -> Self {
        let disk = SimulatedDisk::new(seed, disk_bytes);
        let manifest = Manifest {
            store: 7,
            end_sequence: 1,
            ..Manifest::default()
        };
        manifest.write(&disk).expect("room");
        let log = open(&disk, recover(&disk).expect("a store"));
        Self {
            disk,
            log: log.expect("room"),
            kept: Messages::new(),
            unsure: BTreeSet::new(),
            refused: BTreeSet::new(),
            place_next: 1,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// A commit of some messages, acknowledgements, deliveries and purges.
    pub(super) fn commit(&mut self) {
        let come = self.draw_messages();
        let gone = self.draw_departures();
        let purged = (self.random(40) == 0).then(|| QueueKey {
            vhost: 1,
            queue: self.random(QUEUES),
        });
        let committed = self.write(&come, &gone, purged);
        let purges = |key: &(QueueKey, i64)| purged == Some(key.0);
        match committed {
            Ok(()) => {
                self.kept
                    .retain(|key, _| !gone.contains(key) && !purges(key));
                self.kept.extend(come);
                self.refused.append(&mut self.unsure);
                self.refused.retain(|key| !self.kept.contains_key(key));
            }
            Err(_) => {
                self.unsure.extend(come.keys().copied());
                self.unsure.extend(gone);
                let purged = self.kept.keys().filter(|key| purges(key)).copied();
                self.unsure.extend(purged);
            }
        }
        if self.random(3) == 0 {
            self.log.keeper().work();
        }
    }

    fn draw_messages(&mut self) -> Messages {
        let mut come = Messages::new();
        let count = 1 + self.random(8);
        for _ in 0..count {
            let queue = QueueKey {
                vhost: 1,
                queue: self.random(QUEUES),
            };
            let length = match self.random(10) {
                0 => self.random(6000),
                _ => self.random(400),
            };
            let body = vec![(self.place_next % 251) as u8; length as usize];
            come.insert((queue, self.place_next), body);
            self.place_next += 1;
        }
        come
    }

    fn draw_departures(&mut self) -> BTreeSet<(QueueKey, i64)> {
        let mut gone = BTreeSet::new();
        let is_draining = self.random(3) > 0;
        for _ in 0..if is_draining { self.random(14) } else { 0 } {
            let at = match self.random(3) {
                // Mostly from the front.
                0 => self.random(self.kept.len().max(1) as u64) as usize,
                _ => 0,
            };
            let kept = self.kept.keys().filter(|key| !gone.contains(*key));
            if let Some(key) = kept.clone().nth(at).or_else(|| kept.clone().next()) {
                gone.insert(*key);
            }
        }
        gone
    }

    fn write(
        &mut self,
        come: &Messages,
        gone: &BTreeSet<(QueueKey, i64)>,
        purged: Option<QueueKey>,
    ) -> Result<(), Fault> {
        let delivered = self.kept.keys().next().copied();
        let state = Arc::clone(self.log.state());
        let bytes: usize = come.values().map(|body| body.len() + 256).sum();
        let bytes_max = (bytes + 64 * gone.len() + 256) as u64;
        // A bound of a whole segment begins the next one.
        let bytes_max = match self.random(4) {
            0 => bytes_max.max(SEGMENT_BYTES),
            _ => bytes_max,
        };
        let mut draft = self.log.begin(bytes_max, Purpose::Adding)?;
        {
            let state = state.lock().expect("no panic");
            if let Some(queue) = purged {
                draft.purge(queue);
            }
            if let Some((queue, place)) = delivered {
                draft.deliver(&state, queue, place, 3);
            }
            let mut gone = gone.iter();
            for ((queue, place), body) in come {
                draft.store(*queue, *place, 0, |out| {
                    message::encode(&stored(body), None, out)
                });
                if let Some((queue, place)) = gone.next() {
                    draft.remove(&state, *queue, *place);
                }
            }
            for (queue, place) in gone {
                draft.remove(&state, *queue, *place);
            }
        }
        self.log.commit(draft, 1000)
    }

    /// A step of giving space back.
    pub(super) fn clean(&mut self) {
        let now = Instant::now();
        let chosen = Cleaning::choose(&self.log, now, Duration::ZERO);
        if let Ok(Some(mut cleaning)) = chosen {
            for _ in 0..1 + self.random(3) {
                // A failed step leaves everything as it was.
                if !cleaning.step(&mut self.log, 1000, now) {
                    break;
                }
            }
        }
    }

    /// Ends the process, or the power, and starts again: without a loss, and with everything that was kept.
    pub(super) fn crash(self, loses_power: bool) -> Self {
        let disk = match loses_power {
            true => self.disk.lose_power(),
            false => self.disk.kill(),
        };
        // The last commit may then have come to the disk or not.
        let is_open = loses_power || self.disk.has_ended() || self.log.has_remnant();
        let Self {
            log,
            mut kept,
            unsure,
            mut refused,
            place_next,
            random,
            ..
        } = self;
        // Nothing of the former process reaches the disk of the next one.
        drop(log);
        let recovered = recover(&disk).expect("a disk that can be read");
        assert!(recovered.loss.is_empty(), "{:?}", recovered.loss);
        let found = all(&disk, &recovered);
        for (key, body) in &kept {
            match found.get(key) {
                Some(found) => assert_eq!(found.as_ref(), Some(body), "{key:?}"),
                // Its acknowledgement could not be written, and was.
                None => assert!(is_open && unsure.contains(key), "{key:?} is lost"),
            }
        }
        for (key, body) in found {
            assert!(!refused.contains(&key), "{key:?} comes back");
            kept.entry(key).or_insert_with(|| {
                let is_unsure = is_open && unsure.contains(&key);
                assert!(is_unsure, "{key:?} was never kept");
                body.expect("whole")
            });
        }
        let present: BTreeSet<_> = all(&disk, &recovered).into_keys().collect();
        kept.retain(|key, _| present.contains(key));
        refused.extend(unsure);
        refused.retain(|key| !kept.contains_key(key));
        let log = open(&disk, recovered).expect("a disk without a failure");
        Self {
            disk,
            log,
            kept,
            unsure: BTreeSet::new(),
            refused,
            place_next,
            random,
        }
    }

    /// Each queue's messages, read in small parts.
    pub(super) fn check_reads(&mut self) {
        let contents = self.contents();
        let queues = (0..QUEUES).map(|queue| QueueKey { vhost: 1, queue });
        // As many as go in one go, and each in small parts.
        let all: Vec<_> = queues
            .clone()
            .map(|queue| wanted(queue, i64::MIN, u64::MAX))
            .collect();
        let mut together = Vec::new();
        while together.len() < all.len() {
            let parts = contents.read(&all[together.len()..]).expect("readable");
            assert!(!parts.is_empty(), "the first is always read");
            together.extend(parts);
        }
        for (queue, together) in queues.zip(together) {
            let mut found = Vec::new();
            let mut from = i64::MIN;
            loop {
                let bytes_max = 1 + self.random(5000);
                let parts = contents.read(&[wanted(queue, from, bytes_max)]);
                let part = parts.expect("readable").remove(0);
                if part.messages.is_empty() {
                    break;
                }
                from = part.upto.saturating_add(1);
                found.extend(bodies(part));
            }
            let kept = self.kept.iter().filter(|((key, _), _)| *key == queue);
            let expected: Vec<_> = kept
                .map(|((_, place), body)| (*place, body.clone()))
                .collect();
            assert_eq!(found.len(), expected.len(), "{queue:?}");
            assert_eq!(found, expected);
            let is_in_reach = |(place, _): &&(i64, Vec<u8>)| *place <= together.upto;
            let in_reach: Vec<_> = expected.iter().filter(is_in_reach).cloned().collect();
            assert!(together.upto == i64::MAX || !in_reach.is_empty());
            assert_eq!(bodies(together), in_reach);
        }
    }

    pub(super) fn contents(&self) -> Contents {
        let log = &self.log;
        Contents::new(Arc::clone(log.disk()), Arc::clone(log.state()), log.store())
    }

    pub(super) fn log(&mut self) -> &mut Log {
        &mut self.log
    }
}

/// The messages of a queue from that place on.
pub(super) fn wanted(queue: QueueKey, from: i64, bytes_max: u64) -> Wanted {
    Wanted {
        queues: [Some(queue), None],
        places: (from, i64::MAX),
        bytes_max,
    }
}

fn open(disk: &SimulatedDisk, recovered: Recovered) -> Result<Log, Fault> {
    Log::open(Arc::new(disk.clone()), recovered, config())
}

/// The messages of a part by their places.
fn bodies(part: Found) -> Vec<(i64, Vec<u8>)> {
    let messages = part.messages.into_iter();
    messages
        .map(|chosen| {
            let message = chosen.message.expect("whole");
            (chosen.place, message.content.body().to_vec())
        })
        .collect()
}
