//! Holding back: a peer that does not take its answers is not read from, and loses nothing.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crosstie_transport::{
    Connection, Ended, Meter, Outcome, PeerAddress, Protocol, Refused, Socket, pump,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{
    END, append, generous, inverted, inverting, pair, pair_with, pattern, received, run, settle,
    stream, until, waiting,
};

/// One read takes no more than this, so no more is ever queued for an echo.
const READ_BYTES: usize = 64 * 1024;

/// Echoes its input, by one of two ways, so many bytes at a time.
struct Echo {
    connection: Arc<Connection>,
    portion: usize,
    is_direct: bool,
    queued_max: usize,
}

impl Echo {
    fn new(connection: &Arc<Connection>, portion: usize, is_direct: bool) -> Self {
        Self {
            connection: Arc::clone(connection),
            portion,
            is_direct,
            queued_max: 0,
        }
    }
}

impl Protocol for Echo {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        assert_eq!(
            self.connection.queued_bytes(),
            0,
            "read before all was sent"
        );
        let portion = &input[..input.len().min(self.portion)];
        let sent = match self.is_direct {
            true => self.connection.send(portion),
            false => append(&self.connection, portion),
        };
        if sent == Err(Refused::Gone) {
            return Outcome::Close;
        }
        assert_eq!(sent, Ok(()));
        self.queued_max = self.queued_max.max(self.connection.queued_bytes());
        Outcome::Hold {
            consumed: portion.len(),
            wanted: 0,
        }
    }
}

/// A peer that sends as much as is taken before it reads gets everything back.
fn check(portion: usize, is_direct: bool, has_stage: bool) {
    run(async {
        let stage = if has_stage { inverting() } else { None };
        let (connection, peer) = pair_with(stage, &generous(), 1 << 16);
        let bytes: Vec<u8> = pattern(3_000_000)
            .into_iter()
            .map(|byte| byte.max(10))
            .collect();
        let mut peer = peer;
        let mut sent = 0;
        let mut echo = Echo::new(&connection, portion, is_direct);
        let (pumping, echoing) = tokio::join!(pump(&connection, &mut echo), async {
            // As much as fits, while nothing is read.
            let mut idle = 0;
            while idle < 50 && sent < bytes.len() {
                match peer.write(&bytes[sent..]) {
                    Ok(count) => (sent, idle) = (sent + count, 0),
                    Err(_) => idle += 1,
                }
                settle().await;
            }
            assert!(sent < bytes.len() / 2, "{sent} bytes were taken");
            let (mut reading, mut writing) = stream(peer).into_split();
            let rest = bytes[sent..].to_vec();
            let sending = tokio::spawn(async move {
                writing.write_all(&rest).await.expect("sent");
            });
            let mut back = vec![0; bytes.len()];
            reading.read_exact(&mut back).await.expect("all of it");
            sending.await.expect("no panic");
            back
        });
        assert!(matches!(pumping, Ended::ByPeer { unconsumed: 0 }));
        assert!(echoing == bytes, "other bytes came back");
        assert!(echo.queued_max <= READ_BYTES, "{} queued", echo.queued_max);
    });
}

#[test]
fn an_echo_is_bounded_and_loses_nothing() {
    for portion in [usize::MAX, 10_000] {
        for is_direct in [true, false] {
            for has_stage in [false, true] {
                check(portion, is_direct, has_stage);
            }
        }
    }
}

#[test]
fn held_back_bytes_are_offered_again_without_more_input() {
    for has_stage in [false, true] {
        run(async {
            let stage = if has_stage { inverting() } else { None };
            let (connection, mut peer) = pair_with(stage, &generous(), 1 << 16);
            let bytes = vec![b'x'; 100];
            if has_stage {
                // With the end of the stream behind it, which must not overtake it.
                let sent = [&inverted(&bytes)[..], &[END]].concat();
                peer.write_all(&sent).expect("sent");
            } else {
                peer.write_all(&bytes).expect("sent");
                peer.shutdown(Shutdown::Write).expect("shut down");
            }
            let mut echo = Echo::new(&connection, 1, true);
            let ended = pump(&connection, &mut echo).await;
            assert!(
                matches!(ended, Ended::ByPeer { unconsumed: 0 }),
                "{ended:?}"
            );
            let expected = if has_stage { inverted(&bytes) } else { bytes };
            assert_eq!(waiting(&mut peer), expected);
        });
    }
}

/// Holds until three bytes are there.
struct Threes(Vec<usize>);

impl Protocol for Threes {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        self.0.push(input.len());
        Outcome::Hold {
            consumed: input.len() / 3 * 3,
            wanted: 3,
        }
    }
}

#[test]
fn held_back_bytes_that_are_too_few_wait_for_more() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        let mut threes = Threes(Vec::new());
        let writing = async {
            for portion in [&b"a"[..], b"b", b"cd", b"efg"] {
                peer.write_all(portion).expect("sent");
                settle().await;
            }
            peer.shutdown(Shutdown::Write).expect("shut down");
        };
        let (ended, ()) = tokio::join!(pump(&connection, &mut threes), writing);
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 1 }),
            "{ended:?}"
        );
        assert_eq!(threes.0, [1, 4, 4], "bytes offered each time");
    });
}

#[test]
fn a_reader_that_is_held_back_sees_the_end_of_the_connection() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        let mut echo = Echo::new(&connection, usize::MAX, true);
        let closing = async {
            // Nothing is read here, so that eventually the echo finds no room.
            until(|| {
                let _ = peer.write(&pattern(1000));
                connection.queued_bytes() > 0
            })
            .await;
            connection.close();
        };
        let (ended, ()) = tokio::join!(pump(&connection, &mut echo), closing);
        assert!(!matches!(ended, Ended::HandedOver { .. }), "{ended:?}");
        connection.sent().await;
    });
}

#[test]
fn bytes_sent_directly_stay_in_order_with_others() {
    run(async {
        let (connection, peer) = pair(&generous());
        let mut expected = Vec::new();
        for round in 0..40u8 {
            let bytes = vec![round; 1 + usize::from(round) * 700];
            match round % 3 {
                0 => append(&connection, &bytes).expect("appended"),
                _ => connection.send(&bytes).expect("sent"),
            }
            expected.extend_from_slice(&bytes);
        }
        let received = tokio::spawn(received(peer));
        connection.sent().await;
        connection.finish();
        assert!(received.await.expect("no panic") == expected);
        assert_eq!(connection.send(b"x"), Err(Refused::Gone));
    });
}

#[test]
fn a_meter_counts_a_sockets_bytes() {
    run(async {
        let (ours, peer) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("non-blocking");
        peer.set_nonblocking(true).expect("non-blocking");
        let meter = Arc::new(Meter::default());
        let socket = Socket::new(ours.into(), PeerAddress::Unix(None));
        let connection = Connection::new(socket, None, generous());
        let connection = Arc::new(connection.with_meter(Arc::clone(&meter)));
        let mut echo = Echo::new(&connection, 7, true);
        let (mut reading, mut writing) = stream(peer).into_split();
        let peer = async {
            writing.write_all(&pattern(100)).await.expect("sent");
            reading.read_exact(&mut [0; 100]).await.expect("echoed");
            append(&connection, &pattern(11)).expect("appended");
            connection.flush();
            drop(writing);
        };
        tokio::join!(pump(&connection, &mut echo), peer);
        assert_eq!(meter.received_bytes(), 100);
        assert_eq!(meter.sent_bytes(), 111);
    });
}
