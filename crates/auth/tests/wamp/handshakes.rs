//! Handshakes of every method.

use std::time::Duration;

use crosstie_auth::wamp::{
    Anonymous, Authenticator, Channel, ErrorTexts, Handshake, Hello, Methods, Provider, Salted,
    Secret, Step, Ticket, Tickets, Users, WampCra,
};

use crate::script::{GIVEN, check, value};

fn anonymous() -> Anonymous {
    Anonymous::Static {
        role: "guest".into(),
        realm: Some("realm1".into()),
        authid: Some("nobody".into()),
    }
}

fn tickets() -> Ticket {
    let mut principals = Tickets::default();
    principals.insert("joe", "hunter2", Some("user"));
    principals.insert("ann", "hunter3", None);
    Ticket::Static {
        principals: principals.into(),
        default_role: Some("member".into()),
    }
}

fn salted() -> Salted {
    Salted {
        salt: "salt123".into(),
        iterations: 100,
        key_bytes: 16,
    }
}

fn users() -> WampCra {
    let mut users = Users::default();
    let plain = Secret::new("secret1", None).expect("is within bounds");
    let salted = Secret::new("secret2", Some(salted())).expect("is within bounds");
    let derived = "LG5/FwnS5WvgmlEyLPk/pQ==";
    let derived = Secret::new(derived, Some(self::salted())).expect("is within bounds");
    users.insert("plain", plain, Some("user"));
    users.insert("salted", salted, Some("user"));
    users.insert("derived", derived, Some("user"));
    WampCra::Static {
        principals: users.into(),
        default_role: None,
    }
}

fn authenticator() -> Authenticator {
    Authenticator {
        procedure: "com.auth".into(),
        authprovider: Provider::Dynamic,
        realm: None,
        role: "trusted".into(),
        default_role: None,
        timeout: Duration::from_secs(5),
    }
}

fn all_static() -> Methods {
    Methods {
        anonymous: Some(anonymous()),
        ticket: Some(tickets()),
        wampcra: Some(users()),
        ..Methods::default()
    }
}

