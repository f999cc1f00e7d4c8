//! Wrong bits, cuts and missing files, after the end of a process.

use std::collections::BTreeSet;

use crosstie_disk::simulated::SimulatedDisk;

use super::super::recover::recover;
use super::super::segment::number_in;
use super::run::{Run, all};

/// The outcome of a store's damage.
#[derive(Debug, Default)]
struct Outcome {
    /// Nothing is missing.
    harmless: u64,
    /// The queue, or all of the missing messages' queues, are named.
    named: u64,
    /// The loss is known, and not whose it is.
    unnamed: u64,
}

fn filled(seed: u64) -> Run {
    let mut run = Run::begin(seed, 1 << 20);
    for _ in 0..120 {
        run.commit();
        run.clean();
    }
    run.log().keeper().work();
    for _ in 0..10 {
        run.commit();
    }
    run
}

/// Judges what a start says about a damaged disk: nothing that was kept may be missing without a word.
fn judge(disk: &SimulatedDisk, run: &Run, what: &str, outcome: &mut Outcome) {
    let recovered = recover(disk).expect("a disk that can be read");
    let found = all(disk, &recovered);
    let mut missing = BTreeSet::new();
    let mut damaged = BTreeSet::new();
    for (key, body) in &run.kept {
        match found.get(key) {
            Some(Some(found)) => assert_eq!(found, body, "{what}: a wrong body"),
            Some(None) => drop(damaged.insert(key.0)),
            None => drop(missing.insert(key.0)),
        }
    }
    let returned = found.iter().filter(|(key, _)| !run.kept.contains_key(*key));
    let returned: BTreeSet<_> = returned.map(|((queue, _), _)| *queue).collect();
    let loss = &recovered.loss;
    let is_refused = !loss.gaps.is_empty()
        || !loss.segments.is_empty()
        || !loss.entities.is_empty()
        || loss.is_manifest_unknown;
    assert!(
        missing.is_empty() || is_refused,
        "{what}: {missing:?} lost in silence"
    );
    let named: BTreeSet<_> = loss.acknowledgements.iter().copied().collect();
    if !is_refused {
        assert!(returned.is_subset(&named), "{what}: {returned:?} come back");
    }
    if missing.is_empty() && damaged.is_empty() && returned.is_empty() && !is_refused {
        outcome.harmless += 1;
    } else if missing.is_empty() && loss.gaps.is_empty() && !loss.is_manifest_unknown {
        outcome.named += 1;
    } else {
        outcome.unnamed += 1;
    }
}

#[test]
fn a_wrong_bit_is_found_and_its_queue_is_named() {
    let mut outcome = Outcome::default();
    for seed in 1..=10 {
        let run = filled(seed);
        let disk = run.disk.kill();
        let files = disk.files();
        for _ in 0..200 {
            let of_all = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            let mut at = disk.random() as usize % of_all;
            let mut files = files.iter();
            let (name, bytes) = loop {
                let (name, bytes) = files.next().expect("a file");
                if at < bytes.len() {
                    break (name, bytes);
                }
                at -= bytes.len();
            };
            let bit = disk.random() % 8;
            let wrong = disk.kill();
            wrong.change(name, |bytes| bytes[at] ^= 1 << bit);
            let what = format!(
                "seed {seed}: bit {bit} of byte {at} of {} of {name}",
                bytes.len()
            );
            judge(&wrong, &run, &what, &mut outcome);
        }
    }
    eprintln!("{outcome:?}");
    let hits = outcome.named + outcome.unnamed;
    assert!(hits > 100, "{outcome:?}");
    assert!(outcome.named * 100 >= hits * 95, "{outcome:?}");
}

#[test]
fn a_missing_or_shorter_file_is_found() {
    let mut outcome = Outcome::default();
    for seed in 20..=25 {
        let run = filled(seed);
        let disk = run.disk.kill();
        for (name, bytes) in disk.files() {
            let gone = disk.kill();
            crosstie_disk::Disk::remove(&gone, &name).expect("a file");
            judge(
                &gone,
                &run,
                &format!("seed {seed}: without {name}"),
                &mut outcome,
            );
            for share in [0, 3, 7, 9] {
                let length = bytes.len() * share / 10;
                let cut = disk.kill();
                cut.change(&name, |bytes| bytes.truncate(length));
                let what = format!("seed {seed}: {name} cut to {length}");
                judge(&cut, &run, &what, &mut outcome);
            }
            if number_in(&name, ".segment").is_some() {
                let torn = disk.kill();
                let from = bytes.len() / 2;
                torn.change(&name, |bytes| {
                    let to = (from + 512).min(bytes.len());
                    bytes[from..to].fill(0);
                });
                let what = format!("seed {seed}: {name} without a sector");
                judge(&torn, &run, &what, &mut outcome);
            }
        }
    }
    eprintln!("{outcome:?}");
}
