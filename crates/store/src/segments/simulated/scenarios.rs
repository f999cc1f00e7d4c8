//! What a log goes through: failures, crashes, full disks, and much that is acknowledged.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_disk::Disk;

use super::super::clean::Cleaning;
use super::super::log::Purpose;
use super::super::message;
use super::super::record::QueueKey;
use super::run::{Run, SEGMENT_BYTES, stored, wanted};

#[test]
fn nothing_confirmed_is_lost_and_nothing_refused_returns() {
    for seed in 1..=30 {
        let mut run = Run::begin(seed, 1 << 20);
        for round in 0..12 {
            let fails = run.random(3) == 0;
            // The crash follows a failure soon, or late.
            let steps = 11 + run.random(20) * run.random(2);
            for step in 0..steps {
                if fails && step == 10 {
                    let (operations, kinds) = (run.random(12), run.random(3));
                    let kind = match kinds {
                        0 => io::ErrorKind::StorageFull,
                        1 => io::ErrorKind::Other,
                        _ => io::ErrorKind::ReadOnlyFilesystem,
                    };
                    let times = 1 + run.random(3);
                    run.disk.fail_in(operations, kind, times);
                }
                run.commit();
                if run.random(4) == 0 {
                    run.clean();
                }
            }
            if run.random(2) == 0 {
                run.check_reads();
            }
            let loses_power = run.random(2) == 0;
            eprintln!("seed {seed}, round {round}, power lost: {loses_power}");
            run = run.crash(loses_power);
            run.check_reads();
        }
    }
}

#[test]
fn a_crash_at_any_operation_loses_nothing_confirmed() {
    for seed in 100..=104 {
        for operations in 0..160 {
            let mut run = Run::begin(seed, 1 << 20);
            for _ in 0..40 {
                run.commit();
            }
            run.disk.end_in(Some(operations));
            for _ in 0..12 {
                run.commit();
                run.clean();
            }
            let loses_power = operations % 2 == 0;
            run = run.crash(loses_power);
            run.commit();
            run.check_reads();
            // What was read after a kill lasts, too, once later segments count on it.
            for _ in 0..6 {
                run.commit();
            }
            run.log().keeper().work();
            run.crash(true).check_reads();
        }
    }
}

#[test]
fn a_segment_that_cannot_be_begun_ends_no_other() {
    for operations in 0..6 {
        for times in 1..4 {
            for loses_power in [false, true] {
                let mut run = Run::begin(operations + 1, 1 << 20);
                run.commit();
                run.log().keeper().work();
                let kind = io::ErrorKind::Other;
                run.disk.fail_in(operations, kind, times);
                let _ = run.log().begin(SEGMENT_BYTES, Purpose::Adding);
                for _ in 0..3 {
                    run.commit();
                }
                run.crash(loses_power).check_reads();
            }
        }
    }
}

#[test]
fn a_commit_returns_only_if_the_disk_undoes_it_in_no_way() {
    for operations in 0..8 {
        for times in 1..5 {
            for (loses_power, is_sealed) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let mut run = Run::begin(10 * operations + times, 1 << 20);
                for _ in 0..9 {
                    run.commit();
                }
                let kind = io::ErrorKind::Other;
                run.disk.fail_in(operations, kind, times);
                run.commit();
                // An orderly end tries once more.
                if is_sealed {
                    run.disk.work_again();
                    run.log().seal();
                    assert!(!run.log().has_remnant());
                }
                run.crash(loses_power).check_reads();
            }
        }
    }
}

#[test]
fn what_is_read_in_one_go_is_bounded_by_bytes_and_segments() {
    // Bytes of each queue's message, queues of a commit, and queues of a read. Each commit has a segment of its own.
    let rows = [(20_000, 1, 5), (20_000, 10, 10), (3 << 20, 10, 2)];
    for (body_bytes, queues_of_commit, queues_of_read) in rows {
        let mut run = Run::begin(600, 64 << 20);
        let body = vec![7; body_bytes];
        let queues: Vec<_> = (0..10).map(|queue| QueueKey { vhost: 1, queue }).collect();
        for queues in queues.chunks(queues_of_commit) {
            let bytes_max = queues.len() as u64 * (body_bytes as u64 + 1000);
            let begun = run.log().begin(bytes_max, Purpose::Adding);
            let mut draft = begun.expect("room");
            for queue in queues {
                draft.store(*queue, 1, 0, |out| {
                    message::encode(&stored(&body), None, out)
                });
            }
            run.log().commit(draft, 1000).expect("room");
        }
        let wanted: Vec<_> = queues.iter().map(|queue| wanted(*queue, 0, 1)).collect();
        let contents = run.contents();
        let first = |at: usize| contents.first_segment(wanted[at]);
        assert_eq!(first(0) == first(1), queues_of_commit > 1);
        let mut read = 0;
        while read < wanted.len() {
            let parts = contents.read(&wanted[read..]).expect("readable");
            assert_eq!(parts.len(), queues_of_read, "of {body_bytes} bytes");
            assert!(parts.iter().all(|part| part.messages.len() == 1));
            read += parts.len();
        }
    }
}

