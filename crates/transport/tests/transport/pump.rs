//! Reading: in any portions, a protocol sees every item, and the end is reported correctly.

use std::io::Write;
use std::sync::Arc;

use crosstie_transport::{Connection, Ended, Outcome, Protocol, pump};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use crate::rig::{
    ALERT, ANSWER, END, GREETING, Items, WRONG, framed, generous, inverted, inverting, pair,
    pair_with, pattern, received, run, settle, stream, waiting,
};

/// An input without the bytes that the inverting stage uses itself.
fn plain(length: usize) -> Vec<u8> {
    vec![b'x'; length]
}

/// Sends `bytes` in these portions, over and over; then the end.
async fn check(items: &[Vec<u8>], portions: &[usize], tells: bool) {
    let (connection, peer) = pair_with(None, &generous(), 1 << 16);
    let bytes = framed(items);
    let mut protocol = Items {
        tells,
        ..Items::default()
    };
    let mut peer = stream(peer);
    let portions = portions.to_vec();
    let sending = tokio::spawn(async move {
        let mut rest = &bytes[..];
        for portion in portions.iter().cycle() {
            let (now, later) = rest.split_at((*portion).min(rest.len()));
            peer.write_all(now).await.expect("sent");
            settle().await;
            rest = later;
            if rest.is_empty() {
                return;
            }
        }
    });
    let ended = pump(&connection, &mut protocol).await;
    sending.await.expect("no panic");
    assert!(
        matches!(ended, Ended::ByPeer { unconsumed: 0 }),
        "{ended:?}"
    );
    assert!(protocol.items == items, "other items than were sent");
}

#[test]
fn every_split_of_an_input() {
    let items = [plain(3), plain(0), pattern(7), plain(1)];
    for tells in [false, true] {
        for split in 1..framed(&items).len() {
            run(check(&items, &[split, usize::MAX], tells));
        }
        run(check(&items, &[1], tells));
    }
}

#[test]
fn items_around_the_size_of_a_read() {
    let sizes = [
        0, 4000, 61_435, 61_436, 61_437, 65_531, 65_532, 65_533, 65_536, 70_000, 3, 1_100_000, 5,
    ];
    let items: Vec<_> = sizes.into_iter().map(pattern).collect();
    for tells in [false, true] {
        run(check(&items, &[usize::MAX], tells));
        run(check(&items, &[1000, 60_000, 5], tells));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_items_in_any_portions(
        lengths in prop::collection::vec(prop_oneof![0..300usize, 0..100_000usize], 0..20),
        portions in prop::collection::vec(prop_oneof![1..300usize, 1..100_000usize], 1..10),
        tells in any::<bool>(),
    ) {
        // Small portions of a large input only take time.
        let total: usize = lengths.iter().sum();
        let portions: Vec<_> = portions.into_iter().map(|p| p.max(total / 500)).collect();
        let items: Vec<_> = lengths.into_iter().map(pattern).collect();
        run(check(&items, &portions, tells));
    }
}

#[test]
fn an_item_that_is_wanted_is_handed_over_whole() {
    run(async {
        let (connection, peer) = pair_with(None, &generous(), 1 << 16);
        let bytes = framed(&[plain(30_000), plain(200_000)]);
        let sending = tokio::spawn(async move {
            let mut peer = stream(peer);
            for portion in bytes.chunks(1000) {
                peer.write_all(portion).await.expect("sent");
                settle().await;
            }
        });
        let mut protocol = Items {
            tells: true,
            ..Items::default()
        };
        pump(&connection, &mut protocol).await;
        sending.await.expect("no panic");
        assert_eq!(protocol.items.len(), 2);
        assert!(protocol.inputs <= 6, "was asked {} times", protocol.inputs);
    });
}

#[test]
fn an_end_inside_an_item_says_how_much_was_left() {
    for (length, sent) in [(10, 1), (10, 4), (10, 13), (200_000, 100_000), (200_000, 5)] {
        for has_stage in [false, true] {
            run(async {
                let stage = if has_stage { inverting() } else { None };
                let (connection, peer) = pair_with(stage, &generous(), 1 << 16);
                let mut bytes = framed(&[plain(length)]);
                bytes.truncate(sent);
                if has_stage {
                    bytes = inverted(&bytes);
                }
                let sending = tokio::spawn(async move {
                    stream(peer).write_all(&bytes).await.expect("sent");
                });
                let mut protocol = Items {
                    tells: true,
                    ..Items::default()
                };
                let ended = pump(&connection, &mut protocol).await;
                sending.await.expect("no panic");
                let Ended::ByPeer { unconsumed } = ended else {
                    panic!("expected the peer's end, got {ended:?}");
                };
                assert_eq!(unconsumed, sent, "of {length}, staged: {has_stage}");
            });
        }
    }
}

#[test]
fn items_through_a_stage() {
    run(async {
        let (connection, peer) = pair_with(inverting(), &generous(), 1 << 16);
        let items = [plain(3), plain(100_000), plain(0), plain(20)];
        let mut bytes = inverted(&framed(&items));
        bytes.push(END);
        let mut protocol = Items {
            tells: true,
            ..Items::default()
        };
        // The peer keeps its side open: the end is the stage's.
        let mut peer = stream(peer);
        let sending = async {
            for portion in bytes.chunks(7777) {
                peer.write_all(portion).await.expect("sent");
                settle().await;
            }
        };
        let (ended, ()) = tokio::join!(pump(&connection, &mut protocol), sending);
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 0 }),
            "{ended:?}"
        );
        assert!(protocol.items == items, "other items than were sent");
    });
}

