//! A process that has no file descriptors left for a moment: a store that could not be opened or made is opened later.

mod rig;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosstie_queues::Record;
use crosstie_store::{Store, StoreConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use rig::*;

/// The bound is one of the process, so that one test at a time sets it.
static BOUND: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    BOUND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs something while the process can have only so many files more.
fn with_files<T>(more: u64, run: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Nofile);
    // The lowest number that is free.
    let lowest = File::open("/dev/null").expect("a file").as_raw_fd() as u64;
    let bound = Rlimit {
        current: Some(lowest + more),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, bound).expect("a bound");
    let done = run();
    setrlimit(Resource::Nofile, before).expect("the former bound");
    done
}

#[test]
fn a_store_that_could_not_be_opened_when_it_was_made_is_opened_by_the_next_commit() {
    let _alone = alone();
    let records = vec![queue(1, "q"), enqueued(1, 0)];
    for is_made in [false, true] {
        let mut refused = 0;
        for more in 0..8 {
            let directory = directory();
            if is_made {
                fs::create_dir(path(&directory)).expect("made");
            }
            let (mut store, _) = Store::open(config(&directory)).expect("no store yet");
            if with_files(more, || commit(&mut store, records.clone())).is_err() {
                refused += 1;
                commit(&mut store, records.clone()).expect("files enough");
            }
            drop(store);
            assert_eq!(kept(&directory), of_slash(&records), "{more} more files");
        }
        assert!((3..8).contains(&refused), "{refused}");
    }
}

fn accepting(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig {
        accepts_loss: true,
        ..small(directory)
    }
}

/// With segments of 256 KiB.
fn small(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig {
        segment_bytes: 256 << 10,
        ..config(directory)
    }
}

/// A store without its second segment, which had the acknowledgements of the odd messages of queue 1.
fn without_acknowledgements() -> tempfile::TempDir {
    let directory = directory();
    let (mut store, _) = Store::open(small(&directory)).expect("a store");
    let mut records = vec![queue(1, "q"), queue(2, "r")];
    let long = content(&[7; 10_000]);
    records.extend((0..20).map(|place| enqueued_content(1, place, &content(&[place as u8; 8000]))));
    commit(&mut store, records).expect("room");
    let mut place = 100;
    let mut fill = |store: &mut Store, name: &str| {
        while !path(&directory).join(name).exists() {
            commit(store, vec![enqueued_content(2, place, &long)]).expect("room");
            place += 1;
        }
    };
    fill(&mut store, "0000000002.segment");
    let odd = (0..20).filter(|place| place % 2 == 1);
    commit(&mut store, odd.map(|place| dequeued(1, place)).collect()).expect("room");
    fill(&mut store, "0000000003.segment");
    drop(store);
    fs::remove_file(path(&directory).join("0000000002.segment")).expect("a segment");
    directory
}

/// The places of queue 1.
fn places(records: impl IntoIterator<Item = Record>) -> Vec<i64> {
    let found = records.into_iter().filter_map(|record| match record {
        Record::Enqueued { queue, place, .. } if queue.0 == 1 => Some(place),
        _ => None,
    });
    found.collect()
}

#[test]
fn acknowledgements_of_a_segment_that_is_given_up_do_not_come_back_after_a_failure() {
    let _alone = alone();
    let whole = without_acknowledgements();
    let even: Vec<i64> = (0..20).step_by(2).collect();
    let mut refused = 0;
    for more in 0..16 {
        let directory = directory();
        copy(&path(&whole), &path(&directory));
        // The process ends at once after a failure.
        refused += with_files(more, || {
            let opened = Store::open(accepting(&directory));
            u32::from(opened.and_then(|(mut store, _)| store.wake()).is_err())
        });
        if let Ok((_, restored)) = Store::open(small(&directory)) {
            let records = restored.into_iter().map(|found| found.record);
            assert_eq!(places(records), even, "{more} more files");
        }
        let (mut store, restored) = Store::open(accepting(&directory)).expect("the rest");
        let records = restored.into_iter().map(|found| found.record);
        assert_eq!(places(records), even, "{more} more files");
        // Or it continues.
        if with_files(more.min(3), || store.wake()).is_err() {
            store.wake().expect("files enough");
        }
        commit(&mut store, vec![queue(3, "s")]).expect("files enough");
        drop(store);
        if let Ok((_, restored)) = Store::open(small(&directory)) {
            let records = restored.into_iter().map(|found| found.record);
            assert_eq!(places(records), even, "{more} more files");
        }
        // The thread that forgets the segment may have had no file.
        let (mut store, _) = Store::open(accepting(&directory)).expect("the rest");
        store.wake().expect("files enough");
        drop(store);
        let (_, restored) = Store::open(small(&directory)).expect("a mended store");
        let records = restored.into_iter().map(|found| found.record);
        assert_eq!(places(records), even, "{more} more files");
    }
    assert!((3..16).contains(&refused), "{refused}");
}
