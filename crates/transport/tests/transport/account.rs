//! The account of all connections: its entries, their refunds, and the debtors closed at its bound.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bytes::Bytes;
use crosstie_transport::{
    Account, Connection, ConnectionLimits, Filter, Filtered, Kind, Refused, StageError, pump,
    uncork,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{
    Items, append, framed, generous, limits, pair, pair_with, pattern, received, run, settle,
    stream, until,
};

/// A peer that takes nothing, with so many bytes waiting.
fn deaf(limits: &Arc<ConnectionLimits>, bytes: usize) -> (Arc<Connection>, UnixStream) {
    let (connection, peer) = pair(limits);
    assert_eq!(append(&connection, &pattern(bytes)), Ok(()));
    uncork();
    (connection, peer)
}

#[test]
fn the_largest_debtor_pays() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let closed = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&closed);
        limits.account.set_on_debtor(move |connection, debt| {
            assert!(!connection.is_closed());
            told.lock().push(debt.bytes());
        });
        let small: Vec<_> = (0..8).map(|_| deaf(&limits, 20_000)).collect();
        let large = deaf(&limits, 300_000);
        let (largest, _peer) = deaf(&limits, 500_000);
        assert!(!largest.is_closed(), "there is room");
        // A connection with a small debt comes last.
        let last = deaf(&limits, 200_000);
        assert!(largest.is_closed());
        for (connection, _) in small.iter().chain([&large, &last]) {
            assert_eq!(append(connection, &[0]), Ok(()));
        }
        assert_eq!(limits.account.debtors_closed(), 1);
        let told = closed.lock().clone();
        assert!(told.len() == 1 && told[0] >= 400_000, "{told:?}");
        assert!(limits.account.total_bytes() < (1 << 20) / 10 * 9);
    });
}

#[test]
fn senders_that_can_wait_wait_for_room() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let (large, peer) = deaf(&limits, 900_000);
        let (brisk, _brisk_peer) = pair(&limits);
        assert!(brisk.is_room_short(1));
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let brisk = Arc::clone(&brisk);
                tokio::spawn(async move { brisk.room(1).await })
            })
            .collect();
        settle().await;
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
        large.finish();
        assert_eq!(received(peer).await.len(), 900_000);
        for waiting in waiting {
            waiting.await.expect("no panic");
        }
        brisk.hold(1_000_000);
        assert!(!brisk.is_room_short(1 << 30), "waiting frees no state");
        assert_eq!(limits.account.debtors_closed(), 0);
    });
}

#[test]
fn small_debtors_are_not_chosen() {
    run(async {
        let limits = limits(1 << 30, 100_000);
        let pairs: Vec<_> = (0..110).map(|_| pair(&limits)).collect();
        pairs
            .iter()
            .for_each(|(connection, _)| connection.hold(999));
        uncork();
        assert_eq!(limits.account.debtors_closed(), 0);
    });
}

#[test]
fn shared_bytes_are_charged_once() {
    run(async {
        let limits = generous();
        let event = limits.account.share(pattern(100_000));
        let pairs: Vec<_> = (0..20).map(|_| pair(&limits)).collect();
        for (connection, _) in &pairs {
            assert_eq!(connection.append_shared(&event).map(drop), Ok(()));
        }
        drop(event);
        uncork();
        assert_eq!(limits.account.bytes(Kind::Shared), 100_000);
        for (connection, _) in &pairs {
            assert_eq!(connection.debt().shared_bytes, 100_000);
        }
        assert!(limits.account.bytes(Kind::Queued) < 20_000);
        for (connection, peer) in pairs {
            assert_eq!(limits.account.bytes(Kind::Shared), 100_000);
            match Arc::as_ptr(&connection).addr() % 32 < 16 {
                true => connection.close(),
                false => {
                    connection.finish();
                    assert_eq!(received(peer).await.len(), 100_000);
                }
            }
        }
        until(|| limits.account.total_bytes() == 0).await;
    });
}

#[test]
fn short_shared_bytes_are_copied_for_each_receiver() {
    let account = Arc::new(Account::new(1 << 20));
    let event = account.share(pattern(1000));
    assert_eq!((&event[..], account.total_bytes()), (&pattern(1000)[..], 0));
}

