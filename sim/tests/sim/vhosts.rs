//! Plays many seeds of a vhost and its store, which crashes.

use crosstie_sim::queues::VhostSimulation;

#[test]
fn a_vhost_keeps_to_the_model_and_loses_no_committed_record() {
    crate::seeds_played::play(400, &EXPECTED, |seed, operations| {
        VhostSimulation::new(seed).run(operations)
    });
}

const EXPECTED: [&str; 23] = [
    "PRECONDITION_FAILED",
    "basic.ack",
    "basic.cancel",
    "basic.cancel-ok",
    "basic.consume-ok",
    "basic.deliver",
    "basic.get-empty",
    "basic.get-ok",
    "basic.nack",
    "basic.qos-ok",
    "basic.recover-ok",
    "basic.return",
    "confirm.select-ok",
    "exchange.declare-ok",
    "exchange.delete-ok",
    "queue.bind-ok",
    "queue.declare-ok",
    "queue.delete-ok",
    "queue.purge-ok",
    "queue.unbind-ok",
    "tx.commit-ok",
    "tx.rollback-ok",
    "tx.select-ok",
];
