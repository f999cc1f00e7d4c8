//! The queue against a naive model: a list of appended items, and a string of bytes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Queue, SLICES_MAX};

/// An operation on a queue that is being appended to.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    /// A writer that fails after it wrote this.
    Fail(Vec<u8>),
    Share(Vec<u8>),
    /// An item with two shared parts, the second behind so much of the rest.
    Parts(Vec<u8>, Vec<u8>, usize),
    /// Removes the last item.
    TakeBack,
}

fn item(lengths: impl Strategy<Value = usize>) -> impl Strategy<Value = Vec<u8>> {
    (lengths, any::<u8>()).prop_map(|(length, first)| {
        let bytes = (0..length).map(|index| first.wrapping_add(index as u8));
        bytes.collect()
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => item(0..2000usize).prop_map(Step::Append),
        1 => item(0..2000usize).prop_map(Step::Fail),
        4 => item(0..3000usize).prop_map(Step::Share),
        2 => (item(0..100usize), item(0..3000usize), 0..100usize)
            .prop_map(|(own, part, place)| Step::Parts(own, part, place)),
        1 => Just(Step::TakeBack),
    ]
}

/// A queue after `steps`, and its items.
fn filled(steps: &[Step]) -> (Queue, Vec<Vec<u8>>) {
    let mut queue = Queue::default();
    let mut items: Vec<Vec<u8>> = Vec::new();
    let mut is_fresh = false;
    for step in steps {
        match step {
            Step::Append(bytes) => {
                let appended = queue.append(|out| {
                    out.extend_from_slice(bytes);
                    Ok::<(), ()>(())
                });
                assert_eq!(appended, Ok(()));
                items.push(bytes.clone());
            }
            Step::Fail(bytes) => {
                let appended = queue.append(|out| {
                    out.extend_from_slice(bytes);
                    Err("no")
                });
                assert_eq!(appended, Err("no"));
                continue;
            }
            Step::Share(bytes) => {
                queue.append_shared(&Bytes::copy_from_slice(bytes));
                items.push(bytes.clone());
            }
            Step::Parts(own, part, place) => {
                let (first, second) = (own.len() / 2, own.len() / 2 + place % (own.len() + 1) / 2);
                let shared = Bytes::copy_from_slice(part);
                queue.append_parts(own, &[(first, &shared), (second, &shared)]);
                items.push(
                    [
                        &own[..first],
                        part,
                        &own[first..second],
                        part,
                        &own[second..],
                    ]
                    .concat(),
                );
            }
            Step::TakeBack if is_fresh => {
                let last = items.pop().expect("is fresh");
                if !last.is_empty() {
                    queue.truncate(last.len());
                }
            }
            Step::TakeBack => {}
        }
        is_fresh = !matches!(step, Step::TakeBack);
        assert_eq!(queue.len(), items.iter().map(Vec::len).sum());
    }
    (queue, items)
}

/// The bytes of the next system call.
fn offered(queue: &Queue) -> Vec<u8> {
    match queue.single() {
        Some(bytes) => bytes.to_vec(),
        None => {
            let slices = queue.slices(usize::MAX);
            assert!(slices.len() <= SLICES_MAX);
            slices.iter().flat_map(|slice| slice.to_vec()).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn appended_bytes_are_consumed_in_order(
        steps in vec(step(), 0..150),
        portions in vec(1..20_000usize, 1..50),
    ) {
        let (mut queue, items) = filled(&steps);
        let expected = items.concat();
        let mut consumed = 0;
        let mut portions = portions.iter().cycle();
        while !queue.is_empty() {
            let offer = offered(&queue);
            prop_assert!(!offer.is_empty(), "bytes wait, and none are offered");
            prop_assert_eq!(&offer[..], &expected[consumed..consumed + offer.len()]);
            let portion = portions.next().map_or(1, |portion| (*portion).min(offer.len()));
            queue.consume(portion);
            consumed += portion;
            prop_assert_eq!(queue.len(), expected.len() - consumed);
        }
        prop_assert_eq!(consumed, expected.len());
        prop_assert_eq!(queue.tail.capacity(), 0, "an empty queue holds memory");
    }

    #[test]
    fn a_transformation_sees_whole_items_once(steps in vec(step(), 0..100)) {
        let (queue, items) = filled(&steps);
        let mut ends = vec![0];
        for item in &items {
            ends.push(ends[ends.len() - 1] + item.len());
        }
        let mut seen = 0;
        let mut calls = 0;
        let transformed = queue.transformed(|bytes, out| {
            seen += bytes.len();
            calls += 1;
            assert!(ends.contains(&seen), "a run ends inside an item");
            out.extend(bytes.iter().map(|byte| !byte));
            Ok::<(), ()>(())
        });
        let transformed = transformed.expect("does not fail");
        let expected: Vec<u8> = items.concat().iter().map(|byte| !byte).collect();
        prop_assert_eq!(transformed.len(), expected.len());
        prop_assert_eq!(offered(&transformed), expected);
        prop_assert!(calls > 0, "not called for an empty queue");
    }
}

#[test]
fn a_failed_transformation_is_reported() {
    let (queue, _) = filled(&[Step::Append(vec![1; 10]), Step::Share(vec![2; 2000])]);
    let failed = queue.transformed(|bytes, _| if bytes[0] == 2 { Err("two") } else { Ok(()) });
    assert_eq!(failed.err(), Some("two"));
}

#[test]
fn a_failed_writer_leaves_no_memory_behind() {
    let (queue, _) = filled(&[Step::Fail(vec![1; 10])]);
    assert_eq!(queue.tail.capacity(), 0);
    let (queue, _) = filled(&[Step::Append(vec![1; 10]), Step::TakeBack]);
    assert_eq!(queue.tail.capacity(), 0);
}
