//! A check reads everything and changes nothing; a salvage brings the rest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crosstie_queues::Record;
use crosstie_store::{
    Checked, Committer, Store, StoreConfig, StoreErrorKind, back_up, check, contents, restore,
    salvage,
};

use crate::rig::*;

/// A store with several segments, as after the end of its process: two queues, of which the first is half consumed.
fn killed() -> (tempfile::TempDir, PathBuf) {
    let directory = directory();
    let config = StoreConfig {
        // Segments of a mebibyte.
        bytes_max: Some(4 << 20),
        ..config(&directory)
    };
    let (mut store, _) = Store::open(config).expect("a store");
    let declared = vec![exchange("x"), queue(1, "first"), queue(2, "second")];
    commit(&mut store, declared).expect("room");
    for place in 0..40 {
        let body = vec![place as u8; 60_000];
        let id = 1 + place as u64 % 2;
        commit(
            &mut store,
            vec![enqueued_content(id, place, &content(&body))],
        )
        .expect("room");
    }
    for place in (0..20).step_by(2) {
        commit(&mut store, vec![dequeued(1, place)]).expect("room");
    }
    let to = directory.path().join("killed");
    // Another thread writes the indexes of complete segments, and then their names in the manifest.
    let modified = |file: &PathBuf| fs::metadata(file).and_then(|found| found.modified()).ok();
    let is_ready = || {
        let indexes = files(&path(&directory), ".index");
        let named = modified(&path(&directory).join("manifest"));
        indexes.len() + 1 == files(&path(&directory), ".segment").len()
            && indexes.iter().all(|index| modified(index) <= named)
    };
    let copied = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let _ = fs::remove_dir_all(&to);
        is_ready()
            && std::panic::catch_unwind(|| copy(&path(&directory), &to)).is_ok()
            && files(&to, ".new").is_empty()
    });
    assert!(copied);
    drop(store);
    (directory, to)
}

fn counts(checked: &Checked, id: u64) -> (u64, u64, u64) {
    let mut found = checked.queues().filter(|queue| queue.number == id);
    let queue = found.next().expect("a queue");
    (queue.whole, queue.damaged, queue.missing)
}

fn files(path: &Path, ending: &str) -> Vec<PathBuf> {
    let files = snapshot(path).into_iter().map(|(file, _)| file);
    files
        .filter(|file| file.to_string_lossy().ends_with(ending))
        .collect()
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("a file");
    change(&mut bytes);
    fs::write(file, bytes).expect("written");
}

#[test]
fn a_whole_store_passes_and_stays_as_it_is() {
    let (_directory, killed) = killed();
    let before = snapshot(&killed);
    let checked = check(&killed).expect("readable");
    assert!(checked.is_whole(), "{checked:?}");
    assert_eq!(checked.vhosts.len(), 1);
    assert_eq!(checked.vhosts[0].name.as_deref(), Some("/"));
    assert_eq!(checked.vhosts[0].exchanges, 1);
    assert_eq!(
        (counts(&checked, 1), counts(&checked, 2)),
        ((10, 0, 0), (20, 0, 0))
    );
    assert!(
        checked.segments >= 2 && checked.records >= 54,
        "{checked:?}"
    );
    assert_eq!(snapshot(&killed), before);
}

