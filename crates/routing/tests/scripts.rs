//! Runs every case of `tests/scripts/*.txt` against the realm.
//!
//! A case begins with `== its name`. Each input line is followed by all the outputs it must
//! cause, each receiver's in order; an output that no line names is a failure, and so is a line
//! without its output.
//!
//! ```text
//! realm calls_max=1 request_id_check=strict        how the realm is set up, before any join
//! permit staff prefix com.app. call,register disclose=caller
//! crossbar staff                                   its permissions are looked up in Crossbar.io's order
//! bound staff subscriptions=1 authid_sessions=2    its limits: sessions, registrations and calls, too
//! queue exact com.x 10                             calls of it wait, ten at most
//! record prefix com.app. 100 1000                  the last 100 events of the last 1,000 ms
//! authorizer asked com.ask scope=session           or expiry_ms=…, entries_max=…: a role that is asked
//! A< ASK call com.x                                A's message waits for the answer: A says no more
//! A= allow,disclose,cache                          or: deny,cache or: fail why
//! A: join role=staff authid=ann features=callee.call_canceling
//! A> REGISTER 1 {match=prefix} com.app.            A sends
//! A< REGISTERED 1 #g                               A is sent; #g is bound here, and compared later
//! B> CALL 1 {} com.nowhere
//! B< ERROR CALL 1 {} wamp.error.no_such_procedure *
//! C> CALL 1 {progress} com.app.x [1] {"k":2}
//! C! text                                          a violation that says so; C has then left
//! B refuses full                                   full, gone, toolong, unrepresentable
//! B accepts
//! tick 100ms
//! work 4                                           so many steps of what is left to be done
//! due in 50ms                                      or: due never
//! A: leave
//! start guest                                      a role that may do everything
//! stop guest                                       it, and its sessions: A< ENDED
//! end                                              all sessions
//! A< GOODBYE wamp.close.killed why                 A is out, and its owner is to tell it so
//! stop guest 1                                     it, and those at the first place of the table
//! on 1                                             and at the next place; `on` alone: all others
//! -< NOTE RetainedEvicted 1                        what nobody is told of
//! holds sessions=1 subscriptions=0 registrations=0 calls=0
//! ```
//!
//! `#A` is the session id of A. `*` stands for any one word, and at the end for any payload.
//! At the end of each case everyone leaves, and the realm must hold nothing.

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
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut cases = 0;
    let mut failures = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        for case in script::cases(&text) {
            cases += 1;
            if let Err(failure) = script::run(&case) {
                failures.push(format!(
                    "{name}:{}: {}: {}",
                    failure.line, case.name, failure.text
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {cases} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(
        cases > 60,
        "only {cases} cases were found in {}",
        folder.display()
    );
}
