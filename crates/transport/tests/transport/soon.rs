//! One flush for several tasks: what they say to one receiver, and what they do not keep from others.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use crosstie_transport::{Connection, uncork, uncork_all, uncork_soon};
use tokio::runtime::Handle;

use crate::rig::{append, generous, pair, pattern, run, until, waiting};

/// At how many something has arrived, not counting those who had it before.
fn arrived(peers: &mut [(Arc<Connection>, UnixStream)]) -> usize {
    let mut count = 0;
    for (_, peer) in peers {
        count += usize::from(!waiting(peer).is_empty());
    }
    count
}

#[test]
fn tasks_that_are_ready_say_it_in_one_write() {
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
fn nobody_else_waits_for_it() {
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
        // Nor does this thread, for what it says else.
        assert_eq!(append(&connection, b"end."), Ok(()));
        uncork();
        assert_eq!(waiting(&mut peer), b"end.");
    });
}

#[test]
fn much_waits_for_nobody() {
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
