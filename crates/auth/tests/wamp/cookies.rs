//! Cookies: their number, their lifetime, and their lines in a file.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::cookie::{Cookies, Record, Remembered};
use crosstie_auth::wamp::{
    Anonymous, Authenticator, Channel, Method, Methods, Provider, Ticket, Tickets,
};

use crate::script::{GIVEN, check_over};

fn record(text: &str, authid: &str, created_ms: u64) -> Record {
    Record {
        text: text.to_owned(),
        created_ms,
        modified_ms: created_ms,
        max_age_s: 10,
        who: Remembered {
            realm: "realm1".to_owned(),
            authid: authid.to_owned(),
            authrole: "user".into(),
            authmethod: Method::Ticket,
            authextra: Vec::new(),
            stamp: None,
        },
    }
}

fn texts(cookies: &Cookies) -> Vec<&str> {
    cookies
        .records()
        .map(|record| record.text.as_str())
        .collect()
}

#[test]
fn the_oldest_is_evicted() {
    let mut cookies = Cookies::new(3);
    let mut gone = Vec::new();
    for (text, authid) in [
        ("a", "joe"),
        ("b", "ann"),
        ("c", "joe"),
        ("a", "joe"),
        ("d", "bob"),
    ] {
        cookies.keep(record(text, authid, 0), &mut gone);
    }
    // A renewed login is the youngest.
    assert_eq!(texts(&cookies), ["c", "a", "d"]);
    assert_eq!(
        gone.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(),
        ["b"]
    );
    assert_eq!(cookies.forget("a").map(|r| r.text).as_deref(), Some("a"));
    assert!(cookies.forget("a").is_none());
    assert!(cookies.find("made up", 0).is_none());
}

#[test]
fn logins_of_one_principal_do_not_evict_others() {
    let mut cookies = Cookies::new(1_000);
    let mut gone = Vec::new();
    cookies.keep(record("anns", "ann", 0), &mut gone);
    for number in 0..500 {
        cookies.keep(record(&format!("joes{number}"), "joe", 0), &mut gone);
    }
    assert_eq!(cookies.len(), Cookies::OF_PRINCIPAL_MAX + 1);
    assert_eq!(gone.len(), 500 - Cookies::OF_PRINCIPAL_MAX);
    assert!(cookies.find("anns", 0).is_some());
    assert!(cookies.find("joes0", 0).is_none());
    assert!(cookies.find("joes499", 0).is_some());
}

#[test]
fn none_is_good_for_longer_than_its_age() {
    let mut cookies = Cookies::new(10);
    let mut gone = Vec::new();
    cookies.keep(record("a", "joe", 1_000), &mut gone);
    assert!(cookies.find("a", 10_999).is_some());
    assert!(cookies.find("a", 11_000).is_none());
    cookies.keep(record("b", "joe", 11_000), &mut gone);
    assert_eq!(texts(&cookies), ["b"]);
}

