//! Runs every case of `tests/scripts/*.txt` against a vhost.
//!
//! ```text
//! vhost queues_max=1 consumer_timeout=100ms        the vhost's configuration, before any input
//! A: connect user=bob cancel_notify=no write=^x    a connection, and its channel 1, which is `A`
//! A2: open                                         another channel of it
//! A> queue.declare q durable {x-max-length=2}      A sends; `-` is the empty name
//! A< queue.declare-ok q 0 0                        A is sent
//! A>> queue.bind q amq.direct k                    sends, and takes the positive answer
//! A> publish amq.direct k text persistent expiration=60 headers={a=1}
//! A> basic.get q
//! A< get-ok 1 amq.direct k 0 text mode=2 expiration="60" headers={"a":1i32}
//! A! PRECONDITION_FAILED - unknown delivery tag 7  a fault; A's channel, or connection, has closed
//! A< closed PRECONDITION_FAILED - …                the vhost has closed the channel by itself
//! A full                                           A's connection refuses messages, until `A takes`
//! tick 100ms
//! due in 50ms                                      or: due never
//! store manual                                     from now on records are committed only by:
//! commit                                           or: commit fails
//! work manual                                      postponed work waits for `work`
//! restart                                          uncommitted records are lost
//! rest                                             the vhost ends in good order, and starts again
//! copy                                             the vhost starts again with a copy of the store
//! holds ready=1 unacked=0 queues=1                 and other counts
//! counted queue q published=1 sent=1               all its counters above 0; or: exchange, channel, type
//! purge q 1                                        an operator; that many messages go
//! trace on                                         or: trace off
//! delete q 1
//! policy p ^q {max-length=2} 1 queues               or: operator-policy, policy p gone
//! policies q p -                                   the names of a queue's policies
//! A> publish amq.topic k text retain no-room       it is retained; or: there is no room for that
//! retained k text                                  the retained message of a routing key; or: retained k -
//! A: close                                         A2: close is the channel alone
//! ```
//!
//! The rest of the notation is that of `crosstie_script`. At the end of each case all connections close, and all queues
//! and exchanges are deleted: no byte of memory may be held then.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its cases from files"
)]

mod script;

use std::fs;
use std::path::Path;

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let (mut cases, mut failures) = (0, Vec::new());
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let text = fs::read_to_string(&path).unwrap();
        cases += crosstie_script::play(&name, &text, script::Player::new, &mut failures);
    }
    failures.sort();
    assert!(
        failures.is_empty(),
        "{cases} cases:\n{}",
        failures.join("\n")
    );
    assert!(cases >= 265, "only {cases} cases");
}
