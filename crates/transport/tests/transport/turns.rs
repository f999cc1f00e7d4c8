//! Turns: an input that is worth more than one turn continues after the turns of others.

use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;

use crosstie_transport::{Ended, Outcome, Protocol, pump};
use parking_lot::Mutex;

use crate::rig::{END, generous, inverted, inverting, pair, pair_with, pattern, run, settle};

/// Takes so many bytes a turn and notes whose they were; reports the last of them only after one more, empty input.
struct Portions {
    who: char,
    portion: usize,
    turns: Arc<Mutex<String>>,
    taken: Vec<u8>,
    owes_a_turn: bool,
}

impl Protocol for Portions {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        self.turns.lock().push(self.who);
        let consumed = input.len().min(self.portion);
        self.taken.extend_from_slice(&input[..consumed]);
        self.owes_a_turn = consumed > 0;
        match self.owes_a_turn {
            true => Outcome::Yield { consumed },
            false => Outcome::consumed(consumed),
        }
    }
}

fn portions(who: char, portion: usize, turns: &Arc<Mutex<String>>) -> Portions {
    Portions {
        who,
        portion,
        turns: Arc::clone(turns),
        taken: Vec::new(),
        owes_a_turn: false,
    }
}

#[test]
fn nothing_is_lost_or_handled_twice() {
    for (portion, length) in [(1, 50), (1000, 200_000), (usize::MAX, 200_000)] {
        for has_stage in [false, true] {
            run(async {
                let stage = if has_stage { inverting() } else { None };
                let (connection, mut peer) = pair_with(stage, &generous(), 1 << 16);
                let bytes: Vec<u8> = pattern(length).into_iter().map(|o| o.max(10)).collect();
                let mut sent = match has_stage {
                    true => [&inverted(&bytes)[..], &[END]].concat(),
                    false => bytes.clone(),
                };
                let mut protocol = portions('a', portion, &Arc::default());
                let (ended, ()) = tokio::join!(pump(&connection, &mut protocol), async {
                    while !sent.is_empty() {
                        if let Ok(count) = peer.write(&sent) {
                            sent.drain(..count);
                        }
                        settle().await;
                    }
                    if !has_stage {
                        peer.shutdown(Shutdown::Write).expect("shut down");
                    }
                });
                let is_whole = matches!(ended, Ended::ByPeer { unconsumed: 0 });
                assert!(is_whole, "{ended:?}");
                assert!(protocol.taken == bytes, "{portion} of {length}");
                assert!(!protocol.owes_a_turn, "the turn with nothing was not given");
            });
        }
    }
}

#[test]
fn others_have_their_turns_between() {
    run(async {
        let (long, mut long_peer) = pair(&generous());
        let (short, mut short_peer) = pair(&generous());
        long_peer.write_all(&[b'x'; 6]).expect("sent");
        short_peer.write_all(b"y").expect("sent");
        drop((long_peer, short_peer));
        let turns = Arc::default();
        let mut a = portions('a', 1, &turns);
        let mut b = portions('b', 1, &turns);
        tokio::join!(pump(&long, &mut a), pump(&short, &mut b));
        let turns = turns.lock();
        assert_eq!(turns[..4].matches('b').count(), 2, "{turns}");
        assert_eq!(turns.matches('a').count(), 7, "{turns}");
    });
}

#[test]
fn a_closed_connection_has_no_more_turns() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        peer.write_all(&[b'x'; 100]).expect("sent");
        let mut protocol = portions('a', 1, &Arc::default());
        let (ended, ()) = tokio::join!(pump(&connection, &mut protocol), async {
            connection.close();
        });
        assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
        assert!(protocol.taken.len() < 100, "{}", protocol.taken.len());
    });
}

#[test]
fn a_paused_connection_keeps_its_turn_for_later() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        peer.write_all(&[b'x'; 100]).expect("sent");
        let turns: Arc<Mutex<String>> = Arc::default();
        let mut protocol = portions('a', 1, &turns);
        tokio::join!(pump(&connection, &mut protocol), async {
            connection.pause_reading();
            settle().await;
            let before = turns.lock().len();
            assert!(before < 50, "{before} turns while it is paused");
            settle().await;
            assert_eq!(turns.lock().len(), before);
            connection.resume_reading();
            drop(peer);
        });
        assert_eq!(protocol.taken.len(), 100);
    });
}
