//! Names, filters, shared subscriptions and matching, as tables.

use crosstie_mqtt::topic::{check_filter, check_name, levels, matches, split_share};
use crosstie_mqtt::{Head, Message, Properties, Version, decode};

#[test]
fn names() {
    let check = |name: &str, expected: &str| {
        let found = check_name(name).map_or_else(|error| error.to_string(), |()| "valid".into());
        assert_eq!(found, expected, "{name:?}");
    };
    for name in ["a", "/", "//", "a/b", "a b", "$SYS/x", "ä", "\u{1}", "a/$b"] {
        check(name, "valid");
    }
    check("", "is empty, expected one character at least");
    check("a\0", "contains U+0000");
    for name in ["+", "#", "a/+/b", "a#"] {
        check(name, "contains a wildcard, expected neither + nor #");
    }
    check(&"x".repeat(65_535), "valid");
    check(
        &"x".repeat(65_536),
        "has 65536 octets, expected 65535 at most",
    );
}

/// Octets that no name may have, and their neighbours, in each place of names of several lengths.
#[test]
fn names_of_publications() {
    for length in 1..26 {
        for at in 0..length {
            for octet in [0, 1, b'"', b'#', b'$', b'*', b'+', b',', 0x7f] {
                let mut name = vec![b'/'; length];
                name[at] = octet;
                let name = String::from_utf8(name).unwrap();
                let message = Message {
                    topic: &name,
                    properties: Properties::EMPTY,
                    payload: b"#",
                };
                let mut packet = Vec::new();
                message
                    .encode(Version::V311, &Head::PLAIN, &mut packet)
                    .unwrap();
                let found = decode(&packet, Version::V311, 100).map_err(|error| error.fault);
                let is_valid = !matches!(octet, 0 | b'#' | b'+');
                assert_eq!(found.is_ok(), is_valid, "{name:?}: {found:?}");
                assert_eq!(check_name(&name).is_ok(), is_valid, "{name:?}");
            }
        }
    }
}

#[test]
fn filters() {
    let check = |filter: &str, expected: &str| {
        let found =
            check_filter(filter).map_or_else(|error| error.to_string(), |()| "valid".into());
        assert_eq!(found, expected, "{filter:?}");
    };
    for filter in [
        "a",
        "/",
        "#",
        "+",
        "+/+",
        "/+",
        "a/#",
        "+/#",
        "$share/g/#",
        "a/+/b",
        "//#",
    ] {
        check(filter, "valid");
    }
    for filter in ["a#", "#/a", "a/#/b", "a/b#", "#/", "##", "+#"] {
        check(
            filter,
            "contains a # that is not the whole of the last level",
        );
    }
    for filter in ["a+", "+a", "a/b+/c", "++", "a/+#"] {
        let text = match filter.contains('#') {
            true => "contains a # that is not the whole of the last level",
            false => "contains a + that is not the whole of its level",
        };
        check(filter, text);
    }
    check("", "is empty, expected one character at least");
    check("a/\0/#", "contains U+0000");
}

#[test]
fn shared_subscriptions() {
    let check = |filter: &str, expected: &str| {
        let found = match split_share(filter) {
            Ok(Some(share)) => format!("{} of {}", share.filter, share.name),
            Ok(None) => "plain".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{filter:?}");
    };
    check("$share/g/a", "a of g");
    check("$share/g//a", "/a of g");
    check("$share/g/+/#", "+/# of g");
    check("$share/g/$share/h/a", "$share/h/a of g");
    for filter in ["a", "$SHARE/g/a", "$shared/g/a", "/$share/g/a", "$shar"] {
        check(filter, "plain");
    }
    let name = "has no valid share name, expected $share/name/filter without wildcards in the name";
    for filter in [
        "$share",
        "$share/",
        "$share//a",
        "$share/+/a",
        "$share/g#/a",
    ] {
        check(filter, name);
    }
    let rest = "has no filter behind its share name, expected $share/name/filter";
    check("$share/g", rest);
    check("$share/g/", rest);
}

#[test]
fn matching() {
    let check = |filter: &str, yes: &[&str], no: &[&str]| {
        for (names, expected) in [(yes, true), (no, false)] {
            for name in names {
                assert_eq!(matches(filter, name), expected, "{filter} and {name}");
            }
        }
    };
    check("a", &["a"], &["A", "a/", "/a", "a/b", "aa"]);
    check("a/b", &["a/b"], &["a", "a/b/", "a/bb"]);
    check("#", &["a", "/", "a/b/c", "//"], &["$SYS", "$SYS/a"]);
    check("+", &["a", " "], &["/a", "a/", "$SYS", "a/b"]);
    check("+/+", &["/a", "a/", "/", "a/b"], &["a", "$SYS/a", "a/b/c"]);
    check("/+", &["/a", "/", "/$a"], &["a", "//"]);
    check("a/#", &["a", "a/", "a/b", "a/b/c"], &["ab", "b/a"]);
    check("a/+/c", &["a/b/c", "a//c"], &["a/c", "a/b/c/d", "a/b/d"]);
    check("+/b/#", &["a/b", "/b", "a/b/c"], &["$a/b", "b"]);
    check("$SYS/#", &["$SYS", "$SYS/a/b"], &["SYS"]);
    check("$SYS/+", &["$SYS/a"], &["$SYS", "$SYS/a/b"]);
    check("a/+/#", &["a/b", "a/", "a/b/c"], &["a"]);
    check("//#", &["//", "/", "///x"], &["a//"]);
}

#[test]
fn levels_may_be_empty() {
    assert_eq!(levels("/a//").collect::<Vec<_>>(), ["", "a", "", ""]);
    assert_eq!(levels("a").collect::<Vec<_>>(), ["a"]);
}
