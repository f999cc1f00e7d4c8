//! Tickets of which only a hash is stored.

use crosstie_auth::wamp::{ErrorTexts, Methods, Ticket, TicketHash, Tickets};

use crate::script::check;

/// Hashes of `hunter2`, made by argon2-cffi and Python's hashlib.
const HASHES: [&str; 4] = [
    "sha256:f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7",
    "$argon2id$v=19$m=64,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$z7ZzNFNWTiTbITPVfIuYm/j5mJTlyIzyrywGnvz8YxI",
    "$argon2id$v=19$m=64,t=1,p=2$MDEyMzQ1Njc4OWFiY2RlZg$Z/AiQv6Q9SdYi3IEwKLpBrX5LdRuIgbM",
    "$pbkdf2-sha256$i=1000$MDEyMzQ1Njc4OWFiY2RlZg$pj4T35D2v4tYmC1sTJ1y5tcMADOdtnQGvuHmyYDQh2g",
];

fn methods(hash: &str) -> Methods {
    let mut principals = Tickets::default();
    let hash = TicketHash::parse(hash).expect("is one");
    principals.insert_hash("joe", hash, Some("user"));
    Methods {
        ticket: Some(Ticket::Static {
            principals: principals.into(),
            default_role: None,
        }),
        ..Methods::default()
    }
}

/// The operator's check of a ticket.
#[test]
fn a_ticket_is_right_or_not() {
    for hash in HASHES {
        let mut principals = Tickets::default();
        let hash = TicketHash::parse(hash).expect("is one");
        principals.insert_hash("joe", hash, None);
        for (authid, ticket, is_right) in [
            ("joe", "hunter2", Some(true)),
            ("joe", "hunter3", Some(false)),
            ("zed", "hunter2", None),
        ] {
            assert_eq!(principals.is_right(authid, ticket), is_right, "{authid}");
        }
    }
}

/// A slow hash is compared on another thread, also for unknown principals.
#[test]
fn a_hash_lets_in() {
    for hash in HASHES {
        let step = match hash.starts_with("sha256") {
            true => "",
            false => "< derive\n> key\n",
        };
        let refused = |cause| {
            format!(
                "{step}< refuse wamp.error.not_authorized ({cause}): the authid or its credentials are not valid"
            )
        };
        check(
            &methods(hash),
            &format!(
                "> hello methods=ticket authid=joe
                 < challenge ticket {{}}
                 > authenticate hunter2
                 {step}< accept realm1 joe user ticket static {{}}
                 > hello methods=ticket authid=joe
                 < challenge ticket {{}}
                 > authenticate hunter3
                 {}
                 > hello methods=ticket authid=zed
                 < challenge ticket {{}}
                 > authenticate hunter2
                 {}",
                refused("wrong_ticket"),
                refused("unknown_principal"),
            ),
        );
    }
}

#[test]
fn nothing_comes_between_a_ticket_and_its_hash() {
    let methods = Methods {
        error_texts: ErrorTexts::Crossbar,
        ..methods(HASHES[1])
    };
    check(
        &methods,
        "> hello methods=ticket authid=joe
         < challenge ticket {}
         > authenticate hunter2
         < derive
         > authenticate hunter2
         < not due
         > key
         < accept realm1 joe user ticket static {}
         > hello methods=ticket authid=zed
         < refuse wamp.error.not_authorized (unknown_principal): no principal with authid \"zed\" exists",
    );
}

#[test]
fn hashes_are_written_as_they_are_read() {
    for hash in HASHES {
        let parsed = TicketHash::parse(hash).expect("is one");
        assert_eq!(parsed.to_string(), hash);
        let shown = format!("{parsed:?}");
        assert!(
            !shown.contains("MDEy") && !shown.contains("f52f"),
            "{shown}"
        );
    }
    let made = TicketHash::of("hunter2", [7; 16]);
    assert_eq!(TicketHash::parse(&made.to_string()), Ok(made));
}

#[test]
fn malformed_hashes() {
    let salt = "$MDEyMzQ1Njc4OWFiY2RlZg";
    let hash = "$z7ZzNFNWTiTbITPVfIuYm/j5mJTlyIzyrywGnvz8YxI";
    for (text, expected) in [
        ("", "expected sha256:"),
        ("hunter2", "expected sha256:"),
        ("sha256:00", "expected sha256:"),
        ("$argon2id$v=19$m=64,t=2,p=1", "expected sha256:"),
        (
            &format!("$argon2id$v=19$m=64,t=2,p=1{salt}"),
            "expected sha256:",
        ),
        (
            &format!("$argon2id$v=19$m=64,t=2,p=1{salt}$MDEy"),
            "expected sha256:",
        ),
        (
            &format!("$argon2id$m=64,t=2,p=1{salt}{hash}"),
            "expected argon2id in version 19",
        ),
        (
            &format!("$argon2i$v=19$m=64,t=2,p=1{salt}{hash}"),
            "expected argon2id in version 19",
        ),
        (
            &format!("$argon2id$v=19$m=7,t=2,p=1{salt}{hash}"),
            "expected m=8",
        ),
        (
            &format!("$argon2id$v=19$m=8,t=2,p=2{salt}{hash}"),
            "expected m=8",
        ),
        (
            &format!("$argon2id$v=19$m=64,t=2{salt}{hash}"),
            "expected m=8",
        ),
        (
            &format!("$argon2id$v=19$m=64,t=65,p=1{salt}{hash}"),
            "expected m=8",
        ),
        (&format!("$pbkdf2-sha256$i=0{salt}{hash}"), "expected i=1"),
        (
            &format!("$pbkdf2-sha256$rounds=1{salt}{hash}"),
            "expected i=1",
        ),
    ] {
        let found = TicketHash::parse(text).map_or_else(|e| e.to_string(), |_| String::new());
        assert!(
            found.starts_with(&format!("ticket_hash: {expected}")),
            "{text}: {found}"
        );
    }
}