#[test]
fn each_wrong_bit_of_a_record_or_a_summary_is_named() {
    let (_directory, killed) = killed();
    let whole = check(&killed).expect("readable");
    let mut random = 1_u64;
    let mut draw = |bound: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % bound
    };
    let mut named = 0;
    for (file, bytes) in snapshot(&killed) {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".spare") {
            continue;
        }
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("data") + 1;
        for _ in 0..8 {
            let bit = draw(end * 8);
            // Zeros up to the next record, and after a head's few fields, say nothing.
            let is_zero = bytes[bit / 8] == 0;
            change(&file, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let before = snapshot(&killed);
            let checked = check(&killed).expect("readable");
            assert_eq!(snapshot(&killed), before, "{name}, bit {bit}");
            assert!(
                !checked.is_whole() || is_zero || checked.idle_records > 0,
                "{name}, bit {bit}: {checked:?}"
            );
            named += u64::from(!checked.is_whole());
            // One bit never costs more than its own record, and that has a name.
            assert!(
                checked.lost() <= 1 && checked.unknown_records == 0,
                "{name}, bit {bit}: {checked:?}"
            );
            assert_eq!(
                checked.whole() + checked.lost(),
                whole.whole(),
                "{name}, bit {bit}"
            );
            for fault in &checked.faults {
                assert_eq!(fault.file, name, "{fault:?}");
            }
            change(&file, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn a_missing_segment_is_counted_by_queue_and_the_rest_is_salvaged() {
    let (_directory, killed) = killed();
    let indexed = files(&killed, ".index").remove(1);
    let segment = indexed.with_extension("segment");
    fs::remove_file(&segment).expect("removed");
    let checked = check(&killed).expect("readable");
    assert!(checked.lost() >= 10, "{checked:?}");
    assert_eq!(checked.whole() + checked.lost(), 30);
    let texts: Vec<_> = checked
        .faults
        .iter()
        .map(|fault| fault.what.as_str())
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.starts_with("the file is missing: queue 'first' of vhost '/'")),
        "{texts:?}"
    );
    let to = killed.with_extension("salvaged");
    let salvaged = salvage(&killed, &to).expect("the rest");
    assert_eq!(salvaged.source, checked);
    assert_eq!((salvaged.queues, salvaged.messages), (2, checked.whole()));
    let again = check(&to).expect("readable");
    assert!(again.is_whole(), "{again:?}");
    assert_eq!(again.whole(), checked.whole());
}

#[test]
fn each_missing_or_cut_file_is_named() {
    let (_directory, killed) = killed();
    let files = snapshot(&killed);
    let last = files
        .iter()
        .rfind(|(file, _)| file.extension().is_some_and(|end| end == "segment"));
    let last = last.expect("a segment").0.clone();
    for (file, bytes) in &files {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        // A segment may be without an index, and a store without spares.
        let is_needed = !name.ends_with(".index") && !name.ends_with(".spare");
        fs::remove_file(file).expect("removed");
        let checked = check(&killed).expect("readable");
        assert_eq!(
            !checked.is_whole(),
            is_needed,
            "without {name}: {checked:?}"
        );
        let is_loss = checked.faults.iter().any(|fault| fault.is_loss);
        assert_eq!(
            is_loss,
            is_needed && name != "head",
            "without {name}: {checked:?}"
        );
        for length in [0, bytes.len() / 3] {
            fs::write(file, &bytes[..length]).expect("written");
            let checked = check(&killed).expect("readable");
            let is_empty_head = name == "head" && length == 0;
            let is_named = checked.faults.iter().any(|fault| fault.file == name);
            let is_harmless = name.ends_with(".spare") || is_empty_head || name == "head";
            assert!(
                is_named || is_harmless,
                "{name} cut to {length}: {checked:?}"
            );
            if name.ends_with(".segment") && *file != last {
                assert!(checked.lost() > 0, "{name} cut to {length}: {checked:?}");
            }
        }
        fs::write(file, bytes).expect("written");
    }
    assert!(check(&killed).expect("readable").is_whole());
}

#[test]
fn an_open_store_something_else_and_nothing_are_refused() {
    let directory = directory();
    let path = path(&directory);
    let kind = |path: &Path| check(path).expect_err("no store").kind;
    assert!(matches!(kind(&path), StoreErrorKind::Io { .. }));
    fs::write(&path, "my thesis").expect("written");
    assert!(matches!(kind(&path), StoreErrorKind::Foreign { .. }));
    fs::write(&path, b"SQLite format 3\0 and more").expect("written");
    let error = check(&path).expect_err("an earlier store");
    assert!(
        error.to_string().contains("a store of version 0.1.0"),
        "{error}"
    );
    salvage(&path, &directory.path().join("to")).expect_err("an earlier store");
    fs::remove_file(&path).expect("removed");
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![queue(1, "q")]).expect("room");
    assert!(matches!(kind(&path), StoreErrorKind::InUse));
    let error = salvage(&path, &directory.path().join("to")).expect_err("it is open");
    assert!(matches!(error.kind, StoreErrorKind::InUse));
    drop(store);
    let inside = path.join("to");
    salvage(&path, &inside).expect_err("inside the source");
    assert!(check(&path).expect("readable").is_whole());
    let names: BTreeSet<_> = snapshot(directory.path())
        .into_iter()
        .map(|(file, _)| file)
        .collect();
    assert!(
        names.iter().all(|file| file.starts_with(&path)),
        "{names:?}"
    );
}

