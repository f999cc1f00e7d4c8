//! Topics and patterns as subjects, and topics again.

use crosstie_fabric::{SUBJECT_BYTES_MAX, Subjects};
use crosstie_routing::Pattern;
use crosstie_wamp::MatchPolicy::{self, Exact, Prefix, Wildcard};

fn wanted(match_policy: MatchPolicy, topic: &str) -> Option<String> {
    let subjects = Subjects::new("r");
    let pattern = Pattern {
        match_policy,
        topic,
    };
    let subject = subjects.of_pattern(pattern)?;
    Some(subject.trim_start_matches("W1.r.e.").to_owned())
}

#[test]
fn patterns_match_as_the_engine_compares() {
    for (policy, topic, expected) in [
        (Exact, "com.a", "com.a"),
        (Exact, "com..a.", "com.=.a.="),
        (Exact, "com.*.>", "com.=2A.=3E"),
        (Exact, "a=b c", "a=3Db=20c"),
        (Exact, "käse", "käse"),
        (Wildcard, "com..x", "com.*.x"),
        (Wildcard, "", "*"),
        (Wildcard, "..", "*.*.*"),
        (Prefix, "com.a.", "com.a.>"),
        (Prefix, "com.a", "com.>"),
        (Prefix, "co", ">"),
        (Prefix, "", ">"),
    ] {
        assert_eq!(wanted(policy, topic).as_deref(), Some(expected), "{topic}");
    }
}

#[test]
fn topics_come_back() {
    let subjects = Subjects::new("com.example.realm");
    let (mut subject, mut topic) = (String::new(), String::new());
    for written in [
        "a",
        "",
        "..",
        "com.é.*",
        "=",
        "a b\u{a0}c",
        "x.\u{7f}.\n",
        "=2A",
    ] {
        assert!(subjects.write_topic(written, &mut subject));
        assert!(
            subject.starts_with("W1.com=2Eexample=2Erealm.e."),
            "{subject}"
        );
        assert!(subject.split('.').all(|word| !word.is_empty()), "{subject}");
        assert!(!subject.contains(['*', '>', ' ', '\n']), "{subject}");
        assert!(subjects.read_topic(&subject, &mut topic), "{subject}");
        assert_eq!(topic, written);
    }
    for wrong in [
        "W1.r.e.a",
        "W1.com=2Eexample=2Erealm.e.=2",
        "W1.com=2Eexample=2Erealm.e.=FF",
    ] {
        assert!(!subjects.read_topic(wrong, &mut topic), "{wrong}");
    }
}

/// Neither published nor subscribed: no line exceeds NATS' maximum.
#[test]
fn long_subjects_are_not_subscribed() {
    let long = "x".repeat(SUBJECT_BYTES_MAX);
    assert_eq!(wanted(Exact, &long), None);
    assert!(!Subjects::new("r").write_topic(&long, &mut String::new()));
    let parent = format!("com.{long}");
    assert_eq!(wanted(Prefix, &parent).as_deref(), Some("com.>"));
}