#[test]
fn a_queue_among_many_is_read_without_their_messages() {
    const SEGMENTS: i64 = 12;
    const OF_SEGMENT: i64 = 10;
    let mut run = Run::begin(700, 64 << 20);
    let queues: Vec<_> = (0..100).map(|queue| QueueKey { vhost: 1, queue }).collect();
    let body = vec![7; 1000];
    // Each commit has a segment of its own.
    for segment in 0..SEGMENTS {
        let mut draft = run.log().begin(2 << 20, Purpose::Adding).expect("room");
        for place in 1..=OF_SEGMENT {
            for queue in &queues {
                draft.store(*queue, segment * OF_SEGMENT + place, 0, |out| {
                    message::encode(&stored(&body), None, out)
                });
            }
        }
        run.log().commit(draft, 1000).expect("room");
    }
    run.log().keeper().work();
    let contents = run.contents();
    let before = run.disk.read_bytes();
    let (mut pages, mut from) = (Vec::new(), 1);
    while from < i64::MAX {
        let parts = contents.read(&[wanted(queues[50], from, 1 << 20)]);
        let part = parts.expect("readable").remove(0);
        assert!(part.messages.iter().all(|chosen| chosen.message.is_some()));
        pages.push(part.messages.len());
        from = part.upto.saturating_add(1);
    }
    // No page is of more than eight segments.
    assert_eq!(pages, [80, 40]);
    let read_bytes = run.disk.read_bytes() - before;
    let bodies_bytes = SEGMENTS as u64 * OF_SEGMENT as u64 * body.len() as u64;
    let times = read_bytes / bodies_bytes;
    assert!(times < 8, "{times} times the bodies are read");
}

#[test]
fn bodies_that_queues_share_are_read_without_what_is_before_them_and_behind() {
    const COUNT: i64 = 100;
    let mut run = Run::begin(800, 64 << 20);
    let queue = |queue| QueueKey { vhost: 1, queue };
    let body = vec![7; 1 << 11];
    let (shared, between) = (stored(&body), stored(&vec![8; 100_000]));
    let mut draft = run.log().begin(16 << 20, Purpose::Adding).expect("room");
    for place in 1..=COUNT {
        let holder = draft.store(queue(0), place, 0, |out| {
            message::encode(&shared, None, out)
        });
        draft.store(queue(1), place, 0, |out| {
            message::encode(&between, None, out)
        });
        draft.store(queue(2), place, 0, |out| {
            message::encode(&shared, Some(holder), out)
        });
    }
    run.log().commit(draft, 1000).expect("room");
    let contents = run.contents();
    // Those with the bodies, and those that name them.
    for of in [0, 2] {
        let before = run.disk.read_bytes();
        let parts = contents.read(&[wanted(queue(of), 1, 1 << 20)]);
        let part = parts.expect("readable").remove(0);
        let found = part
            .messages
            .iter()
            .filter_map(|chosen| chosen.message.as_ref());
        let bodies: Vec<_> = found.map(|message| message.content.body()).collect();
        assert_eq!(bodies, vec![&body[..]; COUNT as usize]);
        let read_bytes = run.disk.read_bytes() - before;
        let times = read_bytes / (COUNT as u64 * body.len() as u64);
        assert!(
            times < 5,
            "{times} times the bodies are read for queue {of}"
        );
    }
}

#[test]
fn acknowledgements_at_random_are_copied_to_an_end() {
    let mut run = Run::begin(400, 64 << 20);
    let queue = QueueKey { vhost: 1, queue: 0 };
    let places = 6000;
    for from in (1..=places).step_by(100) {
        let mut draft = run.log().begin(20_000, Purpose::Adding).expect("room");
        for place in from..from + 100 {
            draft.store(queue, place, 0, |out| {
                message::encode(&stored(b"small"), None, out)
            });
            run.kept.insert((queue, place), b"small".to_vec());
        }
        run.log().commit(draft, 1000).expect("room");
    }
    for _ in 0..2500 {
        let place = 1 + run.random(places as u64) as i64;
        let state = Arc::clone(run.log().state());
        let mut draft = run.log().begin(200, Purpose::Freeing).expect("room");
        draft.remove(&state.lock().expect("no panic"), queue, place);
        run.log().commit(draft, 1000).expect("room");
        run.kept.remove(&(queue, place));
    }
    let now = Instant::now();
    let mut steps = 0;
    while let Ok(chosen) = Cleaning::choose(&run.log, now, Duration::ZERO) {
        let mut chosen = chosen;
        while chosen
            .as_mut()
            .is_some_and(|cleaning| cleaning.step(&mut run.log, 1000, now))
        {
            steps += 1;
        }
        run.log.keeper().work();
        steps += 1;
        assert!(steps < 2000, "it goes on for ever");
    }
    run.check_reads();
    run.crash(true).check_reads();
}

