//! Logins: which user is admitted, and from which origin.

use crosstie_auth::{Access, PasswordHash, Permissions, Refused, ResourceKind, User, Users};

fn user(name: &str, password: Option<&str>, is_remote_allowed: bool) -> User {
    User {
        name: name.into(),
        password: password.map(|password| PasswordHash::of(password.as_bytes(), [9; 4])),
        tags: Vec::new(),
        is_remote_allowed,
    }
}

fn users() -> Users {
    let mut users = Users::new();
    users.insert(user("guest", Some("guest"), false));
    users.insert(user("test", Some("secret"), true));
    users.insert(user("certificate", None, true));
    users.insert(user("blank", Some(""), true));
    users
}

#[test]
fn by_password() {
    let name = |name: &str| name.to_owned();
    let rows = [
        ("guest", "guest", true, Ok("guest")),
        (
            "guest",
            "guest",
            false,
            Err(Refused::LoopbackOnly {
                name: name("guest"),
            }),
        ),
        // Only a client with the password learns that the user is limited to this machine.
        (
            "guest",
            "wrong",
            false,
            Err(Refused::WrongPassword {
                name: name("guest"),
            }),
        ),
        ("test", "secret", false, Ok("test")),
        (
            "test",
            "Secret",
            true,
            Err(Refused::WrongPassword { name: name("test") }),
        ),
        (
            "test",
            "",
            true,
            Err(Refused::WrongPassword { name: name("test") }),
        ),
        (
            "blank",
            "",
            true,
            Err(Refused::WrongPassword {
                name: name("blank"),
            }),
        ),
        (
            "certificate",
            "x",
            true,
            Err(Refused::NoPassword {
                name: name("certificate"),
            }),
        ),
        (
            "who",
            "x",
            true,
            Err(Refused::Unknown { name: name("who") }),
        ),
    ];
    for (user, password, is_loopback, expected) in rows {
        let found = users().authenticate(user, password.as_bytes(), is_loopback);
        let found = found.as_ref().map(|user| &*user.name).map_err(Clone::clone);
        assert_eq!(found, expected, "{user} {password}");
    }
}

#[test]
fn by_certificate() {
    let users = users();
    let found = users.authenticate_external("certificate", false);
    assert_eq!(found.expect("known").name.as_ref(), "certificate");
    assert!(matches!(
        users.authenticate_external("guest", false),
        Err(Refused::LoopbackOnly { .. })
    ));
    assert!(matches!(
        users.authenticate_external("who", true),
        Err(Refused::Unknown { .. })
    ));
}

#[test]
fn permissions_are_of_a_user_in_a_vhost() {
    let mut users = users();
    assert!(users.grant("test", "/", Permissions::all()));
    assert!(!users.grant("who", "/", Permissions::all()));
    let permissions = users.permissions("test", "/").expect("granted");
    assert!(permissions.may(Access::Write, ResourceKind::Queue, "q"));
    assert!(users.permissions("test", "other").is_none());
    assert!(users.permissions("guest", "/").is_none());
    // Those of a user that only another node has.
    assert!(users.permissions("who", "/").is_some());
    assert!(users.find("who").is_none());
    assert!(users.authenticate("who", b"", true).is_err());
    assert!(users.authenticate_external("who", true).is_err());
    // Another password; the permissions stay.
    users.insert(user("test", Some("new"), true));
    assert!(users.permissions("test", "/").is_some());
    assert!(users.authenticate("test", b"new", true).is_ok());
    let names: Vec<_> = users.iter().map(|user| user.name.clone()).collect();
    assert_eq!(
        names.iter().map(|n| &**n).collect::<Vec<_>>(),
        ["blank", "certificate", "guest", "test"]
    );
}
