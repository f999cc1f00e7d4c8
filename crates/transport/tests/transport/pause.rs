//! Pausing: other threads stop and resume a reader; queues with a lower bound.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crosstie_transport::{Connection, Ended, Outcome, Protocol, Refused, pump, uncork, uncork_all};

use crate::rig::{append, generous, pair, pair_with, received, run, settle, until, waiting};

/// Counts the bytes that it reads.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Counting {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Protocol for Counting {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        self.0.fetch_add(input.len(), Ordering::Relaxed);
        Outcome::consumed(input.len())
    }
}

fn pumping(connection: &Arc<Connection>, counting: &Counting) -> tokio::task::JoinHandle<Ended> {
    let (connection, mut counting) = (Arc::clone(connection), counting.clone());
    tokio::spawn(async move { pump(&connection, &mut counting).await })
}

#[test]
fn a_paused_reader_is_resumed_by_another_thread() {
    run(async {
        let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
        let counting = Counting::default();
        let pumping = pumping(&connection, &counting);
        peer.write_all(b"one").expect("room");
        until(|| counting.count() == 3).await;
        connection.pause_reading();
        assert!(connection.is_reading_paused());
        // It waits for readiness by now; the bytes that wake it are not read.
        for _ in 0..3 {
            peer.write_all(b"two").expect("room");
            settle().await;
        }
        let read = counting.count();
        assert!(read == 3 || read == 6, "{read}");
        let resuming = Arc::clone(&connection);
        let resumed = std::thread::spawn(move || resuming.resume_reading());
        until(|| counting.count() == 12).await;
        resumed.join().expect("no panic");
        drop(peer);
        let ended = pumping.await.expect("no panic");
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 0 }),
            "{ended:?}"
        );
    });
}

/// Several reads' worth is there when the reader resumes, and no new bytes announce it.
#[test]
fn bytes_received_during_a_pause_are_all_read() {
    run(async {
        let (connection, mut peer) = pair_with(None, &generous(), 1 << 20);
        let counting = Counting::default();
        let pumping = pumping(&connection, &counting);
        peer.write_all(b"one").expect("room");
        until(|| counting.count() == 3).await;
        connection.pause_reading();
        let mut sent = 3;
        while let Ok(count) = peer.write(&[7; 1 << 14]) {
            sent += count;
            settle().await;
        }
        assert!(sent > 1 << 17, "{sent} bytes are several reads");
        connection.resume_reading();
        until(|| counting.count() == sent).await;
        drop(peer);
        pumping.await.expect("no panic");
    });
}

#[test]
fn a_paused_reader_reads_a_closed_peer_to_its_end() {
    run(async {
        for sent_before in [0, 3] {
            let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
            let counting = Counting::default();
            let pumping = pumping(&connection, &counting);
            peer.write_all(b"one").expect("room");
            until(|| counting.count() == 3).await;
            connection.pause_reading();
            for _ in 0..sent_before {
                peer.write_all(b"two").expect("room");
                settle().await;
            }
            peer.write_all(b"last").expect("room");
            drop(peer);
            let ended = pumping.await.expect("no panic");
            let is_end = matches!(ended, Ended::ByPeer { unconsumed: 0 });
            assert!(is_end, "{ended:?}");
            assert_eq!(counting.count(), 7 + 3 * sent_before);
        }
    });
}

/// Takes a byte in each turn, and waits for an outcome before the next one.
struct Awaiting(Arc<Connection>, Counting);

impl Protocol for Awaiting {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let consumed = input.len().min(1);
        self.1.0.fetch_add(consumed, Ordering::Relaxed);
        if consumed == input.len() {
            return Outcome::consumed(consumed);
        }
        self.0.pause_reading();
        Outcome::Await { consumed }
    }
}

#[test]
fn a_reader_that_awaits_an_outcome_is_not_hurried_by_the_end_of_its_peer() {
    run(async {
        let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
        let counting = Counting::default();
        let mut awaiting = Awaiting(Arc::clone(&connection), counting.clone());
        peer.write_all(b"abc").expect("room");
        drop(peer);
        let (ended, ()) = tokio::join!(pump(&connection, &mut awaiting), async {
            for handled in 1..=2 {
                until(|| counting.count() == handled).await;
                settle().await;
                assert_eq!(counting.count(), handled);
                connection.resume_reading();
            }
        });
        assert_eq!(counting.count(), 3);
        let is_end = matches!(ended, Ended::ByPeer { unconsumed: 0 });
        assert!(is_end, "{ended:?}");
    });
}

#[test]
fn closing_ends_a_reader_that_awaits_an_outcome() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        peer.write_all(b"abc").expect("room");
        let counting = Counting::default();
        let mut awaiting = Awaiting(Arc::clone(&connection), counting.clone());
        let (ended, ()) = tokio::join!(pump(&connection, &mut awaiting), async {
            until(|| counting.count() == 1).await;
            settle().await;
            connection.close();
        });
        assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
    });
}

#[test]
fn closing_ends_a_paused_reader() {
    run(async {
        let (connection, peer) = pair(&generous());
        connection.pause_reading();
        let pumping = pumping(&connection, &Counting::default());
        settle().await;
        connection.close();
        pumping.await.expect("no panic");
        drop(peer);
    });
}

#[test]
fn a_lower_bound_refuses_and_the_end_of_sending_is_notified() {
    run(async {
        let (connection, peer) = pair(&generous());
        let below = |bytes: &[u8]| {
            connection.append_below(1000, |out| {
                out.extend_from_slice(bytes);
                Ok::<(), ()>(())
            })
        };
        let mut appended = 0;
        loop {
            match below(&[7; 300]) {
                Ok(()) => appended += 300,
                Err(e) => {
                    assert_eq!(e, Refused::Full);
                    break;
                }
            }
            // Corked: nothing was sent yet.
            assert_eq!(connection.queued_bytes(), appended);
        }
        assert_eq!(appended, 1200);
        // Appends that may exceed the bound still do.
        assert_eq!(append(&connection, &[7; 300]), Ok(()));
        let sent = {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move { connection.sent().await })
        };
        settle().await;
        assert!(!sent.is_finished(), "corked bytes are not sent");
        uncork();
        let receiving = tokio::spawn(received(peer));
        sent.await.expect("no panic");
        assert_eq!(connection.queued_bytes(), 0);
        connection.finish();
        assert_eq!(receiving.await.expect("no panic").len(), 1500);
    });
}

#[test]
fn a_thread_without_tasks_flushes_all_it_touched() {
    run(async {
        let pairs: Vec<_> = (0..100).map(|_| pair(&generous())).collect();
        let context = tokio::runtime::Handle::current();
        let connections: Vec<_> = pairs.iter().map(|(c, _)| Arc::clone(c)).collect();
        std::thread::spawn(move || {
            let _context = context.enter();
            for connection in &connections {
                assert_eq!(append(connection, b"told"), Ok(()));
            }
            uncork_all();
        })
        .join()
        .expect("no panic");
        for (_, mut peer) in pairs {
            assert_eq!(waiting(&mut peer), b"told");
        }
    });
}
