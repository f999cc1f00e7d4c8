//! A connection as a stream: bytes that a pump received before, reading, writing, the end.

use crosstie_transport::{ConnectionStream, Refused, WorkerOptions, Workers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{
    ALERT, END, WRONG, append, generous, inverted, inverting, limits, pair, pair_with, pattern,
    received, run, stream, waiting,
};

#[test]
fn reads_earlier_bytes_first() {
    run(async {
        for has_stage in [false, true] {
            let stage = if has_stage { inverting() } else { None };
            let (connection, peer) = pair_with(stage, &generous(), 1 << 16);
            let mut ours =
                ConnectionStream::new(connection, b"before ".to_vec()).expect("a stream");
            let mut peer = stream(peer);
            let bytes = if has_stage {
                [inverted(b"after"), vec![END]].concat()
            } else {
                b"after".to_vec()
            };
            peer.write_all(&bytes).await.expect("sent");
            if !has_stage {
                peer.shutdown().await.expect("shut down");
            }
            let mut read = Vec::new();
            ours.read_to_end(&mut read).await.expect("bytes");
            assert_eq!(read, b"before after");
        }
    });
}

/// Writes more than the queue holds, to a peer that reads slowly: nothing is lost.
#[test]
fn writes_more_than_the_queue_holds() {
    run(async {
        for (has_stage, portion_bytes) in [(false, 4_000), (true, 4_000), (false, 300_000)] {
            let limits = limits(10_000, 1 << 30);
            let stage = if has_stage { inverting() } else { None };
            let (connection, peer) = pair_with(stage, &limits, 1);
            let mut ours = ConnectionStream::new(connection, Vec::new()).expect("a stream");
            let bytes = pattern(300_000);
            let writing = async {
                for portion in bytes.chunks(portion_bytes) {
                    ours.write_all(portion).await.expect("written");
                }
                ours.shutdown().await.expect("shut down");
            };
            let (mut read, ()) = tokio::join!(received(peer), writing);
            if has_stage {
                assert_eq!(read.pop(), Some(END));
                read = inverted(&read);
            }
            assert!(read == bytes, "other bytes arrived than were written");
            assert_eq!(limits.account.total_bytes(), 0);
        }
    });
}

/// Written bytes wait here within their bound, for every kind of writer.
#[test]
fn bytes_behind_a_full_socket_are_bounded() {
    run(async {
        let (connection, peer) = pair_with(None, &generous(), 1 << 16);
        let ours = ConnectionStream::new(std::sync::Arc::clone(&connection), Vec::new());
        let mut ours = ours.expect("a stream").with_unsent_bytes_max(10_000);
        let bytes = pattern(1_000_000);
        let written = bytes.clone();
        let writing = tokio::spawn(async move {
            ours.write_all(&written).await.expect("written");
            ours.shutdown().await.expect("shut down");
        });
        while connection.queued_bytes() < 10_000 {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert_eq!(connection.queued_bytes(), 10_000);
        }
        assert!(
            received(peer).await == bytes,
            "other bytes arrived than were written"
        );
        writing.await.expect("no panic");
    });
}

#[test]
fn read_bytes_can_be_put_back() {
    run(async {
        let (connection, peer) = pair(&generous());
        let mut ours = ConnectionStream::new(connection, b"before ".to_vec()).expect("a stream");
        let mut peer = stream(peer);
        ours.unread(b"first, ");
        ours.readable().await.expect("something");
        let mut read = [0; 14];
        ours.read_exact(&mut read).await.expect("bytes");
        assert_eq!(&read, b"first, before ");
        let (readable, sent) = tokio::join!(ours.readable(), peer.write_all(b"after"));
        readable.and(sent).expect("it is there");
        let mut read = [0; 5];
        ours.read_exact(&mut read).await.expect("bytes");
        assert_eq!(&read, b"after");
    });
}

#[test]
fn a_flush_waits_until_everything_was_sent() {
    run(async {
        let (connection, peer) = pair(&generous());
        let mut ours = ConnectionStream::new(std::sync::Arc::clone(&connection), Vec::new())
            .expect("a stream");
        let flushing = tokio::spawn(async move {
            ours.write_all(&pattern(100_000)).await.expect("written");
            ours.flush().await.expect("sent");
            assert_eq!(connection.queued_bytes(), 0);
            drop(ours);
            connection.close();
        });
        assert_eq!(received(peer).await.len(), 100_000);
        flushing.await.expect("no panic");
    });
}

#[test]
fn a_peer_that_takes_nothing_is_dropped() {
    let workers = Workers::start(WorkerOptions::default()).expect("threads");
    run(async {
        let (connection, _peer) = pair(&generous());
        let mut ours = ConnectionStream::new(std::sync::Arc::clone(&connection), Vec::new())
            .expect("a stream");
        // More than the socket and the queue take.
        let e = ours.write_all(&pattern(500_000)).await;
        let e = e.expect_err("nobody reads");
        assert_eq!(e.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(append(&connection, b"x"), Err(Refused::Gone));
        assert!(ours.write_all(b"x").await.is_err());
    });
    workers.stop();
}

#[test]
fn a_failed_stage_gives_its_reason() {
    run(async {
        let (connection, peer) = pair_with(inverting(), &generous(), 1 << 16);
        let mut ours = ConnectionStream::new(connection, Vec::new()).expect("a stream");
        let mut peer_too = peer.try_clone().expect("a duplicate");
        stream(peer).write_all(&[WRONG]).await.expect("sent");
        let mut buffer = [0; 10];
        let e = ours.read(&mut buffer).await.expect_err("is wrong");
        assert_eq!(e.to_string(), "wrong");
        assert_eq!(waiting(&mut peer_too), [ALERT]);
    });
}
