//! MQTT's topics and filters as WAMP's URIs and patterns.
//!
//! A level is a component: `/` stands for `.`, `+` for an empty component of a wildcard pattern, `#` at the end for a
//! prefix. A topic with an empty level, or with `.`, `#` or whitespace in a level, has no URI: it stays among MQTT
//! clients. For its permissions the nearest URI counts, with `_` in those places.

use std::borrow::Cow;

use crosstie_mqtt::topic;
use crosstie_wamp::MatchPolicy;

/// A pattern of URIs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    pub(crate) uri: String,
    pub(crate) policy: MatchPolicy,
}

/// The components whose URIs belong to the router.
const OWN: [&str; 3] = ["wamp", "crossbar", "crosstie"];

/// The URI of a topic, if it has one.
pub(crate) fn uri(topic: &str) -> Option<String> {
    if !topic.is_ascii() {
        let mut levels = topic::levels(topic);
        return levels.all(is_component).then(|| topic.replace('/', "."));
    }
    // The usual topics, in one pass: every publication takes this way.
    let mut uri = Vec::with_capacity(topic.len());
    let mut before = b'/';
    for octet in topic.bytes() {
        match octet {
            b'/' if before == b'/' => return None,
            b'/' => uri.push(b'.'),
            _ if is_foreign(octet.into()) => return None,
            _ => uri.push(octet),
        }
        before = octet;
    }
    let is_whole = before != b'/';
    is_whole.then(|| String::from_utf8(uri).ok()).flatten()
}

/// The topic of a URI, if it has one.
pub(crate) fn topic(uri: &str) -> Option<String> {
    let is_foreign = |c: char| matches!(c, '/' | '+' | '#' | '\0');
    (!uri.contains(is_foreign)).then(|| uri.replace('.', "/"))
}

/// The URI whose permissions a topic has.
pub(crate) fn nearest_uri(topic: &str) -> String {
    let levels: Vec<_> = topic::levels(topic).map(nearest).collect();
    levels.join(".")
}

/// The URIs that a filter may match, or more of them. `None` if it matches no topic with a URI.
pub(crate) fn pattern(filter: &str) -> Option<Pattern> {
    let levels: Vec<_> = levels_of(filter).collect();
    let mut literal = levels.iter().filter(|level| !matches!(**level, "+" | "#"));
    if !literal.all(|level| is_component(level)) {
        return None;
    }
    let (has_plus, has_hash) = (levels.contains(&"+"), levels.last() == Some(&"#"));
    let before = |wildcard: &str| {
        let before = levels.iter().take_while(|level| **level != wildcard);
        before.copied().collect::<Vec<_>>()
    };
    Some(match (has_plus, has_hash) {
        (false, false) => Pattern::exact(levels.join(".")),
        (true, false) => Pattern::wildcard(&levels),
        // `a/#` matches `a`, too: the prefix has no dot at its end.
        (false, true) => Pattern::prefix(before("#").join(".")),
        (true, true) => Pattern::below(&before("+")),
    })
}

/// The pattern whose permissions a filter needs.
pub(crate) fn asked(filter: &str) -> Pattern {
    let levels: Vec<Cow<'_, str>> = levels_of(filter)
        .map(|level| match level {
            "+" | "#" => level.into(),
            level => nearest(level),
        })
        .collect();
    let levels: Vec<_> = levels.iter().map(|level| &**level).collect();
    let wildcard = levels.iter().position(|level| matches!(*level, "+" | "#"));
    match (wildcard, levels.last() == Some(&"#")) {
        (None, _) => Pattern::exact(levels.join(".")),
        (Some(_), false) => Pattern::wildcard(&levels),
        (Some(at), true) => Pattern::below(&levels[..at]),
    }
}

/// Whether a filter names the router's own topics: these stay in WAMP.
pub(crate) fn is_own_filter(filter: &str) -> bool {
    let first = levels_of(filter).next();
    first.is_some_and(|first| OWN.contains(&first))
}

/// Whether a URI is the router's own.
pub(crate) fn is_own_uri(uri: &str) -> bool {
    let first = uri.split('.').next();
    first.is_some_and(|first| OWN.contains(&first))
}

/// The levels of a filter, without those of a share.
fn levels_of(filter: &str) -> impl Iterator<Item = &str> {
    let share = topic::split_share(filter).ok().flatten();
    topic::levels(share.map_or(filter, |share| share.filter))
}

impl Pattern {
    fn exact(uri: String) -> Self {
        let policy = MatchPolicy::Exact;
        Self { uri, policy }
    }

    fn prefix(uri: String) -> Self {
        let policy = MatchPolicy::Prefix;
        Self { uri, policy }
    }

    /// All URIs with these components before others.
    fn below(levels: &[&str]) -> Self {
        let mut uri = levels.join(".");
        if !levels.is_empty() {
            uri.push('.');
        }
        Self::prefix(uri)
    }

