//! Detects joints that form a circle: messages that one joint sends return through others.
//!
//! The configuration is checked: a joint leads to another if its output may match the other's input. The check can be
//! too strict for names that never occur, and does not see bindings between exchanges; the hop count covers those.

use crate::template::Template;

/// URIs that a joint produces or accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uris {
    /// Produced from a template.
    Made(Template),
    Exact(String),
    Prefix(String),
    /// Empty components match any.
    Wildcard(String),
}

/// The AMQP source or destination of a joint's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmqpPlace {
    pub vhost: String,
    pub exchange: String,
    /// Routing keys of its publications, or binding keys of its queues; empty for any.
    pub keys: Vec<String>,
}

/// One end of a joint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Wamp {
        realm: String,
        /// Events and calls do not mix.
        is_call: bool,
        uris: Uris,
    },
    Amqp {
        place: AmqpPlace,
        is_call: bool,
    },
}

/// Joints, each with its input end and its output end.
#[derive(Clone, Debug, Default)]
pub struct Circle {
    joints: Vec<(End, End)>,
}

impl Circle {
    pub fn add(&mut self, from: End, to: End) {
        self.joints.push((from, to));
    }

    /// The joints of a circle, in the order of a message's path; empty if there is none.
    pub fn find(&self) -> Vec<usize> {
        let count = self.joints.len();
        // 0: not visited; 1: on the current path; 2: leads nowhere.
        let mut marks = vec![0_u8; count];
        for start in 0..count {
            if marks[start] != 0 {
                continue;
            }
            let mut way = vec![(start, 0)];
            marks[start] = 1;
            while let Some((at, next)) = way.last_mut() {
                let (from, to) = (*at, *next);
                if to == count {
                    marks[from] = 2;
                    way.pop();
                    continue;
                }
                *next += 1;
                if !self.joints[from].1.meets(&self.joints[to].0) {
                    continue;
                }
                match marks[to] {
                    0 => {
                        marks[to] = 1;
                        way.push((to, 0));
                    }
                    1 => {
                        let begin = way.iter().position(|(on_way, _)| *on_way == to);
                        return way[begin.unwrap_or(0)..]
                            .iter()
                            .map(|(at, _)| *at)
                            .collect();
                    }
                    _ => {}
                }
            }
        }
        Vec::new()
    }
}

impl End {
    /// Whether output here may be input there.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Wamp {
                    realm,
                    is_call,
                    uris,
                },
                Self::Wamp {
                    realm: other_realm,
                    is_call: is_other_call,
                    uris: other_uris,
                },
            ) => realm == other_realm && is_call == is_other_call && uris.meet(other_uris),
            (
                Self::Amqp { place, is_call },
                Self::Amqp {
                    place: other,
                    is_call: is_other_call,
                },
            ) => is_call == is_other_call && place.meets(other),
            _ => false,
        }
    }
}

impl AmqpPlace {
    fn meets(&self, other: &Self) -> bool {
        let is_any = self.keys.is_empty() || other.keys.is_empty();
        let keys = || {
            self.keys
                .iter()
                .any(|key| other.keys.iter().any(|pattern| key_matches(key, pattern)))
        };
        self.vhost == other.vhost && self.exchange == other.exchange && (is_any || keys())
    }
}

/// Matches as a topic exchange does; a direct exchange has no better match for keys without `*` and `#`.
fn key_matches(key: &str, pattern: &str) -> bool {
    fn matches(key: &[&str], pattern: &[&str]) -> bool {
        match (key, pattern) {
            ([], []) => true,
            (_, ["#", rest @ ..]) => {
                matches(key, rest) || (!key.is_empty() && matches(&key[1..], pattern))
            }
            ([word, key @ ..], [wanted, pattern @ ..]) => {
                (*wanted == "*" || word == wanted) && matches(key, pattern)
            }
            _ => false,
        }
    }
    let words = |text: &'_ str| -> Vec<String> { text.split('.').map(str::to_owned).collect() };
    let (key, pattern) = (words(key), words(pattern));
    let key: Vec<_> = key.iter().map(String::as_str).collect();
    let pattern: Vec<_> = pattern.iter().map(String::as_str).collect();
    // A pattern that would take long counts as a match.
    pattern.iter().filter(|word| **word == "#").count() > 3 || matches(&key, &pattern)
}

