//! Patterns over names.

use crosstie_auth::{Access, Permissions, ResourceKind};

#[test]
fn patterns_match_as_rabbitmq_has_it() {
    let rows = [
        // Anywhere in a name.
        ("a", "bab", true),
        ("^a", "ba", false),
        ("a$", "ba", true),
        ("^(one|two)-.*$", "two-x", true),
        ("^(one|two)-.*$", "three-x", false),
        // Everything, and nothing.
        (".*", "", true),
        (".*", "any\nthing", true),
        ("^.*$", "x", true),
        ("", "x", false),
        // The empty name alone.
        ("", "", true),
        ("^$", "", true),
        ("(?!)", "", false),
        ("^$", "x", false),
        // Perl's look-ahead, which is in use.
        ("^(?!amq\\.).*", "amq.topic", false),
        ("^(?!amq\\.).*", "mine", true),
        ("^(.)\\1$", "aa", true),
        ("^(.)\\1$", "ab", false),
        (
            "^reply_[0-9a-f]{32}$",
            "reply_0123456789abcdef0123456789abcdef",
            true,
        ),
        ("^\\d+$", "12", true),
        ("ü", "grün", true),
        ("amq\\.default", "amq.default", true),
    ];
    for (pattern, name, expected) in rows {
        let permissions = Permissions::parse("", "", pattern).expect(pattern);
        let may = permissions.may(Access::Read, ResourceKind::Queue, name);
        assert_eq!(may, expected, "{pattern:?} on {name:?}");
        // Their patterns are empty.
        assert_eq!(
            permissions.may(Access::Write, ResourceKind::Queue, name),
            name.is_empty()
        );
        assert_eq!(
            permissions.may(Access::Configure, ResourceKind::Queue, name),
            name.is_empty()
        );
        assert!(!Permissions::none().may(Access::Read, ResourceKind::Queue, name));
    }
}

#[test]
fn each_pattern_is_for_one_kind_of_access() {
    let permissions = Permissions::parse("^c", "^w", "^r").expect("patterns");
    for (access, name) in [
        (Access::Configure, "c"),
        (Access::Write, "w"),
        (Access::Read, "r"),
    ] {
        for other in ["c", "w", "r"] {
            assert_eq!(
                permissions.may(access, ResourceKind::Queue, other),
                name == other
            );
            assert!(Permissions::all().may(access, ResourceKind::Queue, other));
        }
    }
}

/// Backtracking has a bound: a name that would take longer is refused.
#[test]
fn a_pattern_that_explodes_refuses() {
    let permissions = Permissions::parse("", "^(a|aa)+\\b(?!x)$", "").expect("a pattern");
    let name = "a".repeat(250) + "!";
    assert!(!permissions.may(Access::Write, ResourceKind::Queue, &name));
}

#[test]
fn a_pattern_that_cannot_be_read() {
    let error = Permissions::parse(".*", "(", ".*").expect_err("no pattern");
    assert_eq!((error.access, &*error.pattern), (Access::Write, "("));
    let text = error.to_string();
    assert!(
        text.starts_with("the pattern \"(\" for write cannot be read: "),
        "{text}"
    );
}
