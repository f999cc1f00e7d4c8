//! The answer to a wrong guess waits; whoever is right does not.

use std::net::IpAddr;

use crosstie_auth::{Guess, Guesses, Origin};

const DELAY_MAX_MS: u64 = 5_000;

fn guess<'g>(address: &str, authid: &'g str) -> Guess<'g> {
    let address: IpAddr = address.parse().expect("an address");
    Guess {
        origin: Origin::of(address),
        authid,
    }
}

/// Each row: who failed before and how often, who fails now, and how long the answer waits.
#[test]
fn failures_of_an_origin_and_of_an_authid_count() {
    for (before, times, now, expected_ms) in [
        (("10.0.0.1", "joe"), 2, ("10.0.0.1", "joe"), 0),
        (("10.0.0.1", "joe"), 3, ("10.0.0.1", "joe"), 100),
        (("10.0.0.1", "joe"), 3, ("10.0.0.1", "ann"), 100),
        (("10.0.0.1", "joe"), 5, ("10.9.9.9", "joe"), 400),
        (("10.0.0.1", "joe"), 5, ("10.9.9.9", "ann"), 0),
        (("10.0.0.1", "joe"), 60, ("10.0.0.1", "joe"), 5_000),
        (("127.0.0.1", "joe"), 60, ("127.0.0.1", "joe"), 250),
    ] {
        let mut guesses = Guesses::new(DELAY_MAX_MS);
        for _ in 0..times {
            guesses.note_wrong(0, guess(before.0, before.1));
        }
        let found = guesses.note_wrong(0, guess(now.0, now.1));
        assert_eq!(found, expected_ms, "{before:?} {times} {now:?}");
    }
}

#[test]
fn so_many_may_wait_at_a_time() {
    for (address, authids, count, may) in [
        ("10.0.0.1", 1, 3 + 7, true),
        ("10.0.0.1", 1, 3 + 8, false),
        ("10.0.0.1", 100, 3 + 63, true),
        ("10.0.0.1", 100, 3 + 64, false),
        ("127.0.0.1", 1, 1_000, true),
    ] {
        let mut guesses = Guesses::new(DELAY_MAX_MS);
        for number in 0..count {
            let authid = format!("joe{}", number % authids);
            guesses.note_wrong(0, guess(address, &authid));
        }
        let here = guess(address, "joe0");
        assert_eq!(
            guesses.may_guess(0, here),
            may,
            "{address} {authids} {count}"
        );
        assert!(
            guesses.may_guess(0, guess("10.9.9.9", "joe0")),
            "from elsewhere"
        );
        assert!(
            guesses.may_guess(DELAY_MAX_MS, here),
            "when they have waited"
        );
        assert_eq!(guesses.waiting(), 0);
    }
}

#[test]
fn guesses_from_everywhere_keep_out_who_guesses() {
    let mut guesses = Guesses::new(DELAY_MAX_MS);
    for number in 0..200_u8 {
        let address = format!("10.0.0.{number}");
        guesses.note_wrong(0, guess(&address, "joe"));
    }
    assert!(!guesses.may_guess(0, guess("10.0.0.7", "joe")));
    assert!(guesses.may_guess(0, guess("10.0.0.7", "ann")));
    assert!(guesses.may_guess(0, guess("10.9.9.9", "joe")));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut guesses = Guesses::new(DELAY_MAX_MS);
    for number in 0..150_000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        let origin = Origin::of(address);
        guesses.note_wrong(
            0,
            Guess {
                origin,
                authid: "joe",
            },
        );
    }
    assert_eq!(guesses.waiting(), 100_000);
    let nobody = guess("10.9.9.9", "");
    assert!(guesses.may_guess(2 * DELAY_MAX_MS, nobody));
    assert_eq!(guesses.waiting(), 0);
}

#[test]
fn nobody_waits_where_that_is_said() {
    let mut guesses = Guesses::new(0);
    let joe = guess("10.0.0.1", "joe");
    assert!((0..1_000).all(|_| guesses.note_wrong(0, joe) == 0 && guesses.may_guess(0, joe)));
}