    /// The nearest pattern with fewer components that covers this one; none for the widest.
    pub(crate) fn wider(&self) -> Option<Self> {
        let components: Vec<_> = self.uri.trim_end_matches('.').split('.').collect();
        let kept = match self.policy {
            MatchPolicy::Exact => return None,
            MatchPolicy::Wildcard => self.uri.split('.').position(str::is_empty)?,
            MatchPolicy::Prefix if self.uri.is_empty() => return None,
            MatchPolicy::Prefix => components.len() - 1,
        };
        Some(Self::below(&components[..kept.min(components.len())]))
    }

    fn wildcard(levels: &[&str]) -> Self {
        let levels: Vec<_> = levels
            .iter()
            .map(|l| if *l == "+" { "" } else { l })
            .collect();
        Self {
            uri: levels.join("."),
            policy: MatchPolicy::Wildcard,
        }
    }
}

fn is_foreign(c: char) -> bool {
    c == '.' || c == '#' || c.is_whitespace()
}

fn is_component(level: &str) -> bool {
    !level.is_empty() && !level.contains(is_foreign)
}

/// The nearest component of a level.
fn nearest(level: &str) -> Cow<'_, str> {
    match level {
        "" => "_".into(),
        level if is_component(level) => level.into(),
        level => level.replace(is_foreign, "_").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_uris_where_both_have_a_word_for_them() {
        for (name, expected, nearest) in [
            ("a/b", Some("a.b"), "a.b"),
            ("$x/y", Some("$x.y"), "$x.y"),
            ("ä/b", Some("ä.b"), "ä.b"),
            ("a.b", None, "a_b"),
            ("/a", None, "_.a"),
            ("a//b", None, "a._.b"),
            ("a/", None, "a._"),
            ("", None, "_"),
            ("/", None, "_._"),
            ("a b/c", None, "a_b.c"),
            ("a\u{b}b", None, "a_b"),
            ("a\u{a0}b/c", None, "a_b.c"),
            ("ä/", None, "ä._"),
        ] {
            assert_eq!(uri(name).as_deref(), expected, "{name}");
            assert_eq!(nearest_uri(name), nearest, "{name}");
            if let Some(uri) = expected {
                assert_eq!(topic(uri).as_deref(), Some(name));
            }
        }
        for uri in ["a/b.c", "a.+", "a#"] {
            assert_eq!(topic(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_filter_is_covered_by_a_pattern() {
        use MatchPolicy::{Exact, Prefix, Wildcard};
        for (filter, covering, needed) in [
            ("a/b", Some(("a.b", Exact)), ("a.b", Exact)),
            ("a/#", Some(("a", Prefix)), ("a.", Prefix)),
            ("#", Some(("", Prefix)), ("", Prefix)),
            ("+", Some(("", Wildcard)), ("", Wildcard)),
            ("a/+/c", Some(("a..c", Wildcard)), ("a..c", Wildcard)),
            ("+/b", Some((".b", Wildcard)), (".b", Wildcard)),
            ("a/+/c/#", Some(("a.", Prefix)), ("a.", Prefix)),
            ("+/#", Some(("", Prefix)), ("", Prefix)),
            ("$share/g/a/+", Some(("a.", Wildcard)), ("a.", Wildcard)),
            ("a//b", None, ("a._.b", Exact)),
            ("a.b/#", None, ("a_b.", Prefix)),
        ] {
            let found = pattern(filter);
            let found = found.as_ref().map(|found| (&*found.uri, found.policy));
            assert_eq!(found, covering, "{filter}");
            let asked = asked(filter);
            assert_eq!((&*asked.uri, asked.policy), needed, "{filter}");
        }
    }

    #[test]
    fn a_pattern_has_wider_ones() {
        for (filter, expected) in [
            ("a/b", &[][..]),
            ("a/b/#", &["a.", ""]),
            ("#", &[]),
            ("a/b/+/c", &["a.b.", "a.", ""]),
            ("+/b", &[""]),
            ("a/+", &["a.", ""]),
        ] {
            let mut found = Vec::new();
            let mut next = pattern(filter).and_then(|pattern| pattern.wider());
            while let Some(wider) = next {
                assert_eq!(wider.policy, MatchPolicy::Prefix, "{filter}");
                next = wider.wider();
                found.push(wider.uri);
            }
            assert_eq!(found, expected, "{filter}");
        }
    }

    #[test]
    fn the_routers_own_topics_are_told_apart() {
        for (filter, expected) in [
            ("wamp/session/on_join", true),
            ("$share/g/crossbar/#", true),
            ("wampum/a", false),
            ("#", false),
        ] {
            assert_eq!(is_own_filter(filter), expected, "{filter}");
        }
        assert!(is_own_uri("wamp.session.on_join") && !is_own_uri("wampum"));
    }
}
