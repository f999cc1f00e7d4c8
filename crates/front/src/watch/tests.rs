//! The memory of watched connections.

use crosstie_transport::{Account, ConnectionLimits, PeerAddress};

use super::*;

fn connection() -> Arc<Connection> {
    let limits = ConnectionLimits {
        queue_bytes_max: 1 << 20,
        stall_max: Duration::MAX,
        message_max: Duration::MAX,
        bytes_per_second_min: 0,
        account: Arc::new(Account::new(1 << 20)),
    };
    let peer = PeerAddress::Unix(None);
    let limits = Arc::new(limits);
    Arc::new(Connection::mailbox(peer, None, usize::MAX, limits))
}

#[test]
fn an_idle_connection_costs_little() {
    assert_eq!(size_of::<Watched>(), 32);
}

#[test]
fn connections_that_have_left_leave_no_places() {
    let (watch, connection) = (Watch::default(), connection());
    let places_after = |watch: &Watch| {
        watch.sweep(0, false);
        let entries = watch.entries.lock();
        (entries.len(), entries.capacity())
    };
    let add = |_| watch.add(Arc::clone(&connection), 0, Duration::MAX);
    let keys: Vec<_> = (0..5_000).map(add).collect();
    let (len, places) = places_after(&watch);
    assert_eq!(len, 5_000);
    assert!(places >= 5_000);
    let stays = 300;
    let leaving = keys.into_iter().filter(|key| *key != stays);
    leaving.for_each(|key| watch.remove(key));
    assert_eq!(places_after(&watch), (1, stays + 1));
    watch.remove(stays);
    assert_eq!(places_after(&watch), (0, 0));
}
