//! Runs every case of `tests/scripts/*.txt` against a vhost.
//!
//! A case begins with `== its name`. Each input line is followed by all the outputs it must
//! cause, each receiver's in order; an output that no line names is a failure, and so is a line
//! without its output.
//!
//! ```text
//! vhost queues_max=1 consumer_timeout=100ms        how it is set up, before anything else
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
//! store manual                                     nothing is committed any more, except by:
//! commit                                           or: commit fails
//! work manual                                      what inputs leave for later stays, until `work`
//! restart                                          everything is lost that was not committed
//! rest                                             it ends in good order, and starts again
//! copy                                             it starts again with a copy of the store
//! holds ready=1 unacked=0 queues=1                 and other counts
//! purge q 1                                        an operator; that many messages go
//! delete q 1
//! A: close                                         A2: close is the channel alone
//! ```
//!
//! `#x` stands for any one word, which is bound to `x` at its first time; `*` for any one word,
//! and `…` for the rest. At the end of each case everyone leaves, and all queues are deleted: no
//! byte of memory may be held then.

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