#[test]
fn lines_of_a_file() {
    let kept = record("abc", "joe", 1_403_454_985_448);
    let mut line = Vec::new();
    kept.write(None, &mut line);
    let text = String::from_utf8(line.clone()).expect("is text");
    let expected = r#"{"cbtid":"abc","status":"modified","created":"2014-06-22T16:36:25.448Z","modified":"2014-06-22T16:36:25.448Z","deleted":null,"max_age":10,"authid":"joe","authrole":"user","authmethod":"ticket","authrealm":"realm1","authextra":{}}"#;
    assert_eq!(text.trim_end(), expected);
    assert_eq!(
        Record::read(&line),
        Some(("abc".to_owned(), Some(kept.clone())))
    );
    line.clear();
    kept.write(Some(1_403_454_985_449), &mut line);
    assert_eq!(Record::read(&line), Some(("abc".to_owned(), None)));

    // Crossbar.io's lines: before a login, after one, deleted; and malformed ones.
    let of_crossbar = r#"{"cbtid": "abc", "status": "created", "created": "2014-06-22T16:36:25.448Z", "modified": null, "deleted": null, "max_age": 10, "authid": null, "authrole": null, "authmethod": null, "authrealm": null, "authextra": null}"#;
    let nobody = Some(("abc".to_owned(), None));
    assert_eq!(Record::read(of_crossbar.as_bytes()), nobody);
    let somebody = expected.replace("\"authextra\":{}", "\"authextra\": null");
    assert_eq!(
        Record::read(somebody.as_bytes()),
        Some(("abc".to_owned(), Some(kept)))
    );
    let deleted = expected.replace(
        "\"deleted\":null",
        "\"deleted\": \"2014-06-22T16:36:26.448Z\"",
    );
    assert_eq!(Record::read(deleted.as_bytes()), nobody);
    for none in ["", "{", "[]", "{}", "{\"cbtid\": 5}", "\u{0}"] {
        assert_eq!(Record::read(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn cookies_admit_remembered_logins() {
    let who = record("abc", "joe", 0).who;
    let channel = |remembered| Channel {
        remembered,
        ..Channel::default()
    };
    let anonymous = Anonymous::Static {
        role: "guest".into(),
        realm: None,
        authid: Some("nobody".to_owned()),
    };
    let taken = Methods {
        anonymous: Some(anonymous),
        cookie: true,
        ..Methods::default()
    };
    let not_taken = Methods {
        cookie: false,
        ..taken.clone()
    };
    let known = "accept realm1 joe user ticket cookie {}";
    let guest = "accept realm2 nobody guest anonymous static {}";
    for (methods, remembered, offered, outcome) in [
        (&taken, Some(&who), "cookie,anonymous", known),
        (&taken, Some(&who), "anonymous,cookie", known),
        (&taken, Some(&who), "anonymous", guest),
        (&taken, None, "cookie,anonymous", guest),
        (&not_taken, Some(&who), "cookie,anonymous", guest),
    ] {
        let text = format!("> hello realm=realm2 methods={offered}\n< {outcome}");
        check_over(methods, GIVEN, channel(remembered), &text);
    }
    assert!(
        !Methods {
            cookie: true,
            ..Methods::default()
        }
        .is_empty()
    );
}

#[test]
fn a_logout_forgets_a_principal_a_role_or_a_realm() {
    for (whose, left) in [
        ((Some("joe"), None), ["b", "c"].as_slice()),
        ((Some("nobody"), None), &["a", "b", "c"]),
        ((None, Some("user")), &["c"]),
        ((None, Some("no such role")), &["a", "b", "c"]),
        ((None, None), &["c"]),
    ] {
        let mut cookies = Cookies::new(10);
        let mut gone = Vec::new();
        let mut elsewhere = record("c", "joe", 0);
        elsewhere.who.realm = "realm2".to_owned();
        for kept in [record("a", "joe", 0), record("b", "ann", 0), elsewhere] {
            cookies.keep(kept, &mut gone);
        }
        cookies.forget_of("realm1", whose, &mut gone);
        assert_eq!(texts(&cookies), left, "{whose:?}");
        assert_eq!(gone.len(), 3 - left.len());
    }
}

/// Configured principals with tickets of those names.
fn tickets(principals: &[(&str, &str, Option<&str>)]) -> Methods {
    let mut tickets = Tickets::default();
    for (authid, ticket, role) in principals {
        tickets.insert(authid, ticket, *role);
    }
    Methods {
        ticket: Some(Ticket::Static {
            principals: Arc::new(tickets),
            default_role: None,
        }),
        cookie: true,
        ..Methods::default()
    }
}

#[test]
fn a_login_is_remembered_while_its_principal_is_there_unchanged() {
    let before = tickets(&[("joe", "secret", Some("user")), ("ann", "x", None)]);
    let who = Remembered {
        stamp: before.stamp(Method::Ticket, "joe"),
        ..record("abc", "joe", 0).who
    };
    let of_old = record("abc", "joe", 0).who;
    let dynamic = Methods {
        ticket: Some(Ticket::Dynamic(Authenticator {
            procedure: "com.example.ask".into(),
            realm: None,
            role: "trusted".into(),
            default_role: None,
            timeout: Duration::from_secs(1),
            authprovider: Provider::Dynamic,
        })),
        ..Methods::default()
    };
    let ann: &[(&str, &str, Option<&str>)] = &[("ann", "x", None)];
    for (methods, expected, of_old_expected) in [
        (before.clone(), true, true),
        (tickets(&[("joe", "secret", Some("user"))]), true, true),
        (tickets(&[("joe", "other", Some("user"))]), false, true),
        (tickets(&[("joe", "secret", Some("admin"))]), false, true),
        (tickets(&[("joe", "secret", None)]), false, true),
        (tickets(ann), false, false),
        (Methods::default(), false, false),
        (dynamic, true, true),
    ] {
        assert_eq!(methods.vouches_for(&who), expected, "{methods:?}");
        assert_eq!(methods.vouches_for(&of_old), of_old_expected, "{methods:?}");
        let is_revoked = before
            .revoked_by(&methods)
            .contains(&(Method::Ticket, "joe".to_owned()));
        assert_eq!(
            is_revoked,
            methods.stamp(Method::Ticket, "joe") != who.stamp
        );
    }
    assert!(before.revoked_by(&before).is_empty());
    let mut line = Vec::new();
    let kept = Record {
        who,
        ..record("abc", "joe", 0)
    };
    kept.write(None, &mut line);
    assert_eq!(Record::read(&line), Some(("abc".to_owned(), Some(kept))));
}
