//! Corking: one write for an input, fan-outs in portions, replies past their line.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bytes::Bytes;
use crosstie_transport::{Connection, ConnectionLimits, relieve, uncork, uncork_all};

use crate::rig::{append, generous, pair, pair_with, pattern, run, until, waiting};

type Pairs = Vec<(Arc<Connection>, UnixStream)>;

fn pairs(count: usize, limits: &Arc<ConnectionLimits>) -> Pairs {
    (0..count).map(|_| pair(limits)).collect()
}

fn publish(pairs: &Pairs, event: &Bytes) {
    for (connection, _) in pairs {
        assert_eq!(connection.append_shared(event).map(drop), Ok(()));
    }
}

/// The receivers of new bytes, without those that had some before.
fn arrived(pairs: &mut Pairs) -> usize {
    let arrived = pairs.iter_mut().filter(|(_, peer)| {
        let mut peer = peer.try_clone().expect("a duplicate");
        !waiting(&mut peer).is_empty()
    });
    arrived.count()
}

#[test]
fn nothing_is_sent_before_the_input_was_handled() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        for part in [b"one ", b"two ", b"end."] {
            assert_eq!(append(&connection, part), Ok(()));
        }
        assert_eq!(waiting(&mut peer), b"");
        uncork();
        assert_eq!(waiting(&mut peer), b"one two end.");
    });
}

#[test]
fn a_fan_out_is_sent_in_portions() {
    run(async {
        let mut pairs = pairs(200, &generous());
        publish(&pairs, &Bytes::from_static(b"event"));
        uncork();
        assert_eq!(arrived(&mut pairs), 64);
        tokio::task::yield_now().await;
        let mut sent = 64;
        until(|| {
            sent += arrived(&mut pairs);
            sent == 200
        })
        .await;
    });
}

#[test]
fn a_reply_does_not_wait_in_the_line_of_a_fan_out() {
    run(async {
        let mut pairs = pairs(200, &generous());
        let (caller, mut caller_peer) = pair(&generous());
        publish(&pairs, &Bytes::from_static(b"event"));
        uncork();
        assert_eq!(arrived(&mut pairs), 64);

        assert_eq!(append(&caller, b"result"), Ok(()));
        // One that is in the line itself.
        let (last, last_peer) = &pairs[199];
        assert_eq!(append(last, b" invocation"), Ok(()));
        uncork();
        assert_eq!(waiting(&mut caller_peer), b"result");
        let mut last_peer = last_peer.try_clone().expect("a duplicate");
        assert_eq!(waiting(&mut last_peer), b"event invocation");
    });
}

/// A large publication to 100 connections, `arrived_at_once` of which have it before the rest is flushed.
fn fan_out_of_much(publish: impl Fn(&Pairs), arrived_at_once: usize) {
    run(async {
        let limits = generous();
        let mut pairs: Pairs = (0..100).map(|_| pair_with(None, &limits, 1)).collect();
        relieve();
        publish(&pairs);
        relieve();
        assert_eq!(arrived(&mut pairs), arrived_at_once);
        for (connection, _) in &pairs {
            connection.close();
        }
        uncork_all();
        until(|| {
            pairs
                .iter()
                .all(|(connection, _)| Arc::strong_count(connection) == 1)
        })
        .await;
    });
}

#[test]
fn large_appends_are_not_deferred() {
    let each_its_own = |pairs: &Pairs| {
        for (connection, _) in pairs {
            append(connection, &pattern(1 << 20)).expect("room");
        }
    };
    fan_out_of_much(each_its_own, 100);
}

#[test]
fn shared_bytes_count_once() {
    let event = Bytes::from(pattern(1 << 20));
    fan_out_of_much(|pairs| publish(pairs, &event), 0);
}