#[test]
fn held_state_is_a_debt_too() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let (debtor, _peer) = pair(&limits);
        debtor.hold(2_000_000);
        debtor.hold(-500_000);
        assert_eq!(debtor.debt().state_bytes, 1_500_000);
        uncork();
        assert!(debtor.is_closed());
        assert_eq!(
            limits.account.bytes(Kind::State),
            1_500_000,
            "held until its holders release it"
        );
        // Bytes that are being sent do not cause others to be closed.
        let (other, _other_peer) = deaf(&limits, 300_000);
        limits.account.choose();
        assert!(!other.is_closed());
        drop(debtor);
        assert_eq!(limits.account.bytes(Kind::State), 0);
    });
}

/// Holds so many bytes from the first message on, until it is asked to give them up.
struct Remembering {
    bytes: usize,
    held: isize,
    told: isize,
}

impl Filter for Remembering {
    fn send(&mut self, queued: &[u8], out: &mut Filtered<'_>) -> Result<(), StageError> {
        self.held = self.bytes as isize;
        out.append(queued);
        Ok(())
    }

    fn take_growth(&mut self) -> isize {
        let before = std::mem::replace(&mut self.told, self.held);
        self.told - before
    }

    fn give_up(&mut self) {
        self.held = 0;
    }

    fn give_up_unused(&mut self, now_s: u32) {
        if now_s > 100 {
            self.held = 0;
        }
    }
}

#[test]
fn the_largest_debtor_gives_up_its_state_before_any_is_closed() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let sizes = [50_000, 300_000, 450_000];
        let pairs = sizes.map(|bytes| {
            let (connection, peer) = pair(&limits);
            connection.set_filter(Arc::new(Mutex::new(Remembering {
                bytes,
                held: 0,
                told: 0,
            })));
            assert_eq!(append(&connection, &[1]), Ok(()));
            uncork();
            (connection, peer)
        });
        let held = || {
            let debts = pairs.iter().map(|(connection, _)| connection.debt());
            debts.map(|debt| debt.state_bytes).collect::<Vec<_>>()
        };
        assert_eq!(held(), sizes);
        let _deaf = deaf(&limits, 300_000);
        assert_eq!(held(), [50_000, 300_000, 0]);
        assert_eq!(limits.account.debtors_closed(), 0);
        pairs[0].0.give_up_unused(100);
        assert_eq!(held(), [50_000, 300_000, 0]);
        pairs[0].0.give_up_unused(101);
        assert_eq!(held(), [0, 300_000, 0]);
        // The others go before a connection does, too.
        let _deaf = deaf(&limits, 500_000);
        assert_eq!(held(), [0, 0, 0]);
        assert_eq!(limits.account.debtors_closed(), 0);
    });
}

#[test]
fn large_debtors_get_no_more_beyond_the_bound() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let (debtor, _peer) = deaf(&limits, 900_000);
        let (other, _other_peer) = deaf(&limits, 1000);
        other.hold(2_000_000);
        assert_eq!(append(&debtor, &[0]), Err(Refused::Full));
        let (brisk, _) = pair(&limits);
        assert_eq!(
            append(&brisk, &[0]),
            Ok(()),
            "peers that read are not affected"
        );
        uncork();
        assert!(other.is_closed());
    });
}

/// Events of some connections.
#[derive(Clone, Debug)]
enum Step {
    Append(usize, usize),
    Share(Vec<usize>, usize),
    Hold(usize, usize),
    LetGo(usize),
    Read(usize, usize),
    Uncork,
    Finish(usize),
    Close(usize),
}

const CONNECTIONS: usize = 6;

