//! Delays: answers to wrong guesses are delayed, answers to right credentials are not.

use std::net::IpAddr;

use crosstie_auth::{Guess, Guesses, Origin};

const DELAY_MAX_MS: u64 = 2_000;

fn guess<'g>(address: &str, authid: &'g str) -> Guess<'g> {
    let address: IpAddr = address.parse().expect("an address");
    Guess {
        origin: Origin::of(address),
        authid,
        credentials: None,
    }
}

#[test]
fn origins_of_attempts() {
    let origin = |address: &str| Origin::of(address.parse().expect("an address"));
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

/// Each row: the failures before and their number, the failing attempt, and the delay of its answer.
#[test]
fn failures_of_an_origin_and_of_an_authid_count() {
    for (before, times, now, expected_ms) in [
        (("10.0.0.1", "joe"), 2, ("10.0.0.1", "joe"), 0),
        (("10.0.0.1", "joe"), 3, ("10.0.0.1", "joe"), 100),
        (("10.0.0.1", "joe"), 3, ("10.0.0.1", "ann"), 100),
        (("10.0.0.1", "joe"), 5, ("10.9.9.9", "joe"), 400),
        (("10.0.0.1", "joe"), 5, ("10.9.9.9", "ann"), 0),
        (("10.0.0.1", "joe"), 60, ("10.0.0.1", "joe"), 2_000),
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
fn places_are_bounded() {
    for (address, authids, count, may) in [
        ("10.0.0.1", 1, 3 + 7, true),
        ("10.0.0.1", 1, 3 + 8, false),
        ("10.0.0.1", 100, 3 + 23, true),
        ("10.0.0.1", 100, 3 + 24, false),
        ("127.0.0.1", 1, 1_000, true),
    ] {
        let mut guesses = Guesses::new(DELAY_MAX_MS);
        for number in 0..count {
            let authid = format!("joe{}", number % authids);
            guesses.note_wrong(0, guess(address, &authid));
        }
        let here = guess(address, "joe0");
        assert_eq!(
            guesses.may_look(0, here),
            may,
            "{address} {authids} {count}"
        );
        assert!(
            guesses.may_look(0, guess("10.9.9.9", "joe0")),
            "from elsewhere"
        );
        assert!(
            guesses.may_look(DELAY_MAX_MS, here),
            "when they have waited"
        );
        assert_eq!(guesses.waiting(), 0);
    }
}

#[test]
fn guesses_from_many_origins_lock_out_guessers_only() {
    let mut guesses = Guesses::new(DELAY_MAX_MS);
    for number in 0..200_u8 {
        let address = format!("10.0.0.{number}");
        guesses.note_wrong(0, guess(&address, "joe"));
    }
    assert!(!guesses.may_look(0, guess("10.0.0.7", "joe")));
    assert!(guesses.may_look(0, guess("10.0.0.7", "ann")));
    assert!(guesses.may_look(0, guess("10.9.9.9", "joe")));
}

#[test]
fn remembered_keys_are_bounded() {
    let mut guesses = Guesses::new(DELAY_MAX_MS);
    for number in 0..150_000_u32 {
        let address = IpAddr::from(number.to_be_bytes());
        let origin = Origin::of(address);
        let guess = Guess {
            origin,
            authid: "joe",
            credentials: Some(number.into()),
        };
        guesses.note_wrong(0, guess);
        guesses.note_right(0, guess);
        // Origins, credentials and logins, twice as many as a table holds, and one authid.
        assert!(guesses.remembered() <= 3 * 20_000 + 1);
    }
    assert_eq!(guesses.waiting(), 100_000);
    let nobody = guess("10.9.9.9", "");
    assert!(guesses.may_look(2 * DELAY_MAX_MS, nobody));
    assert_eq!(guesses.waiting(), 0);
}

#[test]
fn a_maximum_of_zero_delays_no_answer() {
    let mut guesses = Guesses::new(0);
    let joe = guess("10.0.0.1", "joe");
    assert!((0..1_000).all(|_| guesses.note_wrong(0, joe) == 0 && guesses.may_look(0, joe)));
}

/// A client that retries an old password, as many do behind one address.
#[test]
fn the_same_wrong_password_again_takes_no_place() {
    let mut guesses = Guesses::new(DELAY_MAX_MS);
    let old = |credentials| Guess {
        credentials: Some(credentials),
        ..guess("10.0.0.1", "joe")
    };
    for number in 0..1_000 {
        assert!(guesses.may_look(0, old(1)));
        let delay_ms = guesses.note_wrong(0, old(1));
        assert_eq!(delay_ms > 0, number >= 3, "it is told late all the same");
    }
    assert_eq!(guesses.waiting(), 0);
    assert!(guesses.may_look(0, old(2)), "the right one");
    (10..18).for_each(|other| {
        guesses.note_wrong(0, old(other));
    });
    assert!(!guesses.may_look(0, old(2)), "other ones are guesses");
    assert!(guesses.may_look(0, old(1)), "and that one is none");
}

/// Each row: the user whose passwords are guessed from an address, and the user that may log in from there.
#[test]
fn guesses_do_not_lock_out_users_with_a_recent_login() {
    for (guessed, who, may) in [
        (vec!["ann", "joe", "eve"], "bob", true),
        (vec!["ann", "joe", "eve"], "sue", false),
        (vec!["ann", "joe"], "sue", true),
        (vec!["bob"], "sue", true),
        // Guesses at the authid of this login itself are bounded.
        (vec!["bob"], "bob", false),
    ] {
        let mut guesses = Guesses::new(DELAY_MAX_MS);
        guesses.note_right(0, guess("10.0.0.1", "bob"));
        for authid in &guessed {
            while guesses.may_look(0, guess("10.0.0.1", authid)) {
                guesses.note_wrong(0, guess("10.0.0.1", authid));
            }
        }
        assert_eq!(
            guesses.may_look(0, guess("10.0.0.1", who)),
            may,
            "{guessed:?} {who}"
        );
    }
}

/// A guesser that does not wait for answers, for five minutes: as many guesses as there are places in each delay.
#[test]
fn guesses_checked_in_five_minutes() {
    for (authids, per_s) in [(1, 4), (30, 12)] {
        let mut guesses = Guesses::new(DELAY_MAX_MS);
        let mut looked = 0;
        for tenth in 0..3_000_u64 {
            for authid in 0..authids {
                let name = format!("joe{authid}");
                let guess = Guess {
                    credentials: Some(tenth << 32 | authid),
                    ..guess("10.0.0.1", &name)
                };
                if guesses.may_look(tenth * 100, guess) {
                    guesses.note_wrong(tenth * 100, guess);
                    looked += 1;
                }
            }
        }
        assert!(looked <= 300 * per_s + 50, "{authids}: {looked}");
    }
}