#[test]
fn queues_without_a_declaration_are_salvaged_by_new_names() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![queue(1, "orders"), queue(2, "salvaged-1")]).expect("room");
    commit(&mut store, vec![enqueued(1, 1), enqueued(1, 2)]).expect("room");
    drop(store);
    let segment = files(&path(&directory), ".segment").remove(0);
    change(&segment, |bytes| {
        let at = bytes.windows(6).position(|bytes| bytes == b"orders");
        bytes[at.expect("a name")] = b'b';
    });
    let checked = check(&path(&directory)).expect("readable");
    assert_eq!(checked.lost_declarations, 1);
    let is_told = checked.faults.iter().any(|fault| fault.is_loss);
    assert!(is_told, "{checked:?}");
    let nameless = checked.queues().find(|queue| queue.name.is_none());
    assert_eq!(nameless.map(|queue| queue.whole), Some(2), "{checked:?}");
    let to = directory.path().join("to");
    let salvaged = salvage(&path(&directory), &to).expect("the rest");
    assert_eq!(salvaged.renamed, [("/".into(), "salvaged-1-2".into())]);
    let (mut store, restored) = Store::open(StoreConfig::new(&to)).expect("a store");
    let names: Vec<_> = restored
        .iter()
        .filter_map(|found| match &found.record {
            Record::QueueDeclared { id, name, .. } => Some((id.0, name.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(
        names,
        [(1, "salvaged-1-2".to_owned()), (2, "salvaged-1".to_owned())]
    );
    assert_eq!(restored.len(), 4);
    commit(&mut store, vec![queue(3, "more")]).expect("room");
}

#[test]
fn a_damaged_backup_is_checked_and_salvaged() {
    let directory = filled();
    let backup = directory.path().join("backup");
    back_up(&path(&directory), &backup).expect("a backup");
    let checked = check(&backup).expect("readable");
    assert!(checked.is_backup && checked.is_whole());
    assert_eq!((checked.queues().count(), checked.whole()), (2, 2010));
    change(&backup, |bytes| {
        let at = bytes.windows(64).position(|bytes| bytes == [1; 64]);
        bytes[at.expect("a body")] = 2;
    });
    let checked = check(&backup).expect("readable");
    assert_eq!(
        (counts(&checked, 1), counts(&checked, 2)),
        ((2000, 0, 0), (9, 1, 0))
    );
    let error = restore(&backup, &directory.path().join("to"), false).expect_err("it is damaged");
    assert!(
        error.to_string().contains("crosstie store salvage"),
        "{error}"
    );
    let salvaged = salvage(&backup, &directory.path().join("to")).expect("the rest");
    assert_eq!((salvaged.queues, salvaged.messages), (2, 2009));
    let found = contents(&directory.path().join("to")).expect("a whole store");
    assert_eq!(found.len(), 3 + 2009);
}

#[test]
fn a_restore_is_refused_while_a_node_has_nothing_durable_yet() {
    let source = filled();
    let backup = source.path().join("backup");
    back_up(&path(&source), &backup).expect("a backup");
    let directory = directory();
    let (store, _) = Store::open(config(&directory)).expect("a store");
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let error = restore(&backup, &path(&directory), true).expect_err("it is open");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    committer.stop().expect("nothing to write");
    restore(&backup, &path(&directory), false).expect("restored");
    let error =
        restore(&path(&directory), &source.path().join("to"), false).expect_err("no backup");
    assert!(matches!(error.kind, StoreErrorKind::NoBackup), "{error}");
}

#[test]
fn transient_messages_are_neither_counted_nor_salvaged() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    // A vhost lets transient messages out of memory under a number that no queue has.
    let records = vec![
        queue(1, "q"),
        enqueued(1, 1),
        enqueued(9, 1),
        enqueued(9, 2),
    ];
    commit(&mut store, records).expect("room");
    drop(store);
    let checked = check(&path(&directory)).expect("readable");
    assert!(checked.is_whole(), "{checked:?}");
    assert_eq!((checked.queues().count(), checked.whole()), (1, 1));
    let to = directory.path().join("to");
    let salvaged = salvage(&path(&directory), &to).expect("all of it");
    assert_eq!((salvaged.queues, salvaged.messages), (1, 1));
    assert!(salvaged.renamed.is_empty());
    assert_eq!(contents(&to).expect("a whole store").len(), 2);
    // One that is damaged is no loss.
    let segment = files(&path(&directory), ".segment").remove(0);
    change(&segment, |bytes| {
        let at = bytes.windows(9).rposition(|bytes| bytes == b"message 2");
        bytes[at.expect("a body")] = b'M';
    });
    let checked = check(&path(&directory)).expect("readable");
    assert_eq!(checked.lost(), 0);
    assert_eq!(checked.faults.len(), 1);
    assert!(!checked.faults[0].is_loss, "{checked:?}");
}
