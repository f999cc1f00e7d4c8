//! Connections without a socket: requests take the queue in order and within the same bounds.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use crosstie_transport::{
    Connection, ConnectionLimits, Kind, Owner, PeerAddress, Portion, Refused, Taken, uncork,
};

use crate::rig::{append, generous, limits, run};

fn mailbox(limits: &Arc<ConnectionLimits>, items_max: usize) -> Arc<Connection> {
    let peer = PeerAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 1)));
    Arc::new(Connection::mailbox(
        peer,
        None,
        items_max,
        Arc::clone(limits),
    ))
}

fn item(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn items_are_taken_one_by_one_or_all_at_once() {
    run(async {
        let connection = mailbox(&generous(), usize::MAX);
        assert_eq!(connection.take(Portion::All), Taken::Nothing);
        let long = "x".repeat(3000);
        let shared = Bytes::from(item(&long));
        assert_eq!(append(&connection, &item("one")), Ok(()));
        assert_eq!(connection.append_shared(&shared).map(drop), Ok(()));
        assert_eq!(append(&connection, &item("three")), Ok(()));
        uncork();
        assert_eq!(connection.take(Portion::Item), Taken::Bytes(item("one")));
        assert_eq!(append(&connection, &item("four")), Ok(()));
        assert_eq!(connection.take(Portion::Item), Taken::Bytes(item(&long)));
        assert_eq!(connection.take(Portion::Item), Taken::Bytes(item("three")));
        assert_eq!(append(&connection, &item("five")), Ok(()));
        let rest = [item("four"), item("five")].concat();
        assert_eq!(connection.take(Portion::All), Taken::Bytes(rest));
        assert_eq!(connection.take(Portion::All), Taken::Nothing);
    });
}

#[test]
fn a_stream_is_taken_in_portions_wherever_items_end() {
    run(async {
        let connection = mailbox(&generous(), usize::MAX);
        let portion = Portion::Bytes(1000);
        assert_eq!(connection.take(portion), Taken::Nothing);
        let shared = Bytes::from(item(&"x".repeat(3000)));
        let mut all = Vec::new();
        assert_eq!(append(&connection, &item("one")), Ok(()));
        assert_eq!(connection.append_shared(&shared).map(drop), Ok(()));
        uncork();
        all.extend([&item("one")[..], &shared, &item("three")].concat());
        let mut taken = Vec::new();
        while let Taken::Bytes(bytes) = connection.take(portion) {
            assert!(bytes.len() <= 1000);
            if taken.is_empty() {
                assert_eq!(append(&connection, &item("three")), Ok(()));
            }
            taken.extend(bytes);
        }
        assert_eq!(taken, all);
        // Bytes taken before they were offered wake no task.
        uncork();
        connection.close();
        assert_eq!(connection.take(portion), Taken::Over);
    });
}

#[test]
fn waiting_bytes_are_charged_until_taken() {
    run(async {
        let limits = limits(1 << 20, 1 << 30);
        let connection = mailbox(&limits, usize::MAX);
        assert_eq!(append(&connection, &item(&"x".repeat(5000))), Ok(()));
        uncork();
        assert!(limits.account.bytes(Kind::Queued) >= 5000);
        assert!(matches!(connection.take(Portion::All), Taken::Bytes(_)));
        assert_eq!(limits.account.total_bytes(), 0);
        assert_eq!(append(&connection, &item("one")), Ok(()));
        assert_eq!(append(&connection, &item("two")), Ok(()));
        uncork();
        assert!(matches!(connection.take(Portion::Item), Taken::Bytes(_)));
        assert!(limits.account.total_bytes() > 0);
        drop(connection);
        assert_eq!(limits.account.total_bytes(), 0);
    });
}

#[test]
fn both_bounds_are_kept() {
    run(async {
        let connection = mailbox(&limits(100, 1 << 30), 3);
        for _ in 0..3 {
            assert_eq!(append(&connection, &item("a")), Ok(()));
        }
        assert_eq!(append(&connection, &item("a")), Err(Refused::Full));
        let shared = Bytes::from(item("a"));
        assert_eq!(
            connection.append_shared(&shared).map(drop),
            Err(Refused::Full)
        );
        let parts = connection.append_parts(&[0], &[(0, &shared)], false);
        assert_eq!(parts, Err(Refused::Full));
        assert!(matches!(connection.take(Portion::Item), Taken::Bytes(_)));
        assert_eq!(append(&connection, &item("a")), Ok(()));
        assert_eq!(append(&connection, &item("a")), Err(Refused::Full));
        assert!(matches!(connection.take(Portion::Item), Taken::Bytes(_)));
        assert!(matches!(connection.take(Portion::All), Taken::Bytes(_)));
        assert!(matches!(connection.take(Portion::All), Taken::Nothing));
        // A long one is admitted to an empty queue, and then no other.
        assert_eq!(append(&connection, &item(&"x".repeat(200))), Ok(()));
        assert_eq!(append(&connection, &item("a")), Err(Refused::Full));
        // The last bytes are admitted beyond the bound.
        connection.append_last(|out| out.extend_from_slice(&item("bye")));
        assert_eq!(append(&connection, &item("a")), Err(Refused::Gone));
        let Taken::Bytes(bytes) = connection.take(Portion::All) else {
            panic!("the last words are lost");
        };
        assert!(bytes.ends_with(&item("bye")));
        assert_eq!(connection.take(Portion::All), Taken::Over);
    });
}

#[test]
fn waiting_requests_are_woken() {
    run(async {
        let connection = mailbox(&generous(), usize::MAX);
        let taking = {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move {
                let _taker = connection.taker();
                loop {
                    connection.offered(|| false).await;
                    if let Taken::Bytes(bytes) = connection.take(Portion::All) {
                        return bytes;
                    }
                }
            })
        };
        while !connection.has_taker() {
            tokio::task::yield_now().await;
        }
        assert_eq!(append(&connection, &item("news")), Ok(()));
        uncork();
        assert_eq!(taking.await.expect("it ends"), item("news"));
        assert!(!connection.has_taker());
    });
}

