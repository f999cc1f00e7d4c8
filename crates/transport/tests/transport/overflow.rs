//! Receivers with bounds of their own: the events that they get, and the publishers that wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use crosstie_transport::{Bounds, Connection, Overflow, Queued, Refused, uncork};

use crate::rig::{generous, pair, received, run, until};

const QUEUE_BYTES_MAX: usize = 100_000;
const EVENT_BYTES: usize = 1_000;

static DROPPED: AtomicUsize = AtomicUsize::new(0);

fn bounds(overflow: Overflow) -> Option<Bounds> {
    Some(Bounds {
        queue_bytes_max: QUEUE_BYTES_MAX,
        overflow,
        count_dropped: |count| {
            DROPPED.fetch_add(count, Ordering::Relaxed);
        },
    })
}

fn event(number: usize) -> Bytes {
    let mut bytes = vec![b'.'; EVENT_BYTES];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

fn publish(connection: &Arc<Connection>, number: usize) -> Result<Queued, Refused<()>> {
    let queued = connection.append_shared(&event(number));
    uncork();
    queued
}

/// Publishes until the receiver is found slow; returns the number of events sent.
fn publish_until_slow(connection: &Arc<Connection>) -> usize {
    let mut count = 0;
    loop {
        count += 1;
        match publish(connection, count) {
            Ok(Queued::Freely) => assert!(count < 10_000, "it is never slow"),
            Ok(Queued::Slowly) => return count,
            Err(refused) => panic!("not notified before there was no room: {refused:?}"),
        }
    }
}

fn numbers(bytes: &[u8]) -> Vec<usize> {
    let events = bytes.chunks_exact(EVENT_BYTES);
    let number = |event: &[u8]| usize::from_be_bytes(*event.first_chunk().expect("a number"));
    events.map(number).collect()
}

/// Counts wake-ups; its references show which waits may still wake it.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_newest_events_are_kept() {
    run(async {
        let (connection, peer) = pair(&generous());
        connection.bound(bounds(Overflow::DropOldest));
        let before = DROPPED.load(Ordering::Relaxed);
        for number in 0..1_000 {
            publish(&connection, number).expect("there is always room");
            assert!(connection.queued_bytes() <= QUEUE_BYTES_MAX);
        }
        let reading = tokio::spawn(received(peer));
        connection.sent().await;
        connection.append_last(|_| {});
        uncork();
        drop(connection);
        let numbers = numbers(&reading.await.expect("no panic"));
        assert!(numbers.is_sorted() && numbers.ends_with(&[998, 999]));
        let dropped = DROPPED.load(Ordering::Relaxed) - before;
        assert!(dropped > 0);
        assert_eq!(numbers.len() + dropped, 1_000);
    });
}

#[test]
fn a_held_back_publisher_continues_when_its_receiver_reads() {
    run(async {
        let (connection, peer) = pair(&generous());
        connection.bound(bounds(Overflow::HoldBack));
        let count = publish_until_slow(&connection);
        let waiting = Arc::clone(&connection);
        let mut waiting = tokio::spawn(async move { waiting.eased().await });
        let reading = tokio::spawn(received(peer));
        (&mut waiting).await.expect("no panic");
        assert!(connection.queued_bytes() <= QUEUE_BYTES_MAX / 4);
        connection.append_last(|_| {});
        uncork();
        drop(connection);
        let numbers = numbers(&reading.await.expect("no panic"));
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    });
}

#[test]
fn a_wait_ends_with_the_receivers_bounds() {
    type Ending = fn(&Arc<Connection>);
    let endings: [Ending; 3] = [
        |connection| connection.bound(None),
        |connection| connection.bound(bounds(Overflow::DropNew)),
        |connection| connection.close(),
    ];
    for ending in endings {
        run(async {
            let (connection, _peer) = pair(&generous());
            connection.bound(bounds(Overflow::HoldBack));
            publish_until_slow(&connection);
            let held_back = Arc::clone(&connection);
            let waiting = tokio::spawn(async move { held_back.eased().await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            ending(&connection);
            until(|| waiting.is_finished()).await;
        });
    }
}

/// A publisher that waits and cancels repeatedly must not leave something each time.
#[test]
fn a_cancelled_wait_leaves_nothing() {
    run(async {
        let (connection, _peer) = pair(&generous());
        connection.bound(bounds(Overflow::HoldBack));
        publish_until_slow(&connection);
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&counting));
        for _ in 0..100 {
            let mut waiting = Box::pin(connection.eased());
            let polled = waiting.as_mut().poll(&mut Context::from_waker(&waker));
            assert_eq!(polled, Poll::Pending);
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&counting), 1);
        assert_eq!(counting.0.load(Ordering::Relaxed), 0);
    });
}
