//! One wrong bit in a store after the end of its process, over and over: a start says whose messages it costs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crosstie_queues::Record;
use crosstie_store::{Restored, Store, StoreConfig};

use crate::rig::*;

const QUEUES: u64 = 20;
const MESSAGES: i64 = 2_000;
const SEEDS: [u64; 2] = [1, 2];
const BITS: usize = 100;

/// The messages of each queue.
type Messages = BTreeMap<(u64, i64), Vec<u8>>;

/// Random numbers from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

fn name(id: u64) -> String {
    format!("queue-{id:02}")
}

/// A store of several segments with many commits each, as a kill leaves it.
fn killed(chance: &mut Chance) -> (tempfile::TempDir, PathBuf, Messages) {
    let directory = directory();
    let config = StoreConfig {
        segment_bytes: 256 << 10,
        ..config(&directory)
    };
    let (mut store, _) = Store::open(config).expect("a store");
    let declared = (1..=QUEUES).map(|id| queue(id, &name(id))).collect();
    commit(&mut store, declared).expect("room");
    let mut messages = Messages::new();
    let mut place = 0;
    while place < MESSAGES {
        let mut records = Vec::new();
        for _ in 0..1 + chance.below(20) {
            let id = 1 + chance.below(QUEUES as usize) as u64;
            let bytes = [20, 100, 1_000, 5_000][chance.below(4)];
            let body: Vec<u8> = (0..bytes).map(|_| chance.below(256) as u8).collect();
            records.push(enqueued_content(id, place, &content(&body)));
            messages.insert((id, place), body);
            place += 1;
        }
        if chance.below(3) == 0 {
            let at = chance.below(messages.len());
            let gone: Vec<_> = messages.keys().copied().skip(at).take(12).collect();
            for (id, place) in gone {
                messages.remove(&(id, place));
                records.push(dequeued(id, place));
            }
        }
        commit(&mut store, records).expect("room");
    }
    let to = directory.path().join("killed");
    // Another thread writes the indexes of complete segments, and then their names in the manifest.
    let files = |ending: &str| {
        let files = snapshot(&path(&directory))
            .into_iter()
            .map(|(file, _)| file);
        let found = files.filter(|file| file.to_string_lossy().ends_with(ending));
        found.collect::<Vec<_>>()
    };
    let modified = |file: &PathBuf| fs::metadata(file).and_then(|found| found.modified()).ok();
    let is_ready = || {
        let indexes = files(".index");
        let named = modified(&path(&directory).join("manifest"));
        indexes.len() + 1 == files(".segment").len()
            && files(".new").is_empty()
            && indexes.iter().all(|index| modified(index) <= named)
    };
    let is_copied = |_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let _ = fs::remove_dir_all(&to);
        is_ready()
            && std::panic::catch_unwind(|| copy(&path(&directory), &to)).is_ok()
            && is_ready()
    };
    assert!((0..6000).any(is_copied));
    drop(store);
    (directory, to, messages)
}

/// What a start says of a store.
struct Start {
    messages: Messages,
    /// Queues that are set apart, by number.
    apart: BTreeSet<u64>,
    /// The refusal, or the damage.
    told: Option<String>,
}

fn start(path: &Path) -> Start {
    let open = |accepts_loss| {
        Store::open(StoreConfig {
            accepts_loss,
            ..StoreConfig::new(path)
        })
    };
    let opened = open(false);
    let mut told = opened.as_ref().err().map(ToString::to_string);
    // A refused start changes nothing, and this one nothing yet.
    let (store, restored) = opened.or_else(|_| open(true)).expect("readable");
    let damage: Vec<_> = store.damage().iter().map(ToString::to_string).collect();
    if told.is_none() && !damage.is_empty() {
        told = Some(damage.join("; "));
    }
    let mut messages = Messages::new();
    let mut apart = BTreeSet::new();
    for Restored { record, .. } in restored {
        match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => drop(messages.insert((queue.0, place), message.content.body().to_vec())),
            Record::Kept(kept) => drop(apart.insert(kept.queue.0)),
            _ => {}
        }
    }
    Start {
        messages,
        apart,
        told,
    }
}

/// The bytes of a store's files, without the zeros that were written ahead.
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn of(path: &Path) -> Self {
        let files = snapshot(path).into_iter().filter_map(|(file, bytes)| {
            let end = bytes.iter().rposition(|byte| *byte != 0)? + 1;
            Some((file, bytes[..end].to_vec()))
        });
        Self(files.collect())
    }

    /// A file, a byte of it, and what that is.
    fn draw(&self, chance: &mut Chance) -> (&Path, usize, u8) {
        let of_all = self.0.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut at = chance.below(of_all);
        for (file, bytes) in &self.0 {
            match bytes.get(at) {
                Some(byte) => return (file, at, *byte),
                None => at -= bytes.len(),
            }
        }
        unreachable!("it is less than the bytes of all files")
    }
}

fn write(file: &Path, at: usize, byte: u8) {
    let file = fs::OpenOptions::new().write(true).open(file);
    let written = file.and_then(|file| file.write_all_at(&[byte], at as u64));
    written.expect("written");
}

/// Whether a start names the queues of all messages that are not as they were; `None` if there is nothing to be named.
fn judge(what: &str, found: &Start, messages: &Messages) -> Option<bool> {
    for (key, body) in &found.messages {
        let expected = messages.get(key);
        let is_right = expected.is_none_or(|expected| expected == body);
        assert!(is_right, "{what}: a wrong body");
    }
    let is_in = |these: &Messages, key: &(u64, i64)| these.contains_key(key);
    let missing = messages.keys().filter(|key| !is_in(&found.messages, key));
    let returned = found.messages.keys().filter(|key| !is_in(messages, key));
    let hit: BTreeSet<u64> = missing.chain(returned).map(|(id, _)| *id).collect();
    let Some(told) = &found.told else {
        let is_nothing = hit.is_empty() && found.apart.is_empty();
        assert!(is_nothing, "{what}: in silence: {hit:?}");
        return None;
    };
    let is_named = |id: &u64| told.contains(&name(*id));
    Some(hit.iter().all(is_named) && told.contains("queue-"))
}

#[test]
fn no_message_is_lost_in_silence_and_the_queue_is_named() {
    let (mut harmless, mut named, mut unnamed) = (0, 0, Vec::new());
    for seed in SEEDS {
        let mut chance = Chance(seed);
        let (_directory, killed, messages) = killed(&mut chance);
        let whole = start(&killed);
        assert_eq!(whole.told, None);
        assert_eq!(whole.messages, messages);
        let files = Files::of(&killed);
        for _ in 0..BITS {
            let (file, at, byte) = files.draw(&mut chance);
            let bit = chance.below(8);
            write(file, at, byte ^ 1 << bit);
            let found = start(&killed);
            write(file, at, byte);
            let what = format!("seed {seed}: bit {bit} of byte {at} of {}", file.display());
            match judge(&what, &found, &messages) {
                None => harmless += 1,
                Some(true) => named += 1,
                Some(false) => unnamed.push((what, found.told)),
            }
        }
    }
    let hits = named + unnamed.len();
    eprintln!("{harmless} harmless, {named} of {hits} hits name their queues; {unnamed:#?}");
    assert!(hits > BITS, "{harmless} harmless, {hits} hits");
    assert!(named * 100 >= hits * 95, "{unnamed:#?}");
}
