//! Runs every case of `tests/scripts/*.txt` against a space.
//!
//! ```text
//! space stored receive_max=2                       the configuration, before any input
//! space learns_late                                the owner of a closed connection learns of it at `A: lose`
//! A: connect v5 id=a expiry=60 clean               a connection; its client identifier is `a`, if none is given
//!    receive=2 packet=40 will=w/t:text will_qos=1 will_delay=5 will_retain will_expiry=9
//! A< connack new                                   or: present, with assigned=… and expiry=…
//! A> publish a/b text q1 1 retain expiry=10 alias=3 type=text/plain user=k:v
//! A> publish a/b text q1 1 verdict=0x87            the owner refuses it
//! A> publish a/b text q2 1 held                    the owner authorizes it at `A> authorized`
//! A> subscribe # q1 nl rap rh=2 id=7 & b verdict=0x87
//! A< suback 1 0x87
//! A> unsubscribe # b
//! A> puback 1                                      or pubrec 1 0x80, pubrel 1, pubcomp 1
//! A< publish a/b text q1 1 dup retain expiry=9 ids=7 …
//! A< closed 0x8e                                   the space has ended the connection
//! A! 0x93 …                                        a violation, at which the owner ends it
//! A> disconnect 0x04 expiry=5
//! A: lose
//! A full                                           A's connection refuses messages, until `A takes`
//! A< paused                                        or: continues
//! outside a/b text q1 retain                       a publication from outside
//! kept a/b text retain                             a message that was retained elsewhere
//! kill a                                           the session of the client identifier
//! tick 5s
//! due in 5s                                        or: due never
//! store manual                                     from now on records are committed only by `commit`
//! commit fails                                     the store keeps the records, and commits them next
//! restart                                          uncommitted records are lost
//! work manual                                      postponed work waits for `work` or `work 10`
//! holds sessions=1 queued=2                        and other counts
//! accounts A>500 B<300                             bytes on the accounts of connections
//! -< will a                                        and other outputs that go to no connection
//! ```
//!
//! The rest of the notation is that of `crosstie_script`. At the end of each case all sessions end: neither the space nor
//! the store keeps anything then.

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
    assert!(cases >= 190, "only {cases} cases");
}
