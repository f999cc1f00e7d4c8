//! Damaged files: no wrong message is read, and none is lost without a word.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_disk::Disk;
use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{StreamFrom, StreamLimits};

use super::chance::Chance;
use super::{DIRECTORY, append, read_all, reopen};
use crate::writer::Writer;

/// A stream of three segments and more, as a killed process leaves it.
fn written(seed: u64, limits: StreamLimits) -> (SimulatedDisk, BTreeMap<u64, Vec<u8>>) {
    let disk = SimulatedDisk::new(seed, u64::MAX);
    let mut chance = Chance(seed);
    let (log, _) = reopen(&disk, limits);
    let mut writer = Writer::new(Arc::new(disk.clone()));
    let mut bodies = BTreeMap::new();
    for group in 0..12 {
        let mut appends = Vec::new();
        for _ in 0..10 {
            let offset = bodies.len() as u64;
            let body = vec![chance.next() as u8; 40 + chance.below(100) as usize];
            appends.push(append(offset, 1_000 + group, &body, limits));
            bodies.insert(offset, body);
        }
        let staged = writer.stage(&log, &appends).expect("is written");
        writer.sync(&staged).expect("is synced");
        writer.publish(staged);
    }
    assert!(log.table().segments.len() >= 3);
    (disk, bodies)
}

const LIMITS: StreamLimits = StreamLimits {
    bytes_max: None,
    age_max_ms: None,
    segment_bytes_max: Some(4_000),
};

/// Reads all, and checks that what is missing was named. Returns how many messages are missing.
fn check(disk: &SimulatedDisk, bodies: &BTreeMap<u64, Vec<u8>>, what: &str) -> usize {
    let (log, mut damages) = reopen(disk, LIMITS);
    let (found, others) = read_all(disk, &log, StreamFrom::Offset(0), 1_000);
    damages.extend(others);
    for (offset, body) in &found {
        assert_eq!(bodies.get(offset), Some(body), "{what}: offset {offset}");
    }
    let missing: Vec<u64> = bodies
        .keys()
        .filter(|o| !found.contains_key(o))
        .copied()
        .collect();
    for offset in &missing {
        let is_named = damages.iter().any(|d| (d.from..d.to).contains(offset));
        assert!(
            is_named,
            "{what}: offset {offset} of {missing:?} is missing: {damages:?}"
        );
    }
    // What comes later has offsets of its own, and can be read.
    let end = log.table().end;
    assert!(end >= bodies.len() as u64 || !damages.is_empty(), "{what}");
    let mut writer = Writer::new(Arc::new(disk.clone()));
    let staged = writer.stage(&log, &[append(end, 9_000, b"later", LIMITS)]);
    let staged = staged.expect("is written");
    writer.sync(&staged).expect("is synced");
    writer.publish(staged);
    let (log, _) = reopen(disk, LIMITS);
    let (found, _) = read_all(disk, &log, StreamFrom::Offset(end), 1_000);
    assert_eq!(
        found.get(&end).map(Vec::as_slice),
        Some(&b"later"[..]),
        "{what}"
    );
    missing.len()
}

#[test]
fn no_flipped_bit_loses_a_message_in_silence() {
    let mut most = 0;
    for seed in 0..1_000 {
        let (disk, bodies) = written(seed, LIMITS);
        let mut chance = Chance(seed ^ 0x5555);
        let paths = disk.paths();
        let path = &paths[chance.below(paths.len() as u64) as usize];
        disk.change(path, |bytes| {
            let bit = chance.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        });
        most = most.max(check(&disk, &bodies, &format!("seed {seed}, {path}")));
    }
    // A flipped length costs what is behind it in its segment, up to the next place of the index.
    assert!(most <= 40, "one bit cost {most} messages");
}

#[test]
fn no_lost_or_cut_file_loses_a_message_in_silence() {
    for seed in 0..300 {
        let (disk, bodies) = written(seed, LIMITS);
        let mut chance = Chance(seed ^ 0x5555);
        let paths = disk.paths();
        let path = &paths[chance.below(paths.len() as u64) as usize];
        let what = format!("seed {seed}, {path}");
        if chance.below(2) == 0 {
            // Which segments a stream has had before its first one, only its head could tell.
            if path.ends_with("/00000000000000000000.segment") {
                continue;
            }
            disk.remove(path).expect("is there");
        } else {
            disk.change(path, |bytes| {
                let kept = chance.below(bytes.len() as u64) as usize;
                bytes.truncate(kept);
            });
        }
        check(&disk, &bodies, &what);
    }
    assert_eq!(DIRECTORY, "vhost-%2f/1");
}
