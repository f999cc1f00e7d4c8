//! One flush for several tasks: their common write to a receiver, and sends that it does not delay.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use crosstie_transport::{Connection, uncork, uncork_all, uncork_soon};
use tokio::runtime::Handle;

use crate::rig::{append, generous, pair, pattern, run, until, waiting};

/// The number of peers with new bytes, without those that had some before.
fn arrived(peers: &mut [(Arc<Connection>, UnixStream)]) -> usize {
    let mut count = 0;
    for (_, peer) in peers {
        count += usize::from(!waiting(peer).is_empty());
    }
    count
}

#[test]
fn ready_tasks_share_one_write() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        for part in [b"one ", b"two ", b"end."] {
            let connection = connection.clone();
            tokio::spawn(async move {
                assert_eq!(append(&connection, part), Ok(()));
                uncork_soon();
            });
        }
        let mut came = Vec::new();
        until(|| {
            came = waiting(&mut peer);
            !came.is_empty()
        })
        .await;
        assert_eq!(came, b"one two end.");
    });
}

#[test]
fn other_sends_are_not_delayed() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        assert_eq!(append(&connection, b"one "), Ok(()));
        uncork_soon();
        assert_eq!(waiting(&mut peer), b"");
        let runtime = Handle::current();
        let other = connection.clone();
        let said = thread::spawn(move || {
            let _context = runtime.enter();
            assert_eq!(append(&other, b"two "), Ok(()));
            uncork_all();
        });
        said.join().expect("no panic");
        assert_eq!(waiting(&mut peer), b"one two ");
        // Nor are this thread's other bytes delayed.
        assert_eq!(append(&connection, b"end."), Ok(()));
        uncork();
        assert_eq!(waiting(&mut peer), b"end.");
    });
}

#[test]
fn large_appends_are_not_set_aside() {
    run(async {
        let (connection, mut peer) = pair(&generous());
        uncork();
        assert_eq!(append(&connection, &pattern(65 * 1024)), Ok(()));
        uncork_soon();
        // As much as the socket takes.
        assert!(!waiting(&mut peer).is_empty());
        // Nor do many receivers.
        let mut many: Vec<_> = (0..100).map(|_| pair(&generous())).collect();
        for (connection, _) in &many {
            assert_eq!(append(connection, b"one"), Ok(()));
            uncork_soon();
        }
        assert_eq!(arrived(&mut many), 64);
        tokio::task::yield_now().await;
        assert_eq!(arrived(&mut many), 36);
    });
}
