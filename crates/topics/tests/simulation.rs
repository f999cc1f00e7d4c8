//! Clients, connections and a store that fail at random, from a seed.
//!
//! Publishers and subscribers keep their sessions. Connections are cut, taken over, and do not take messages for a while;
//! the node restarts with what was committed. At the end, all that was acknowledged has arrived: QoS 1 at least once, QoS
//! 2 exactly once, in the publisher's order for each topic. Then all sessions end, and nothing may be left.

#[path = "script/store.rs"]
mod store;

#[path = "simulation/client.rs"]
mod client;
#[path = "simulation/network.rs"]
mod network;
#[path = "simulation/world.rs"]
mod world;

#[test]
fn what_was_acknowledged_arrives() {
    let mut totals = world::Totals::default();
    for seed in 0..120 {
        world::World::new(seed).play(&mut totals);
    }
    // All that may go wrong has gone wrong.
    assert!(totals.restarts > 100, "{totals:?}");
    assert!(totals.cuts > 1_000, "{totals:?}");
    assert!(totals.failures > 200, "{totals:?}");
    assert!(totals.taken_over > 300, "{totals:?}");
    assert!(totals.repeated > 300, "{totals:?}");
    assert!(totals.acknowledged > 5_000, "{totals:?}");
}