impl Uris {
    fn meet(&self, pattern: &Self) -> bool {
        let made = match self {
            Self::Made(template) => match template.literal() {
                Some(uri) => return pattern.takes(uri),
                None => template.front(),
            },
            Self::Exact(uri) => return pattern.takes(uri),
            Self::Prefix(front) => front,
            // Everything behind the first empty component may differ.
            Self::Wildcard(pattern) => wildcard_front(pattern),
        };
        let other = match pattern {
            Self::Exact(uri) => return uri.starts_with(made),
            Self::Made(template) => template.front(),
            Self::Prefix(front) => front,
            Self::Wildcard(pattern) => wildcard_front(pattern),
        };
        made.starts_with(other) || other.starts_with(made)
    }

    fn takes(&self, uri: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == uri,
            Self::Prefix(front) => uri.starts_with(&**front),
            Self::Wildcard(pattern) => {
                let mut components = uri.split('.');
                let mut wanted = pattern.split('.');
                loop {
                    match (components.next(), wanted.next()) {
                        (None, None) => return true,
                        (Some(component), Some(wanted))
                            if wanted.is_empty() || wanted == component => {}
                        _ => return false,
                    }
                }
            }
            Self::Made(template) => match template.literal() {
                Some(literal) => literal == uri,
                None => uri.starts_with(template.front()),
            },
        }
    }
}

/// The part in front of the first empty component of a pattern.
fn wildcard_front(pattern: &str) -> &str {
    let mut end = 0;
    for component in pattern.split('.') {
        if component.is_empty() {
            return &pattern[..end];
        }
        end = (end + component.len() + 1).min(pattern.len());
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Uris {
        Uris::Made(Template::parse(text, &["x"]).expect(text))
    }

    #[test]
    fn uris_meet() {
        let prefix = |text: &str| Uris::Prefix(text.to_owned());
        let exact = |text: &str| Uris::Exact(text.to_owned());
        let wildcard = |text: &str| Uris::Wildcard(text.to_owned());
        for (to, from, expected) in [
            (made("a.b"), exact("a.b"), true),
            (made("a.b"), exact("a.c"), false),
            (made("a.{x}"), exact("a.c"), true),
            (made("a.{x}"), exact("b.c"), false),
            (made("a.{x}"), prefix("a.c."), true),
            (made("a.b.{x}"), prefix("a."), true),
            (made("a.b.{x}"), prefix("a.c."), false),
            (made("a.b"), wildcard("a."), true),
            (made("a.b"), wildcard(".b"), true),
            (made("a.b"), wildcard(".b."), false),
            (made("a.b.{x}"), wildcard("a..c"), true),
            (made("b.{x}"), wildcard("a..c"), false),
            (made("{x}"), wildcard("a..c"), true),
        ] {
            assert_eq!(to.meet(&from), expected, "{to:?} {from:?}");
        }
    }

    #[test]
    fn keys_meet() {
        for (key, pattern, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.*", true),
            ("a.b", "#", true),
            ("a.b", "a.b.#", true),
            ("a.b", "a", false),
            ("a.b.c", "a.*", false),
            ("", "#", true),
        ] {
            assert_eq!(key_matches(key, pattern), expected, "{key} {pattern}");
        }
    }

    fn topic(uris: Uris) -> End {
        End::Wamp {
            realm: "realm1".to_owned(),
            is_call: false,
            uris,
        }
    }

    fn exchange(name: &str, keys: &[&str]) -> End {
        End::Amqp {
            place: AmqpPlace {
                vhost: "/".to_owned(),
                exchange: name.to_owned(),
                keys: keys.iter().map(|&key| key.to_owned()).collect(),
            },
            is_call: false,
        }
    }

    #[test]
    fn circles_are_found() {
        let out =
            |prefix: &str, to: &str| (topic(Uris::Prefix(prefix.to_owned())), exchange(to, &[]));
        let back = |from: &str, to: &str| (exchange(from, &["#"]), topic(made(to)));
        let check = |joints: &[(End, End)], expected: &[usize]| {
            let mut circle = Circle::default();
            for (from, to) in joints {
                circle.add(from.clone(), to.clone());
            }
            assert_eq!(circle.find(), expected);
        };
        check(&[], &[]);
        check(&[out("a.", "x"), back("x", "b.{x}")], &[]);
        check(&[out("a.", "x"), back("x", "a.{x}")], &[0, 1]);
        check(&[out("a.", "x"), back("y", "a.{x}")], &[]);
        check(
            &[
                out("z.", "z"),
                out("a.", "x"),
                back("x", "b.{x}"),
                out("b.", "y"),
                back("y", "a.{x}"),
            ],
            &[1, 2, 3, 4],
        );
    }
}