fn step() -> impl Strategy<Value = Step> {
    let one = 0..CONNECTIONS;
    prop_oneof![
        6 => (one.clone(), 0..60_000usize).prop_map(|(one, bytes)| Step::Append(one, bytes)),
        4 => (prop::collection::vec(one.clone(), 1..6), 0..20_000usize)
            .prop_map(|(of, bytes)| Step::Share(of, bytes)),
        2 => (one.clone(), 0..5000usize).prop_map(|(one, bytes)| Step::Hold(one, bytes)),
        1 => one.clone().prop_map(Step::LetGo),
        4 => (one.clone(), 1..100_000usize).prop_map(|(one, bytes)| Step::Read(one, bytes)),
        4 => Just(Step::Uncork),
        1 => one.clone().prop_map(Step::Finish),
        1 => one.prop_map(Step::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_charge_is_refunded(steps in prop::collection::vec(step(), 1..80)) {
        run(async {
            let limits = limits(200_000, 400_000);
            let mut pairs: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let (connection, peer) = pair(&limits);
                    (connection, stream(peer), 0)
                })
                .collect();
            for step in steps {
                match step {
                    Step::Append(one, bytes) => {
                        let _ = append(&pairs[one].0, &pattern(bytes));
                    }
                    Step::Share(of, bytes) => {
                        let event: Bytes = limits.account.share(pattern(bytes));
                        for one in of {
                            let _ = pairs[one].0.append_shared(&event);
                        }
                    }
                    Step::Hold(one, bytes) => {
                        pairs[one].0.hold(bytes as isize);
                        pairs[one].2 += bytes;
                    }
                    Step::LetGo(one) => {
                        let held = std::mem::take(&mut pairs[one].2);
                        pairs[one].0.hold(-(held as isize));
                    }
                    Step::Read(one, bytes) => {
                        let mut buffer = vec![0; bytes];
                        let _ = pairs[one].1.try_read(&mut buffer);
                        settle().await;
                    }
                    Step::Uncork => uncork(),
                    Step::Finish(one) => pairs[one].0.finish(),
                    Step::Close(one) => pairs[one].0.close(),
                }
                let debts: Vec<_> = pairs.iter().map(|(c, ..)| c.debt()).collect();
                let sum = |of: fn(&crosstie_transport::Debt) -> usize| debts.iter().map(of).sum();
                let (queued, state): (usize, usize) = (sum(|d| d.queued_bytes), sum(|d| d.state_bytes));
                assert_eq!(limits.account.bytes(Kind::Queued), queued);
                assert_eq!(limits.account.bytes(Kind::State), state);
                let kinds: usize = Kind::ALL.map(|kind| limits.account.bytes(kind)).iter().sum();
                assert_eq!(limits.account.total_bytes(), kinds);
            }
            for (connection, mut peer, held) in pairs {
                connection.hold(-(held as isize));
                connection.finish();
                let _ = peer.read_to_end(&mut Vec::new()).await;
            }
            uncork();
            until(|| limits.account.total_bytes() == 0).await;
        });
    }
}

/// A reader of items, fed with `bytes`.
async fn fed(
    limits: &Arc<ConnectionLimits>,
    bytes: &[u8],
) -> (Arc<Connection>, tokio::net::UnixStream) {
    let (connection, peer) = pair_with(None, limits, 1 << 20);
    let reader = Arc::clone(&connection);
    tokio::spawn(async move {
        let mut items = Items {
            tells: true,
            ..Items::default()
        };
        let _ = pump(&reader, &mut items).await;
    });
    let mut peer = stream(peer);
    peer.write_all(bytes).await.expect("taken");
    settle().await;
    (connection, peer)
}

#[test]
fn incomplete_messages_are_charged() {
    run(async {
        let limits = generous();
        let item = framed(&[pattern(300_000)]);
        let (connection, mut peer) = fed(&limits, &item[..200_000]).await;
        let input = || limits.account.bytes(Kind::Input);
        until(|| input() >= 199_000).await;
        assert!(input() < 420_000);
        assert_eq!(connection.debt().input_bytes, input());
        peer.write_all(&item[200_000..]).await.expect("taken");
        until(|| input() == 0).await;
        // A small part of the next item, and the end with it.
        peer.write_all(&item[..5000]).await.expect("taken");
        until(|| input() > 0).await;
        drop(peer);
        until(|| input() == 0).await;
        connection.note_partial(70_000);
        assert_eq!((input(), connection.debt().input_bytes), (70_000, 70_000));
        connection.note_partial(0);
        assert_eq!(input(), 0);
    });
}

#[test]
fn an_endless_message_makes_its_sender_a_debtor() {
    run(async {
        let limits = limits(1 << 30, 1 << 20);
        let item = framed(&[pattern(2_000_000)]);
        let (small, _small_peer) = fed(&limits, &item[..300_000]).await;
        let (large, mut peer) = fed(&limits, &item[..500_000]).await;
        assert!(!large.is_closed());
        let _ = peer.write_all(&item[500_000..1_500_000]).await;
        until(|| large.is_closed()).await;
        assert!(!small.is_closed());
        until(|| limits.account.bytes(Kind::Input) < 500_000).await;
    });
}