#[test]
fn the_clients_order_decides() {
    let all = all_static();
    check(
        &all,
        "> hello
         < accept realm1 nobody guest anonymous static {}
         > hello methods=
         < accept realm1 nobody guest anonymous static {}
         > hello methods=ticket,anonymous authid=joe
         < challenge ticket {}
         > hello methods=anonymous,ticket authid=joe
         < accept realm1 nobody guest anonymous static {}
         > hello methods=wamp-scram,cryptosign,wampcra,ticket authid=plain
         < challenge wampcra {}
         > hello methods=cryptosign
         < refuse wamp.error.no_matching_auth_method (no_method): none of the offered authmethods is possible here; possible: anonymous, ticket, wampcra
         > hello realm=
         < accept realm1 nobody guest anonymous static {}
         > hello realm=realm2
         < refuse wamp.error.authorization_denied (realm_not_allowed): anonymous sessions may not join realm \"realm2\"
         > hello extra={\"a\":1}
         < accept realm1 nobody guest anonymous static {\"a\":1}",
    );
    let closed = Methods {
        anonymous: None,
        ..all
    };
    check(
        &closed,
        "> hello
         < refuse wamp.error.no_matching_auth_method (no_method): none of the offered authmethods is possible here; possible: ticket, wampcra",
    );
}

#[test]
fn a_ticket() {
    check(
        &all_static(),
        "> hello methods=ticket authid=joe extra={\"a\":1}
         < challenge ticket {}
         > authenticate hunter2
         < accept realm1 joe user ticket static {\"a\":1}
         > hello methods=ticket authid=ann realm=realm2
         < challenge ticket {}
         > authenticate hunter3
         < accept realm2 ann member ticket static {}
         > hello methods=ticket authid=ann
         < challenge ticket {}
         > authenticate hunter2
         < refuse wamp.error.not_authorized (wrong_ticket): the authid or its credentials are not valid
         > authenticate hunter3
         < not due
         > hello methods=ticket authid=zed
         < challenge ticket {}
         > authenticate hunter2
         < refuse wamp.error.not_authorized (unknown_principal): the authid or its credentials are not valid
         > hello methods=ticket authid=zed
         < challenge ticket {}
         > authenticate 
         < refuse wamp.error.not_authorized (unknown_principal): the authid or its credentials are not valid
         > hello methods=ticket
         < refuse wamp.error.not_authorized (no_authid): HELLO.Details.authid: expected text, which authmethod ticket needs",
    );
}

#[test]
fn a_signature() {
    check(
        &all_static(),
        "> hello methods=wampcra authid=plain extra={\"a\":1}
         < challenge wampcra {}
         > sign secret1
         < accept realm1 plain user wampcra static {}
         > hello methods=wampcra authid=salted
         < challenge wampcra {\"salt\":\"salt123\",\"iterations\":100,\"keylen\":16}
         > sign LG5/FwnS5WvgmlEyLPk/pQ==
         < accept realm1 salted user wampcra static {}
         > hello methods=wampcra authid=salted
         < challenge wampcra {\"salt\":\"salt123\",\"iterations\":100,\"keylen\":16}
         > sign secret2
         < accept realm1 salted user wampcra static {}
         > hello methods=wampcra authid=derived
         < challenge wampcra {\"salt\":\"salt123\",\"iterations\":100,\"keylen\":16}
         > sign LG5/FwnS5WvgmlEyLPk/pQ==
         < accept realm1 derived user wampcra static {}
         > hello methods=wampcra authid=plain
         < challenge wampcra {}
         > sign secret2
         < refuse wamp.error.not_authorized (wrong_signature): the authid or its credentials are not valid
         > sign secret1
         < not due
         > hello methods=wampcra authid=plain
         < challenge wampcra {}
         > authenticate 
         < refuse wamp.error.not_authorized (wrong_signature): the authid or its credentials are not valid",
    );
}

/// An unknown authid gets a user's kind of challenge, the same one each time.
#[test]
fn unknown_authids_are_challenged() {
    let mut users = Users::default();
    for authid in ["a", "b", "c"] {
        let secret = Secret::new(authid, Some(salted())).expect("is within bounds");
        users.insert(authid, secret, Some("user"));
    }
    let methods = Methods {
        wampcra: Some(WampCra::Static {
            principals: users.into(),
            default_role: None,
        }),
        ..Methods::default()
    };
    check(
        &methods,
        "> hello methods=wampcra authid=zed
         < challenge wampcra {\"salt\":\"jjvd114\",\"iterations\":100,\"keylen\":16}
         > sign a
         < refuse wamp.error.not_authorized (unknown_principal): the authid or its credentials are not valid
         > hello methods=wampcra authid=zed
         < challenge wampcra {\"salt\":\"jjvd114\",\"iterations\":100,\"keylen\":16}",
    );
}

/// The keys, their order and the blanks are Crossbar.io's.
#[test]
fn the_text_that_is_signed() {
    let mut users = Users::default();
    let secret = Secret::new("s", None).expect("is within bounds");
    users.insert("a \"b\"\n\\", secret, Some("user"));
    let methods = Methods {
        wampcra: Some(WampCra::Static {
            principals: users.into(),
            default_role: None,
        }),
        ..Methods::default()
    };
    let details = value(r#"{"authmethods":["wampcra"],"authid":"a \"b\"\n\\"}"#);
    let details = details.as_dict().expect("is a dictionary");
    let hello = Hello::read("realm1", details).expect("is one");
    let (_, step) = Handshake::begin(&methods, hello, &GIVEN, &Channel::default());
    let Step::Challenge { extra, .. } = step else {
        panic!("{step:?}");
    };
    let nonce = "BwcH".repeat(16);
    let expected = format!(
        r#"{{"authid": "a \"b\"\u000a\\", "authrole": "user", "authmethod": "wampcra", "authprovider": "static", "session": 1978051601041160, "nonce": "{nonce}", "timestamp": "2014-06-22T16:36:25.448Z"}}"#
    );
    assert_eq!(extra, [("challenge".to_owned(), expected.as_str().into())]);
}

#[test]
fn crossbars_words() {
    let methods = Methods {
        error_texts: ErrorTexts::Crossbar,
        ..all_static()
    };
    check(
        &methods,
        "> hello methods=ticket authid=zed
         < refuse wamp.error.not_authorized (unknown_principal): no principal with authid \"zed\" exists
         > hello methods=ticket authid=joe
         < challenge ticket {}
         > authenticate nope
         < refuse wamp.error.not_authorized (wrong_ticket): ticket in static WAMP-Ticket authentication is invalid
         > hello methods=wampcra authid=zed
         < refuse wamp.error.not_authorized (unknown_principal): no principal with authid \"zed\" exists
         > hello methods=wampcra authid=plain
         < challenge wampcra {}
         > sign nope
         < refuse wamp.error.not_authorized (wrong_signature): WAMP-CRA client signature is invalid",
    );
}

#[test]
fn a_ticket_for_an_authenticator() {
    let methods = Methods {
        ticket: Some(Ticket::Dynamic(Authenticator {
            realm: Some("auth".into()),
            ..authenticator()
        })),
        ..Methods::default()
    };
    let ask = "> hello methods=ticket authid=joe authrole=boss extra={\"a\":1}
         < challenge ticket {}
         > authenticate hunter2
         < call com.auth in auth by trusted: realm1 Some(\"joe\") {\"session\":1978051601041160,\"authmethod\":\"ticket\",\"authextra\":{\"a\":1},\"authid\":\"joe\",\"authrole\":\"boss\",\"ticket\":\"hunter2\"}\n";
    for (answer, outcome) in [
        (
            "answer \"user\"",
            "accept realm1 joe user ticket dynamic {}",
        ),
        (
            "answer {\"role\":\"user\"}",
            "accept realm1 joe user ticket dynamic {}",
        ),
        (
            "answer {\"role\":\"user\",\"realm\":\"realm2\",\"authid\":\"joseph\",\"extra\":{\"x\":[1]},\"more\":5}",
            "accept realm2 joseph user ticket dynamic {\"x\":[1]}",
        ),
        (
            "answer {\"role\":null}",
            "refuse wamp.error.no_such_role (no_such_role): no authrole assigned",
        ),
        (
            "answer {\"role\":5}",
            "refuse wamp.error.authentication_failed (authenticator_failed): got integer for \"role\" from dynamic authenticator, expected text",
        ),
        (
            "answer {\"role\":\"user\",\"extra\":[]}",
            "refuse wamp.error.authentication_failed (authenticator_failed): got list for \"extra\" from dynamic authenticator, expected a dictionary",
        ),
        (
            "answer null",
            "refuse wamp.error.authentication_failed (authenticator_failed): got invalid return type \"null\" from dynamic authenticator",
        ),
        (
            "answer true",
            "refuse wamp.error.authentication_failed (authenticator_failed): got invalid return type \"boolean\" from dynamic authenticator",
        ),
        (
            "error com.example.denied nope",
            "refuse com.example.denied (authenticator_denied): nope",
        ),
        (
            "error wamp.error.no_such_procedure nobody",
            "refuse wamp.error.no_such_procedure (authenticator_failed): nobody",
        ),
        (
            "unanswered",
            "refuse wamp.error.authentication_failed (authenticator_failed): the authenticator did not answer within 5000 ms",
        ),
    ] {
        check(&methods, &format!("{ask}> {answer}\n< {outcome}"));
    }
}

#[test]
fn a_secret_from_an_authenticator() {
    let methods = Methods {
        wampcra: Some(WampCra::Dynamic(Authenticator {
            default_role: Some("member".into()),
            ..authenticator()
        })),
        ..Methods::default()
    };
    let ask = "> hello methods=wampcra authid=joe
         < call com.auth in realm1 by trusted: realm1 Some(\"joe\") {\"session\":1978051601041160,\"authmethod\":\"wampcra\",\"authextra\":null,\"authid\":\"joe\",\"authrole\":null}\n";
    let salted = "answer {\"secret\":\"secret2\",\"role\":\"user\",\"salt\":\"salt123\",\"iterations\":100,\"keylen\":16}
         < challenge wampcra {\"salt\":\"salt123\",\"iterations\":100,\"keylen\":16}\n";
    for rest in [
        "answer {\"secret\":\"secret1\"}
         < challenge wampcra {}
         > sign secret1
         < accept realm1 joe member wampcra dynamic {}",
        "answer {\"secret\":\"secret1\",\"role\":\"user\",\"extra\":{\"x\":1}}
         < challenge wampcra {}
         > sign secret2
         < refuse wamp.error.not_authorized (wrong_signature): the authid or its credentials are not valid",
        &format!("{salted}> sign secret2\n< accept realm1 joe user wampcra dynamic {{}}"),
        &format!(
            "{salted}> sign LG5/FwnS5WvgmlEyLPk/pQ==\n< derive\n> key\n< accept realm1 joe user wampcra dynamic {{}}"
        ),
        &format!(
            "{salted}> sign secret1\n< derive\n> key\n< refuse wamp.error.not_authorized (wrong_signature): the authid or its credentials are not valid"
        ),
        "answer {\"secret\":\"s\",\"salt\":\"x\"}
         < challenge wampcra {\"salt\":\"x\",\"iterations\":1000,\"keylen\":32}",
        "answer \"user\"
         < refuse wamp.error.authentication_failed (authenticator_failed): got invalid return type \"text\" from dynamic authenticator",
        "answer {\"role\":\"user\"}
         < refuse wamp.error.authentication_failed (authenticator_failed): got a principal without \"secret\" from the dynamic authenticator",
        "answer {\"secret\":\"s\",\"salt\":\"x\",\"iterations\":100000000}
         < refuse wamp.error.authentication_failed (authenticator_failed): got a bad secret from the dynamic authenticator: iterations: expected 1 to 1000000",
        "error com.example.no no\n< refuse com.example.no (authenticator_denied): no",
    ] {
        check(&methods, &format!("{ask}> {rest}"));
    }
}

#[test]
fn an_anonymous_session_named_by_an_authenticator() {
    let methods = Methods {
        anonymous: Some(Anonymous::Dynamic(authenticator())),
        ..Methods::default()
    };
    check(
        &methods,
        "> hello authid=joe
         < call com.auth in realm1 by trusted: realm1 Some(\"BBBBBBBBBBBBBBBBBBBB\") {\"session\":1978051601041160,\"authmethod\":\"anonymous\",\"authextra\":null,\"authid\":\"BBBBBBBBBBBBBBBBBBBB\",\"authrole\":null}
         > authenticate early
         < not due
         > answer \"guest\"
         < accept realm1 BBBBBBBBBBBBBBBBBBBB guest anonymous dynamic {}",
    );
}

#[test]
fn a_hello_is_read() {
    for (details, expected) in [
        ("{}", ""),
        (r#"{"authmethods":null,"authid":null,"authextra":null}"#, ""),
        (
            r#"{"authmethods":"ticket"}"#,
            "authmethods: expected a list",
        ),
        (
            r#"{"authmethods":[1]}"#,
            "authmethods: expected a list of texts",
        ),
        (r#"{"authid":1}"#, "authid: expected text"),
        (r#"{"authrole":[]}"#, "authrole: expected text"),
        (r#"{"authextra":"x"}"#, "authextra: expected a dictionary"),
    ] {
        let details = value(details);
        let details = details.as_dict().expect("is a dictionary");
        let read = Hello::read("realm1", details);
        let found = read.map_or_else(|e| e.to_string(), |_| String::new());
        assert_eq!(found, expected);
    }
}
