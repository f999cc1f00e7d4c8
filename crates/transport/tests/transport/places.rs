//! Places: a pump ends if the other kind of thread is the right one, and continues there.

use std::io::Write;
use std::net::Shutdown;

use crosstie_transport::{
    Ended, Outcome, Place, Protocol, Unread, WorkerOptions, Workers, pump_in,
};

use crate::rig::{Items, framed, generous, pair_with, pattern, run};

/// The pump's rest for the other place.
fn misplaced(ended: Ended) -> Unread {
    match ended {
        Ended::Misplaced(unread) => *unread,
        other => panic!("expected Misplaced, got {other:?}"),
    }
}

#[test]
fn a_large_item_moves_to_the_place_for_large_ones() {
    let items = [pattern(10), pattern(300_000), pattern(20), pattern(70_000)];
    for count in 1..=items.len() {
        run(async {
            let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
            let bytes = framed(&items[..count]);
            let writing = std::thread::spawn(move || {
                peer.set_nonblocking(false).expect("blocking");
                peer.write_all(&bytes).expect("sent");
                peer.shutdown(Shutdown::Write).expect("ended");
                peer
            });
            let mut protocol = Items {
                tells: true,
                ..Items::default()
            };
            let quick = Unread::default();
            let ended = pump_in(Place::Quick, quick, &connection, &mut protocol).await;
            assert!(protocol.items.iter().all(|item| item.len() < 1000));
            if count > 1 {
                let unread = misplaced(ended);
                let ended = pump_in(Place::Bulk, unread, &connection, &mut protocol).await;
                assert!(
                    matches!(ended, Ended::ByPeer { unconsumed: 0 }),
                    "{ended:?}"
                );
            }
            assert_eq!(protocol.items, items[..count]);
            drop(writing.join().expect("the peer"));
        });
    }
}

/// Announces a large item at the byte `b`, if that is allowed.
#[derive(Default)]
struct Telling {
    place: Option<Place>,
    handled: Vec<(u8, Place)>,
}

impl Protocol for Telling {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let place = self.place.expect("the place is set before the first input");
        for (consumed, byte) in input.iter().enumerate() {
            if *byte == b'b' && place == Place::Quick {
                return Outcome::Bulk { consumed };
            }
            self.handled.push((*byte, place));
        }
        Outcome::consumed(input.len())
    }

    fn handle_place(&mut self, place: Place) {
        self.place = Some(place);
    }
}

#[test]
fn a_protocol_may_say_that_something_is_large() {
    run(async {
        let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
        peer.write_all(b"abc").expect("sent");
        peer.shutdown(Shutdown::Write).expect("ended");
        let mut protocol = Telling::default();
        let quick = Unread::default();
        let ended = pump_in(Place::Quick, quick, &connection, &mut protocol).await;
        assert_eq!(protocol.handled, [(b'a', Place::Quick)]);
        let ended = pump_in(Place::Bulk, misplaced(ended), &connection, &mut protocol).await;
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 0 }),
            "{ended:?}"
        );
        let bulk = [(b'b', Place::Bulk), (b'c', Place::Bulk)];
        assert_eq!(protocol.handled[1..], bulk);
    });
}

/// A protocol that keeps the buffers of its inputs.
#[derive(Default)]
struct Keeping(Vec<Vec<u8>>);

impl Protocol for Keeping {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let wanted = 4 + u32::from_be_bytes(*input.first_chunk().expect("a length")) as usize;
        Outcome::Continue {
            consumed: 0,
            wanted,
        }
    }

    fn handle_buffer(&mut self, input: &mut Vec<u8>) -> Outcome {
        let consumed = input.len();
        self.0.push(std::mem::take(input));
        Outcome::consumed(consumed)
    }
}

#[test]
fn a_protocol_may_keep_the_buffer_of_a_large_item() {
    run(async {
        let (connection, mut peer) = pair_with(None, &generous(), 1 << 16);
        let bytes = framed(&[pattern(3_000_000)]);
        let sent = bytes.clone();
        let writing = std::thread::spawn(move || {
            peer.set_nonblocking(false).expect("blocking");
            peer.write_all(&sent).expect("sent");
        });
        let mut protocol = Keeping::default();
        let ended = crosstie_transport::pump(&connection, &mut protocol).await;
        assert!(
            matches!(ended, Ended::ByPeer { unconsumed: 0 }),
            "{ended:?}"
        );
        assert_eq!(protocol.0, [bytes]);
        assert_eq!(protocol.0[0].capacity(), protocol.0[0].len());
        writing.join().expect("the peer");
    });
}

#[test]
fn threads_for_large_messages_are_as_many_as_the_others() {
    let options = WorkerOptions {
        threads: 2,
        ..WorkerOptions::default()
    };
    let workers = Workers::start(options).expect("threads");
    let (sender, names) = std::sync::mpsc::channel();
    for _ in 0..5 {
        let sender = sender.clone();
        let name = async move {
            let name = std::thread::current().name().map(str::to_owned);
            sender.send(name.expect("named")).expect("the test waits");
        };
        workers.spawn_bulk(name).expect("a thread");
    }
    let mut names: Vec<String> = names.iter().take(5).collect();
    names.sort();
    assert_eq!(names, ["bulk0", "bulk0", "bulk0", "bulk1", "bulk1"]);
}
