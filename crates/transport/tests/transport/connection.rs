//! Sending: order, bounds, accounts, the end.

use std::io::Read;
use std::net::Shutdown;
use std::sync::Arc;

use bytes::Bytes;
use crosstie_transport::{Connection, Refused, WorkerOptions, Workers, uncork};
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

use crate::rig::{
    append, fill, generous, limits, pair, pattern, received, run, settle, stream, until,
};

#[test]
fn every_threads_bytes_arrive_once_and_in_order() {
    const THREADS: u8 = 4;
    const RECORDS: u32 = 1500;
    /// Thread, number, and as many further bytes as the number says.
    fn record(thread: u8, number: u32) -> Vec<u8> {
        let filler = (number as usize * 37) % 2500;
        let mut bytes = vec![thread];
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend(pattern(filler));
        bytes
    }
    run(async {
        let limits = generous();
        let (connection, peer) = pair(&limits);
        let appending = (0..THREADS).map(|thread| {
            let connection = Arc::clone(&connection);
            tokio::task::spawn_blocking(move || {
                for number in 0..RECORDS {
                    let bytes = record(thread, number);
                    let appended = if number % 3 == 0 {
                        connection.append_shared(&Bytes::from(bytes)).map(drop)
                    } else {
                        append(&connection, &bytes)
                    };
                    assert_eq!(appended, Ok(()));
                    if number % 5 == u32::from(thread) {
                        uncork();
                    }
                }
                uncork();
            })
        });
        let appending: Vec<_> = appending.collect();
        let received = tokio::spawn(received(peer));
        for thread in appending {
            thread.await.expect("no panic");
        }
        connection.finish();
        let received = received.await.expect("no panic");
        let mut next = [0; THREADS as usize];
        let mut rest = &received[..];
        while let Some(&thread) = rest.first() {
            let number = &mut next[usize::from(thread)];
            let expected = record(thread, *number);
            assert_eq!(
                &rest[..expected.len()],
                expected,
                "record {number} of {thread}"
            );
            *number += 1;
            rest = &rest[expected.len()..];
        }
        assert_eq!(next, [RECORDS; THREADS as usize]);
        assert_eq!(limits.account.total_bytes(), 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_slow_reader_misses_nothing(
        portions in prop::collection::vec((0..20_000usize, any::<bool>(), 1..9000usize), 1..40),
    ) {
        run(async {
            let limits = generous();
            let (connection, peer) = pair(&limits);
            let mut peer = stream(peer);
            let mut expected = Vec::new();
            let mut received = Vec::new();
            for (length, is_shared, read) in portions {
                let bytes = pattern(length);
                expected.extend_from_slice(&bytes);
                let appended = if is_shared {
                    connection.append_shared(&Bytes::from(bytes)).map(drop)
                } else {
                    append(&connection, &bytes)
                };
                assert_eq!(appended, Ok(()));
                uncork();
                let mut buffer = vec![0; read.min(expected.len() - received.len())];
                let count = peer.read(&mut buffer).await.expect("bytes");
                received.extend_from_slice(&buffer[..count]);
            }
            connection.finish();
            peer.read_to_end(&mut received).await.expect("bytes");
            assert!(received == expected, "other bytes arrived than were appended");
            assert_eq!(limits.account.total_bytes(), 0);
            assert_eq!(connection.queued_bytes(), 0);
        });
    }
}

#[test]
fn a_full_queue_refuses_until_it_is_drained() {
    run(async {
        let limits = limits(100_000, 1 << 30);
        let (connection, peer) = pair(&limits);
        let mut filled = fill(&connection, 1000);
        let queued = connection.queued_bytes();
        assert!((99_000..=100_000).contains(&queued), "{queued} bytes wait");
        let charged = limits.account.total_bytes();
        // Including the sent part of a buffer that is kept for its rest.
        assert!((queued..queued + 20_000).contains(&charged), "{charged}");
        assert_eq!(connection.debt().bytes(), charged);
        let shared = Bytes::from(pattern(2000));
        assert_eq!(
            connection.append_shared(&shared).map(drop),
            Err(Refused::Full)
        );
        assert_eq!(
            connection.queued_bytes(),
            queued,
            "refused bytes are removed"
        );

        let mut peer = stream(peer);
        let mut received = vec![0; filled];
        peer.read_exact(&mut received).await.expect("bytes");
        until(|| connection.queued_bytes() == 0).await;
        assert!(
            received
                .chunks(1000)
                .all(|portion| portion == pattern(1000))
        );
        assert_eq!(limits.account.total_bytes(), 0);

        filled = fill(&connection, 1000);
        assert!(filled > 99_000, "a drained connection accepts bytes again");
    });
}

#[test]
fn a_message_beyond_the_bound_fits_an_empty_queue_only() {
    run(async {
        let limits = limits(1000, 1 << 30);
        let (connection, _peer) = pair(&limits);
        assert_eq!(append(&connection, &pattern(500_000)), Ok(()));
        assert_eq!(append(&connection, &[0]), Err(Refused::Full));
        connection.flush();
        assert_eq!(append(&connection, &[0]), Err(Refused::Full));
    });
}

#[test]
fn a_writer_that_fails_appends_nothing() {
    run(async {
        let (connection, peer) = pair(&generous());
        let failed = connection.append(|out| {
            out.extend_from_slice(b"half");
            Err("no")
        });
        assert_eq!(failed, Err(Refused::Writer("no")));
        assert_eq!(append(&connection, b"whole"), Ok(()));
        connection.finish();
        assert_eq!(received(peer).await, b"whole");
    });
}

/// Ways in which a connection with bytes waiting ends.
#[test]
fn whatever_ends_a_connection_settles_its_account() {
    type End = fn(&Arc<Connection>, &std::os::unix::net::UnixStream);
    let ways: [(&str, End); 4] = [
        ("close", |connection, _| connection.close()),
        ("close, twice", |connection, _| {
            connection.close();
            connection.close();
        }),
        ("finish, then close", |connection, _| {
            connection.finish();
            connection.close();
        }),
        ("the peer is gone", |_, peer| {
            peer.shutdown(Shutdown::Both).expect("shut down");
        }),
    ];
    for (way, end) in ways {
        run(async {
            let limits = limits(100_000, 1 << 30);
            let (connection, peer) = pair(&limits);
            fill(&connection, 1000);
            assert!(limits.account.total_bytes() > 0);
            end(&connection, &peer);
            until(|| limits.account.total_bytes() == 0).await;
            assert!(connection.is_closed(), "{way}");
            assert_eq!(connection.queued_bytes(), 0, "{way}");
            assert_eq!(append(&connection, &[0]), Err(Refused::Gone), "{way}");
            // The task that waits for room ends, and drops its reference to the connection.
            until(|| Arc::strong_count(&connection) == 1).await;
        });
    }
}

#[test]
fn a_runtime_that_ends_settles_the_account() {
    let limits = limits(100_000, 1 << 30);
    let peer = run(async {
        let (connection, peer) = pair(&limits);
        fill(&connection, 1000);
        settle().await;
        peer
    });
    assert_eq!(limits.account.total_bytes(), 0);
    drop(peer);
}

#[test]
fn finishing_sends_everything_then_the_end_and_still_receives() {
    run(async {
        let (connection, peer) = pair(&generous());
        let bytes = pattern(1 << 20);
        assert_eq!(append(&connection, &bytes), Ok(()));
        connection.finish();
        assert!(connection.is_closed());
        assert_eq!(append(&connection, &[0]), Err(Refused::Gone));
        connection.finish();
        connection.flush();
        let peer_too = peer.try_clone().expect("a duplicate");
        assert!(received(peer).await == bytes);
        rustix::io::write(&peer_too, b"thanks").expect("our side still receives");
    });
}

#[test]
fn closing_is_seen_by_the_peer_at_once() {
    run(async {
        let limits = limits(100_000, 1 << 30);
        let (connection, mut peer) = pair(&limits);
        let filled = fill(&connection, 1000);
        connection.close();
        peer.set_nonblocking(false).expect("blocking");
        let mut bytes = Vec::new();
        peer.read_to_end(&mut bytes).expect("the end");
        assert!(bytes.len() < filled, "queued bytes are lost");
    });
}

#[test]
fn a_peer_that_takes_nothing_is_stalled() {
    // They update the clock.
    let workers = Workers::start(WorkerOptions::default()).expect("threads");
    run(async {
        let limits = limits(50_000, 1 << 30);
        let (connection, peer) = pair(&limits);
        assert!(!connection.is_stalled(), "nothing waits");
        let filled = fill(&connection, 1000);
        until(|| connection.is_stalled()).await;
        let mut received = vec![0; filled];
        stream(peer).read_exact(&mut received).await.expect("bytes");
        until(|| !connection.is_stalled()).await;
        assert_eq!(connection.queued_bytes(), 0);
    });
    workers.stop();
}