#[test]
fn removals_make_room_for_indexes_on_a_full_disk() {
    let mut run = Run::begin(500, 200 << 10);
    let [staying, going] = [0, 1].map(|queue| QueueKey { vhost: 1, queue });
    // No index is written meanwhile, and that of the first segment is the largest.
    for place in 1..=2000 {
        let queue = if place < 200 { staying } else { going };
        let mut draft = run.log().begin(200, Purpose::Adding).expect("room");
        draft.store(queue, place, 0, |out| {
            message::encode(&stored(b"small"), None, out)
        });
        run.log().commit(draft, 1000).expect("room");
        if queue == staying {
            run.kept.insert((queue, place), b"small".to_vec());
        }
    }
    let mut draft = run.log().begin(100, Purpose::Freeing).expect("room");
    draft.purge(going);
    run.log().commit(draft, 1000).expect("room");
    let free = (200 << 10) - run.disk.used_bytes();
    let filler = run.disk.create("filler").expect("room");
    filler.write_zeros(free - 700, 0).expect("room");
    run.log().keeper().work();
    let used = run.disk.used_bytes() - (free - 700);
    assert!(used <= 5 * SEGMENT_BYTES, "{used} bytes for {free}");
    run.crash(false).check_reads();
}

#[test]
fn a_full_disk_takes_removals_and_then_messages_again() {
    for seed in 200..=210 {
        let mut run = Run::begin(seed, 300 << 10);
        for _ in 0..400 {
            run.commit();
            run.log().keeper().work();
        }
        assert!(run.disk.used_bytes() <= 300 << 10);
        // Everything goes, in parts.
        while !run.kept.is_empty() {
            let gone: Vec<_> = run.kept.keys().take(50).copied().collect();
            let state = Arc::clone(run.log().state());
            let mut draft = run.log().begin(4000, Purpose::Freeing).expect("a reserve");
            for (queue, place) in &gone {
                draft.remove(&state.lock().expect("no panic"), *queue, *place);
            }
            run.log().commit(draft, 1000).expect("room for removals");
            run.log().keeper().work();
            gone.iter().for_each(|key| drop(run.kept.remove(key)));
        }
        run.log().keeper().work();
        let used = run.disk.used_bytes();
        assert!(used <= 5 * SEGMENT_BYTES, "{used} bytes for nothing");
        run.log()
            .begin(20_000, Purpose::Adding)
            .expect("room again");
        run.crash(false).check_reads();
    }
}

#[test]
fn a_tenth_that_lives_takes_little_space() {
    let mut run = Run::begin(300, 64 << 20);
    let queue = QueueKey { vhost: 1, queue: 0 };
    for place in 1..=4000 {
        let mut draft = run.log().begin(2000, Purpose::Adding).expect("room");
        let body = vec![(place % 251) as u8; 1000];
        draft.store(queue, place, 0, |out| {
            message::encode(&stored(&body), None, out)
        });
        run.log().commit(draft, 1000).expect("room");
        run.kept.insert((queue, place), body);
        if place % 10 != 0 {
            continue;
        }
        // Nine of ten of earlier ones.
        let state = Arc::clone(run.log().state());
        let mut draft = run.log().begin(2000, Purpose::Freeing).expect("room");
        for gone in place - 9..place {
            draft.remove(&state.lock().expect("no panic"), queue, gone);
            run.kept.remove(&(queue, gone));
        }
        run.log().commit(draft, 1000).expect("room");
        run.clean();
        run.log().keeper().work();
    }
    for _ in 0..1000 {
        run.clean();
    }
    run.log().keeper().work();
    let bytes = run.disk.used_bytes();
    let live = run.kept.len() as u64 * 1100;
    assert!(bytes < 3 * live + 4 * SEGMENT_BYTES, "{bytes} for {live}");
    run.check_reads();
    run.crash(false).check_reads();
}