/// Also in the middle of an item, however large.
#[test]
fn a_stage_answers_by_itself() {
    for item in [0, 10, 200_000] {
        run(async {
            let (connection, peer) = pair_with(inverting(), &generous(), 1 << 16);
            let mut bytes = inverted(&framed(&[plain(item)]));
            bytes.truncate(item);
            bytes.push(GREETING);
            let peer_too = peer.try_clone().expect("a duplicate");
            let mut protocol = Items {
                tells: true,
                ..Items::default()
            };
            let mut writer = stream(peer);
            let asking = async {
                writer.write_all(&bytes).await.expect("sent");
                let mut answer = Vec::new();
                let mut peer = peer_too;
                while answer.is_empty() {
                    tokio::task::yield_now().await;
                    answer = waiting(&mut peer);
                }
                writer.write_all(&[END]).await.expect("sent");
                answer
            };
            let (_, answer) = tokio::join!(pump(&connection, &mut protocol), asking);
            assert_eq!(answer, [ANSWER], "inside an item of {item}");
        });
    }
}

#[test]
fn a_stage_that_fails_says_why_before_the_end() {
    for before in [0, 10, 100_000] {
        run(async {
            let (connection, peer) = pair_with(inverting(), &generous(), 1 << 16);
            let mut bytes = inverted(&framed(&[plain(200_000)]));
            bytes.truncate(before);
            bytes.push(WRONG);
            let peer_too = peer.try_clone().expect("a duplicate");
            let sending = tokio::spawn(async move {
                let mut peer = stream(peer);
                peer.write_all(&bytes).await.expect("sent");
                peer
            });
            let ended = pump(&connection, &mut Items::default()).await;
            assert!(matches!(ended, Ended::StageFailed(_)), "{ended:?}");
            connection.close();
            drop(sending.await);
            assert_eq!(received(peer_too).await, [ALERT]);
        });
    }
}

#[test]
fn a_socket_that_is_closed_here_ends_its_reader() {
    run(async {
        let (connection, _peer) = pair(&generous());
        let mut protocol = Items::default();
        let closing = async {
            settle().await;
            connection.close();
        };
        let (ended, ()) = tokio::join!(pump(&connection, &mut protocol), closing);
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 0 }),
            "{ended:?}"
        );
    });
}

/// Returns a given outcome for its first input.
struct Once(Outcome);

impl Protocol for Once {
    fn handle_input(&mut self, _: &mut [u8]) -> Outcome {
        self.0
    }
}

#[test]
fn a_protocol_ends_or_hands_over() {
    for has_stage in [false, true] {
        run(async {
            let stage = || if has_stage { inverting() } else { None };
            let bytes = if has_stage {
                inverted(b"headrest")
            } else {
                b"headrest".to_vec()
            };
            let (connection, mut peer) = pair_with(stage(), &generous(), 1 << 16);
            peer.write_all(&bytes).expect("sent");
            let ended = pump(&connection, &mut Once(Outcome::HandOver { consumed: 4 })).await;
            let Ended::HandedOver { input } = ended else {
                panic!("expected to be handed over, got {ended:?}");
            };
            assert_eq!(input, b"rest");

            peer.write_all(&bytes).expect("sent");
            let ended = pump(&connection, &mut Once(Outcome::Close)).await;
            assert!(matches!(ended, Ended::ByProtocol), "{ended:?}");
        });
    }
}

/// Records whose input was handled.
struct Named {
    name: char,
    inputs: Arc<Mutex<String>>,
}

impl Protocol for Named {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        self.inputs.lock().push(self.name);
        Outcome::consumed(input.len())
    }
}

#[test]
fn a_peer_that_sends_without_pause_leaves_others_their_turn() {
    run(async {
        let inputs = Arc::new(Mutex::new(String::new()));
        let serve = |name, connection: Arc<Connection>| {
            let inputs = Arc::clone(&inputs);
            tokio::spawn(async move { pump(&connection, &mut Named { name, inputs }).await })
        };
        let (busy, mut busy_peer) = pair_with(None, &generous(), 1 << 20);
        let (calm, mut calm_peer) = pair(&generous());
        let mut sent = 0;
        while let Ok(count) = busy_peer.write(&[0; 4096]) {
            sent += count;
        }
        assert!(sent > 2 * 64 * 1024, "the socket took only {sent} bytes");
        calm_peer.write_all(b"x").expect("sent");
        drop((busy_peer, calm_peer));
        let pumps = [serve('b', busy), serve('c', calm)];
        for pump in pumps {
            pump.await.expect("no panic");
        }
        let inputs = inputs.lock();
        assert!(inputs.ends_with('b'), "one was starved: {inputs}");
    });
}
