//! Who guesses waits, and nobody else.

use std::net::IpAddr;

use crosstie_auth::{Admission, Attempts, Origin};

use Admission::{After, Now, Refused};

const DELAY_MAX_MS: u64 = 5_000;

fn origin(address: &str) -> Origin {
    Origin::of(address.parse::<IpAddr>().expect("an address"))
}

#[test]
fn where_somebody_comes_from() {
    for (a, b, is_same) in [
        ("127.0.0.1", "127.8.9.1", true),
        ("127.0.0.1", "::1", true),
        ("127.0.0.1", "::ffff:127.0.0.1", true),
        ("10.0.0.1", "::ffff:10.0.0.1", true),
        ("10.0.0.1", "10.0.0.2", false),
        ("2001:db8::1", "2001:db8::ffff:1", true),
        ("2001:db8::1", "2001:db8:0:1::1", false),
    ] {
        assert_eq!(origin(a) == origin(b), is_same, "{a} {b}");
    }
    assert_eq!(origin("::1"), Origin::Local);
}

/// Each row: how many failures there were, and how long the next attempt waits.
#[test]
fn each_failure_doubles_the_delay() {
    for (address, delay_max_ms, rows) in [
        (
            "10.0.0.1",
            DELAY_MAX_MS,
            &[
                (0, 0),
                (2, 0),
                (3, 100),
                (4, 200),
                (8, 3200),
                (9, 5000),
                (200, 5000),
            ][..],
        ),
        (
            "127.0.0.1",
            DELAY_MAX_MS,
            &[(2, 0), (3, 100), (5, 250), (200, 250)],
        ),
        ("127.0.0.1", 50, &[(2, 0), (3, 50)]),
        ("10.0.0.1", 0, &[(3, 0), (200, 0)]),
    ] {
        for (failures, expected_ms) in rows {
            let mut attempts = Attempts::new(delay_max_ms);
            for _ in 0..*failures {
                attempts.note_failure(0, origin(address));
            }
            let expected = match expected_ms {
                0 => Now,
                ms => After(*ms),
            };
            let found = attempts.begin(0, origin(address));
            assert_eq!(found, expected, "{address} {delay_max_ms} {failures}");
            assert_eq!(attempts.begin(0, origin("10.9.9.9")), Now, "somebody else");
        }
    }
}

#[test]
fn few_of_one_machine_wait_at_a_time() {
    let mut attempts = Attempts::new(DELAY_MAX_MS);
    for address in ["10.0.0.1", "127.0.0.1"] {
        (0..3).for_each(|_| attempts.note_failure(0, origin(address)));
    }
    for _ in 0..8 {
        assert_eq!(attempts.begin(0, origin("10.0.0.1")), After(100));
    }
    assert_eq!(attempts.begin(0, origin("10.0.0.1")), Refused);
    attempts.end_waiting(origin("10.0.0.1"));
    assert_eq!(attempts.begin(0, origin("10.0.0.1")), After(100));
    for _ in 0..1000 {
        assert_eq!(attempts.begin(0, origin("127.0.0.1")), After(100));
    }
}

#[test]
fn what_was_long_ago_is_forgotten() {
    for (after_ms, expected) in [(59_000, After(100)), (100_000, After(100)), (240_000, Now)] {
        let mut attempts = Attempts::new(DELAY_MAX_MS);
        (0..3).for_each(|_| attempts.note_failure(1_000, origin("10.0.0.1")));
        assert_eq!(
            attempts.begin(1_000 + after_ms, origin("10.0.0.1")),
            expected
        );
    }
}

#[test]
fn so_many_origins_are_remembered() {
    let mut attempts = Attempts::new(DELAY_MAX_MS);
    for number in 0..100_000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        attempts.note_failure(0, Origin::of(address));
        assert!(attempts.origins() <= 20_000);
    }
}
