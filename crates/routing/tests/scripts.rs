//! Runs every case of `tests/scripts/*.txt` against the realm.
//!
//! ```text
//! realm calls_max=1 request_id_check=strict        the realm's configuration, before any join
//! permit staff prefix com.app. call,register disclose=caller
//! crossbar staff                                   permissions in Crossbar.io's look-up order
//! bound staff subscriptions=1 authid_sessions=2    its limits: sessions, registrations and calls, too
//! queue exact com.x 10                             a queue of ten calls
//! record prefix com.app. 100 1000                  the last 100 events of the last 1,000 ms
//! authorizer asked com.ask scope=session           or expiry_ms=…, entries_max=…: a role with an authorizer
//! A< ASK call com.x                                A's message waits for the answer: A says no more
//! A= allow,disclose,cache                          or: deny,cache or: fail why
//! A: join role=staff authid=ann features=callee.call_canceling
//! A> REGISTER 1 {match=prefix} com.app.            A sends
//! A< REGISTERED 1 #g                               A is sent; #g is bound here, and compared later
//! B> CALL 1 {} com.nowhere
//! B< ERROR CALL 1 {} wamp.error.no_such_procedure …
//! C> CALL 1 {progress} com.app.x [1] {"k":2}
//! C! text                                          a violation with this text; C has then left
//! B refuses full                                   full, gone, toolong, unrepresentable
//! B accepts
//! tick 100ms
//! work 4                                           that many steps of pending work
//! due in 50ms                                      or: due never
//! A: leave
//! start guest                                      a role that may do everything
//! stop guest                                       it, and its sessions: A< ENDED
//! end                                              all sessions
//! A< GOODBYE wamp.close.killed why                 A has left, and its owner tells it so
//! stop guest 1                                     it, and those at the first place of the table
//! on 1                                             and at the next place; `on` alone: all others
//! -< NOTE RetainedEvicted 1                        an event that the outbox counts
//! holds sessions=1 subscriptions=0 registrations=0 calls=0
//! ```
//!
//! `#A` is the session id of A. The rest of the notation is that of `crosstie_script`. At the end of each case all
//! sessions leave, and the realm must hold nothing.

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
    assert!(cases >= 373, "only {cases} cases");
}