#[test]
fn the_end_wakes_requests_and_drops_the_queue() {
    run(async {
        let connection = mailbox(&generous(), usize::MAX);
        let ending = {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move { connection.ended().await })
        };
        tokio::task::yield_now().await;
        assert_eq!(append(&connection, &item("late")), Ok(()));
        connection.pause_reading();
        let reading = {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move { connection.reading().await })
        };
        tokio::task::yield_now().await;
        assert!(!ending.is_finished() && !reading.is_finished());
        connection.close();
        uncork();
        ending.await.expect("it ends");
        reading.await.expect("it ends");
        connection.offered(|| false).await;
        assert_eq!(connection.take(Portion::All), Taken::Over);
        assert_eq!(append(&connection, &item("a")), Err(Refused::Gone));
    });
}

/// Passes on what its mailbox receives.
struct Forwarder {
    own: Weak<Self>,
    from: OnceLock<Arc<Connection>>,
    to: OnceLock<Arc<Connection>>,
    told: AtomicUsize,
}

impl Forwarder {
    /// One that passes it on to a mailbox, or keeps it.
    fn new(to: Option<Arc<Connection>>) -> Arc<Self> {
        let forwarder = Arc::new_cyclic(|own: &Weak<Self>| Self {
            own: own.clone(),
            from: OnceLock::new(),
            to: to.map_or_else(OnceLock::new, OnceLock::from),
            told: AtomicUsize::new(0),
        });
        let owner = forwarder.own.clone();
        let from = Connection::owned_mailbox(usize::MAX, generous(), owner);
        let _ = forwarder.from.set(Arc::new(from));
        forwarder
    }

    fn mailbox(&self) -> &Arc<Connection> {
        self.from.get().expect("is set")
    }
}

impl Owner for Forwarder {
    fn peer(&self) -> PeerAddress {
        PeerAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        None
    }

    fn offered(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
        if let (Some(to), Taken::Bytes(bytes)) = (self.to.get(), self.mailbox().take(Portion::All))
        {
            assert_eq!(append(to, &bytes), Ok(()));
        }
    }

    fn resumed(&self) {}
}

#[test]
fn what_owners_append_in_a_large_fan_out_is_flushed_too() {
    run(async {
        let last: Vec<_> = (0..200).map(|_| Forwarder::new(None)).collect();
        let mailboxes = last.iter().map(|last| Arc::clone(last.mailbox()));
        let first: Vec<_> = mailboxes.map(|to| Forwarder::new(Some(to))).collect();
        for forwarder in &first {
            assert_eq!(append(forwarder.mailbox(), &item("x")), Ok(()));
        }
        uncork();
        while first
            .iter()
            .any(|first| first.told.load(Ordering::Relaxed) == 0)
        {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        for last in &last {
            assert_eq!(last.told.load(Ordering::Relaxed), 1);
        }
    });
}

#[test]
fn without_its_owner_a_mailbox_is_no_client_of_this_machine() {
    let mailbox = Connection::owned_mailbox(1, generous(), Weak::<Forwarder>::new());
    let peer = mailbox.peer();
    let is_elsewhere = |address: SocketAddr| !address.ip().is_loopback();
    assert!(matches!(peer, PeerAddress::Tcp(address) if is_elsewhere(address)));
}
